"""Programs of language models (common.py)."""
import os
import tempfile

import torch
from torch import nn

import common


def transformer_sdpa():
    layer = nn.TransformerEncoderLayer(256, 8, 512, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        common.train(model, lambda: torch.randn(4, 256, 256, device="cuda"),
                     lambda m, x: m(x).float().pow(2).mean())
        q = torch.randn(4, 8, 512, 64, device="cuda", requires_grad=True)
        nn.functional.scaled_dot_product_attention(
            q, q, q, is_causal=True).sum().backward()


def tiny_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=128,
                                      n_positions=128, vocab_size=512,
                                      bos_token_id=0, eos_token_id=1))


class Lines(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.arange(64) % 512
        return {"input_ids": ids, "labels": ids}


def trainer(**precision):
    from transformers import Trainer, TrainingArguments
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=4, max_steps=3,
            report_to=[], save_strategy="no", logging_steps=1,
            disable_tqdm=True, **precision)
        Trainer(model=tiny_gpt2(), args=options, train_dataset=Lines()).train()


def trainer_fp16():
    trainer(fp16=True)


def trainer_bf16():
    trainer(bf16=True)


def generate():
    model = tiny_gpt2().cuda().eval()
    ids = torch.randint(2, 512, (2, 16), device="cuda")
    with torch.no_grad():
        model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=1)
        model.generate(ids, max_new_tokens=12, do_sample=True, top_k=20,
                       pad_token_id=1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(64, 128, num_layers=2, dropout=0.1, batch_first=True)
        self.second = nn.GRU(128, 128, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.second(self.first(x)[0])[0].pow(2).mean()


def lstm_gru():
    common.train(Recurrent().cuda(), lambda: torch.randn(8, 50, 64, device="cuda"),
                 lambda m, x: m(x))


def checkpointing():
    from torch.utils.checkpoint import checkpoint
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(512, 2048), nn.GELU(),
                                          nn.Dropout(0.1), nn.Linear(2048, 512))
                            for _ in range(4)]).cuda()

    def loss_of(model, x):
        for block in model:
            x = checkpoint(block, x, use_reentrant=False)
        return x.pow(2).mean()

    common.train(blocks, lambda: torch.randn(256, 512, device="cuda"), loss_of)


def ddp_two():
    """Two processes, a GPU each."""
    torch.multiprocessing.spawn(rank, nprocs=2)


def rank(number):
    os.environ.update(RANK=str(number), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=os.environ.get("MASTER_PORT", "29533"))
    torch.cuda.set_device(number)
    torch.distributed.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda(),
        device_ids=[number])
    common.train(model, lambda: torch.randn(32, 512, device="cuda"),
                 lambda m, x: m(x).pow(2).mean())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    common.main(globals())
