"""Trains a transformer on all ranks: ddp, ddp_view, fsdp2, tp or pp. Appends what the
rank took to a file, as a line of JSON. tests/gpu/check_dry_ranks.py runs it dry; on GPUs,
with NCCL_NVLS_ENABLE=0 as its truths were measured:

  python -m torch.distributed.run --nproc-per-node 4 train.py ddp FILE
"""
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

WIDTH, LAYERS, WORDS, LENGTH, BATCH, STEPS = 1024, 8, 8192, 512, 8, 6
MODE, FILE = sys.argv[1:]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False)
                                          for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        def heads(y):
            return y.view(len(x), LENGTH, -1, 64).transpose(1, 2)
        h = self.n1(x)
        a = nn.functional.scaled_dot_product_attention(
            heads(self.q(h)), heads(self.k(h)), heads(self.v(h)), is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(len(x), LENGTH, -1))
        return x + self.down(nn.functional.gelu(self.up(self.n2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        x = self.embed(x) if self.embed is not None else x
        for block in self.blocks:
            x = block(x)
        return self.head(x) if self.head is not None else x


def loss_of(y, wanted):
    return nn.functional.cross_entropy(y.float().view(-1, WORDS), wanted.view(-1))


def data_parallel(model):
    return nn.parallel.DistributedDataParallel(
        model.cuda(), device_ids=[RANK], gradient_as_bucket_view=MODE == "ddp_view",
        static_graph=MODE == "ddp_view")


def sharded(model):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                  reduce_dtype=torch.float32)
    model = model.cuda()
    for part in [*model.blocks, model]:
        fully_shard(part, mp_policy=policy)
    return model


def tensor_parallel(model):
    model, mesh = model.cuda(), init_device_mesh("cuda", (WORLD,))
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
    plan.update(o=RowwiseParallel(), down=RowwiseParallel())
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model


def stage(model):
    each = LAYERS // WORLD
    model.blocks = nn.ModuleList(list(model.blocks)[RANK * each:(RANK + 1) * each])
    model.embed = model.embed if RANK == 0 else None
    model.head = model.head if RANK == WORLD - 1 else None
    return model.cuda()


def main():
    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK)
                            if MODE == "pp" else None)
    torch.manual_seed(0)
    make = {"fsdp2": sharded, "tp": tensor_parallel, "pp": stage}
    model = make.get(MODE, data_parallel)(Model())
    schedule = Schedule1F1B(PipelineStage(model, RANK, WORLD, torch.device("cuda", RANK)),
                            4, loss_fn=loss_of) if MODE == "pp" else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                  foreach=False if MODE == "tp" else None)
    for step in range(STEPS):
        random = torch.Generator().manual_seed(step)
        ids, wanted = (torch.randint(0, WORDS, (BATCH, LENGTH), generator=random).cuda()
                       for _ in range(2))
        if schedule:
            schedule.step(*([ids] if RANK == 0 else []),
                          **({"target": wanted} if RANK == WORLD - 1 else {}))
        else:
            with torch.autocast("cuda", torch.bfloat16, enabled=MODE.startswith("ddp")):
                out = model(ids)
            loss_of(out, wanted).backward()
            del out
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    left, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    row = {"mode": MODE, "ranks": WORLD, "rank": RANK,
           "reserved": stats["reserved_bytes.all.peak"],
           "outside": total - left - torch.cuda.memory_reserved()}
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    dist.barrier()
    dist.destroy_process_group()


main()
