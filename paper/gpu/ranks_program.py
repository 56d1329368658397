#!/usr/bin/env python3
"""ranks_program.py MODE SIDE RANK PORT: one rank of a training on two GPUs
(MODE: ddp or fsdp) in turns of lockstep.py.

Rank 0 starts rank 1 and passes each turn on to it, so both ranks of the other
trainings stand still meanwhile. FRAG_LIMITS are the limits of the processes
(set_per_process_memory_fraction) in bytes, as JSON; FRAG_CORES counts other pairs of
devices that are at work. The first step uses kernels with one order of sums,
and its loss and gradients are hashed; the steps in turns do not. The tokens have
varying lengths, another length on each rank. FRAG_DEVICE=cpu runs it without a GPU.
"""
import hashlib
import json
import os
import random
import subprocess
import sys
import time

WORLD = 2
SIZES = json.loads(os.environ.get("FRAG_SIZES", "{}"))  # of the model
CORES = 4  # of a rank
LONGEST = int(os.environ.get("FRAG_LONGEST", "2048"))  # tokens


def ours(side):
    return not side.startswith("PyTorch")


def environment(side):
    """The variables that select a side."""
    if ours(side):
        return {"FRAGSIM_POLICY": side}
    conf = side.partition(":")[2]
    return {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}


def say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Other:
    """Rank 1, as rank 0 sees it."""

    def __init__(self, arguments):
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def tell(self):
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith('{"'):
                return json.loads(line)
        raise RuntimeError("rank 1 ended")


class Job:
    """The model, its optimizer and its tokens."""

    def __init__(self, mode, rank):
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
        self.torch, self.rank = torch, rank
        self.device = torch.device(
            "cpu" if on_cpu() else f"cuda:{rank}")
        self.draw = random.Random(1000 + rank)
        torch.manual_seed(0)
        config = LlamaConfig(**{
            "hidden_size": 1024, "intermediate_size": 2816,
            "num_hidden_layers": 8, "num_attention_heads": 16,
            "num_key_value_heads": 16, "vocab_size": 32000,
            "max_position_embeddings": 8192, **SIZES})
        self.vocab = config.vocab_size
        model = LlamaForCausalLM(config).to(self.device)
        if mode == "ddp":
            ids = None if on_cpu() else [rank]
            self.model = torch.nn.parallel.DistributedDataParallel(
                model, device_ids=ids)
        else:
            from torch.distributed.fsdp import fully_shard
            for layer in model.model.layers:
                fully_shard(layer)
            fully_shard(model)
            self.model = model
        self.step_of = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def loss(self, count, length):
        torch = self.torch
        made = torch.Generator().manual_seed(self.draw.randrange(1 << 30))
        ids = torch.randint(0, self.vocab, (count, length),
                            generator=made).to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16):
            return self.model(input_ids=ids, labels=ids).loss

    def update(self):
        self.step_of.step()
        self.step_of.zero_grad(set_to_none=True)

    def step(self):
        loss = self.loss(self.draw.choice([1, 2, 4, 6]),
                         self.draw.randrange(LONGEST // 20, LONGEST))
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.update()
        return loss.detach()

    def one_order(self, on):
        torch = self.torch
        torch.use_deterministic_algorithms(on, warn_only=True)
        for kind in ("flash", "mem_efficient", "cudnn"):
            getattr(torch.backends.cuda, f"enable_{kind}_sdp")(not on)

    def first(self):
        """A step in one order of sums: its loss and the hash of its gradients."""
        self.one_order(True)
        loss = self.loss(2, 96)
        loss.backward()
        digest = hashlib.sha256()
        for one in self.model.parameters():
            grad = one.grad
            grad = grad.to_local() if hasattr(grad, "to_local") else grad
            digest.update(grad.float().cpu().numpy().tobytes())
        self.update()
        self.one_order(False)
        return {"loss": float(loss.detach()), "gradients":
                digest.hexdigest()[:16]}

    def wait(self):
        if not on_cpu():
            self.torch.cuda.synchronize()


def on_cpu():
    return os.environ.get("FRAG_DEVICE") == "cpu"


def numbers(torch):
    """Peaks and counts of this rank's device."""
    if on_cpu():
        return {"peak_reserved": 1, "peak_allocated": 1}
    stats = torch.cuda.memory_stats()
    return {"peak_reserved": stats["reserved_bytes.all.peak"],
            "peak_allocated": stats["allocated_bytes.all.peak"]}


def cores(rank):
    """The cores of a rank, equal for all sides; all, if there are few."""
    last = os.cpu_count() - CORES * (rank + WORLD * int(os.environ.get("FRAG_CORES", 0)))
    return (range(last - CORES, last) if os.cpu_count() >= 2 * CORES * WORLD
            else range(os.cpu_count()))


def start(side, rank, port):
    os.environ.update(environment(side), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(WORLD),
                      CUBLAS_WORKSPACE_CONFIG=":4096:8")
    import torch
    os.sched_setaffinity(0, cores(rank))
    if not on_cpu():
        torch.cuda.set_device(rank)
        if ours(side):
            import fragsim_torch
            if fragsim_torch.use() != "class":
                raise RuntimeError("the class of fragsim was not compiled")
        if "FRAG_LIMITS" in os.environ:
            limit = json.loads(os.environ["FRAG_LIMITS"])[rank]
            total = torch.cuda.get_device_properties(rank).total_memory
            torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total, rank)
    torch.set_num_threads(2)
    if on_cpu():
        torch.distributed.init_process_group("gloo")
    else:
        torch.distributed.init_process_group(
            "nccl", device_id=torch.device(f"cuda:{rank}"))
    return torch


def turns(job, other):
    """Steps until stdin ends; other is rank 1, or None in rank 1."""
    losses = []
    for _ in sys.stdin:
        if other:
            other.tell()
        began = time.perf_counter()
        loss = job.step()
        job.wait()
        mine = {"seconds": time.perf_counter() - began, **numbers(job.torch)}
        losses.append(float(loss))
        if other:
            theirs = other.answer()
            mine["seconds"] = max(mine["seconds"], theirs["seconds"])
            mine["rank 1"] = theirs
        say(mine)
    return losses


def main():
    mode, side, rank, port = sys.argv[1:5]
    rank = int(rank)
    other = None
    if rank == 0:
        other = Other([os.path.abspath(__file__), mode, side, "1", port])
    torch = start(side, rank, port)
    job = Job(mode, rank)
    first = job.first()
    if other:
        firsts = [first, other.answer()["first"]]
        other.answer()
        say({"ready": True})
    else:
        say({"first": first})
        say({"ready": True})
    losses = turns(job, other)
    if other:
        other.process.stdin.close()
        end = other.answer()["end"]
        say({"end": {"firsts": firsts, "losses": [losses, end["losses"]],
                     **numbers(torch)}})
    else:
        say({"end": {"losses": losses}})
    sys.stdout.flush()
    # The process group has no more work; its destruction may wait for the other.
    os._exit(0)


if __name__ == "__main__":
    main()
