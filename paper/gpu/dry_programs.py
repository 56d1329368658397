#!/usr/bin/env python3
"""dry_programs.py NAME: one of the programs that `fragsim dry` predicted for an H200
before they ran on one, written as people write them: with transformers, Lightning,
torchvision, peft, diffusers, torch_geometric and torch.distributed. Nothing is loaded
from a network: the models are made from their configurations, the data at random.

With DRY_RECORD=PATH the program keeps PyTorch's memory history and writes
PATH.pickle, the snapshot, and PATH.json, the peaks and how it ended.
"""
import json
import os
import pickle
import random
import sys
import tempfile
import time
import traceback

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS = {}
DEVICE = "cuda"


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def update(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def made(model, *args, kind=torch.float32, **named):
    """A model whose weights are made on the GPU."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(kind)
    with torch.device(DEVICE):
        built = model(*args, **named)
    torch.set_default_dtype(before)
    return built


def llama(width, layers, heads, kind=torch.bfloat16, **more):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=width, intermediate_size=width * 43 // 16,
                         num_hidden_layers=layers, num_attention_heads=heads,
                         vocab_size=32000, use_cache=False, **more)
    return made(LlamaForCausalLM, config, kind=kind)


def tokens(words, *shape):
    return torch.randint(0, words, shape).to(DEVICE)


# ---- transformers' own Trainer ----

class Texts(torch.utils.data.Dataset):
    def __init__(self, count, words, low, high, target=None):
        self.count, self.words, self.low, self.high = count, words, low, high
        self.target = target

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        draw = torch.Generator().manual_seed(at)
        length = int(torch.randint(self.low, self.high, (1,), generator=draw))
        ids = torch.randint(5, self.words, (length,), generator=draw)
        return ids, ids if self.target is None else at % self.target


def padded(rows):
    ids, labels = zip(*rows)
    pad = nn.utils.rnn.pad_sequence
    out = {"input_ids": pad(ids, True),
           "attention_mask": pad([torch.ones_like(i) for i in ids], True)}
    out["labels"] = torch.tensor(labels) if isinstance(labels[0], int) \
        else pad(labels, True, -100)
    return out


def train(model, data, **settings):
    from transformers import Trainer, TrainingArguments
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, report_to="none", save_strategy="no",
                                      disable_tqdm=True, logging_strategy="no", seed=3,
                                      dataloader_num_workers=0, **settings)
        Trainer(model, arguments, train_dataset=data, data_collator=padded).train()


@program
def trainer_bert():
    from transformers import BertConfig, BertForSequenceClassification
    train(BertForSequenceClassification(BertConfig()), Texts(400, 30000, 20, 400, 2),
          per_device_train_batch_size=16, max_steps=14, bf16=True)


@program
def trainer_gpt2_checkpointed():
    from transformers import GPT2Config, GPT2LMHeadModel
    train(GPT2LMHeadModel(GPT2Config(n_layer=16, n_embd=1024, n_head=16)),
          Texts(400, 50000, 200, 900), per_device_train_batch_size=4, max_steps=8,
          gradient_accumulation_steps=2, gradient_checkpointing=True, bf16=True)


@program
def trainer_t5_adafactor():
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(decoder_start_token_id=0)
    train(T5ForConditionalGeneration(config), Texts(300, 32000, 30, 300),
          per_device_train_batch_size=8, max_steps=12, optim="adafactor")


# ---- Lightning and torchvision ----

@program
def lightning_resnet():
    import lightning_or_pl as L
    from torchvision.models import resnet50

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = resnet50()

        def training_step(self, batch, _):
            images, labels = batch
            images = images.to(memory_format=torch.channels_last)
            return F.cross_entropy(self.net(images), labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)

    data = torch.utils.data.TensorDataset(torch.randn(192, 3, 176, 176),
                                          torch.randint(0, 1000, (192,)))
    L.Trainer(max_epochs=2, precision="bf16-mixed", logger=False, devices=1,
              accelerator="gpu", enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False).fit(
                  Module(), torch.utils.data.DataLoader(data, 32))


def classify(net, sizes, batch, kind, optimizer):
    scaler = torch.amp.GradScaler(enabled=kind is torch.float16)
    for size in sizes:
        images = torch.randn(batch, 3, size, size).to(DEVICE)
        with torch.autocast("cuda", kind, enabled=kind is not torch.float32):
            loss = F.cross_entropy(net(images), tokens(1000, batch))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@program
def vision_vit_scaled():
    from torchvision.models import vit_b_16
    net = vit_b_16().cuda()
    classify(net, [224] * 8, 48, torch.float16, torch.optim.AdamW(net.parameters()))


@program
def vision_convnext_sizes():
    from torchvision.models import convnext_tiny
    net = convnext_tiny().cuda()
    classify(net, [160, 224, 192, 256, 128, 288, 224, 160], 24, torch.bfloat16,
             torch.optim.AdamW(net.parameters()))


@program
def segmentation_deeplab():
    from torchvision.models.segmentation import deeplabv3_resnet50
    net = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for size in (256, 320, 288, 256, 384, 320):
        out = net(torch.randn(6, 3, size, size, device=DEVICE))["out"]
        update(F.cross_entropy(out, tokens(21, 6, size, size)), optimizer)


@program
def detection_fasterrcnn():
    from torchvision.models.detection import fasterrcnn_resnet50_fpn
    net = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.001)
    for _ in range(5):
        images = [torch.rand(3, 400, random.randrange(400, 640), device=DEVICE)
                  for _ in range(3)]
        boxes = torch.tensor([[20., 30, 200, 220], [100, 100, 320, 360]], device=DEVICE)
        wanted = [{"boxes": boxes, "labels": torch.tensor([1, 7], device=DEVICE)}] * 3
        update(sum(net(images, wanted).values()), optimizer)


# ---- large language models ----

def next_token(model, ids):
    return model(input_ids=ids, labels=ids).loss


@program
def llama7b_lora():
    from peft import LoraConfig, get_peft_model
    model = llama(4096, 32, 32)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for length in (1024, 768, 1536, 1024, 512, 1280):
        update(next_token(model, tokens(32000, 2, length)), optimizer)


@program
def llama7b_full():
    model = llama(4096, 32, 32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for length in (512, 384, 640, 512):
        update(next_token(model, tokens(32000, 1, length)), optimizer)


@program
def llama13b_generate():
    model = llama(5120, 40, 40).eval()
    for batch, length in ((4, 300), (8, 150), (2, 700)):
        ids = tokens(32000, batch, length)
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12,
                       do_sample=False, use_cache=True, eos_token_id=None,
                       pad_token_id=0)


def log_probability(model, ids):
    out = model(input_ids=ids).logits[:, :-1].float().log_softmax(-1)
    return out.gather(-1, ids[:, 1:, None])[..., 0]


@program
def grpo_loop():
    policy, reference = llama(1536, 12, 12), llama(1536, 12, 12).eval()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    for length in (96, 160, 64, 128):
        prompt = tokens(32000, 2, length).repeat_interleave(6, 0)
        with torch.no_grad():
            ids = policy.generate(prompt, attention_mask=torch.ones_like(prompt),
                                  max_new_tokens=40, min_new_tokens=40, do_sample=True,
                                  use_cache=True, eos_token_id=None, pad_token_id=0)
            old = log_probability(reference, ids)
        advantage = torch.randn(12, 1, device=DEVICE)
        for _ in range(2):
            new = log_probability(policy, ids)
            ratio = (new - old).exp()
            update(-(torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
                     - 0.04 * (old - new)).mean(), optimizer)


@program
def dpo_pairs():
    policy, reference = llama(1024, 16, 16), llama(1024, 16, 16).eval()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    for _ in range(10):
        ids = [tokens(32000, 4, random.randrange(100, 600)) for _ in range(2)]
        with torch.no_grad():
            known = [log_probability(reference, i).sum(-1) for i in ids]
        found = [log_probability(policy, i).sum(-1) for i in ids]
        margin = found[0] - known[0] - found[1] + known[1]
        update(-F.logsigmoid(0.1 * margin).mean(), optimizer)


@program
def mixtral_small():
    from transformers import MixtralConfig, MixtralForCausalLM
    model = made(MixtralForCausalLM, MixtralConfig(
        vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=6,
        num_attention_heads=12, num_key_value_heads=4, num_local_experts=8),
        kind=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for length in (256, 512, 384, 448):
        update(next_token(model, tokens(32000, 4, length)), optimizer)


@program
def whisper_train():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    model = made(WhisperForConditionalGeneration, WhisperConfig(
        d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048))
    optimizer = torch.optim.AdamW(model.parameters())
    for length in (60, 120, 80, 200, 100):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_features=torch.randn(6, 80, 3000).to(DEVICE),
                         labels=tokens(50000, 6, length)).loss
        update(loss, optimizer)


# ---- diffusion ----

def unet(kind):
    from diffusers import UNet2DConditionModel
    return made(UNet2DConditionModel, sample_size=64, cross_attention_dim=768, kind=kind)


@program
def diffusion_train():
    net = unet(torch.float32)
    net.enable_gradient_checkpointing()
    optimizer = torch.optim.AdamW(net.parameters())
    for size in (64, 48, 64, 80):
        noise = torch.randn(4, 4, size, size, device=DEVICE)
        with torch.autocast("cuda", torch.bfloat16):
            out = net(noise, tokens(1000, 4), torch.randn(4, 77, 768, device=DEVICE))
        update(F.mse_loss(out.sample.float(), noise), optimizer)


@program
def diffusion_sample():
    from diffusers import AutoencoderKL, DDIMScheduler
    net = unet(torch.float16).eval()
    decoder = made(AutoencoderKL, latent_channels=4, block_out_channels=(128, 256, 512, 512),
                   down_block_types=("DownEncoderBlock2D",) * 4, layers_per_block=2,
                   up_block_types=("UpDecoderBlock2D",) * 4, kind=torch.float16).eval()
    schedule = DDIMScheduler()
    schedule.set_timesteps(8)
    text = torch.randn(4, 77, 768, device=DEVICE, dtype=torch.float16)
    with torch.no_grad():
        for size in (64, 96):
            noise = torch.randn(2, 4, size, size, device=DEVICE, dtype=torch.float16)
            for t in schedule.timesteps:
                low, high = net(torch.cat([noise] * 2), t, text).sample.chunk(2)
                noise = schedule.step(low + 7.5 * (high - low), t, noise).prev_sample
            decoder.decode(noise).sample.float().cpu()


# ---- others ----

@program
def graph_convolution():
    from torch_geometric.nn import GCNConv
    layers = made(lambda: nn.ModuleList([GCNConv(128, 256), GCNConv(256, 256),
                                         GCNConv(256, 40)]))
    optimizer = torch.optim.Adam(layers.parameters())
    for count in (40000, 60000, 30000, 50000):
        x = torch.randn(count, 128).to(DEVICE)
        edges = torch.randint(0, count, (2, 8 * count)).to(DEVICE)
        for layer in layers:
            x = F.dropout(F.relu(layer(x, edges)), 0.5)
        update(F.cross_entropy(x, tokens(40, count)), optimizer)


@program
def lstm_packed():
    embed, net = nn.Embedding(20000, 512).cuda(), nn.LSTM(512, 768, 2).cuda()
    out = nn.Linear(768, 20000).cuda()
    optimizer = torch.optim.Adam([*embed.parameters(), *net.parameters(),
                                  *out.parameters()])
    for _ in range(10):
        lengths = sorted((random.randrange(20, 90) for _ in range(32)), reverse=True)
        ids = tokens(20000, lengths[0], 32)
        packed = nn.utils.rnn.pack_padded_sequence(embed(ids), lengths)
        seen, _ = nn.utils.rnn.pad_packed_sequence(net(packed)[0])
        update(F.cross_entropy(out(seen).flatten(0, 1), ids.flatten()), optimizer)


def distributed(backend, ranks):
    import torch.distributed as dist
    if backend == "fake":
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    else:
        dist.init_process_group(backend, rank=0, world_size=ranks,
                                init_method=f"file://{tempfile.mktemp()}")
    torch.cuda.set_device(0)


@program
def fsdp2_rank_0_of_2():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    distributed("fake", 2)
    model = llama(1536, 16, 12, kind=torch.float32)
    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=mixed)
    fully_shard(model, mp_policy=mixed)
    optimizer = torch.optim.AdamW(model.parameters())
    for length in (512, 768, 640, 512):
        update(next_token(model, tokens(32000, 4, length)), optimizer)


@program
def ddp_resnet():
    from torchvision.models import resnet18
    distributed("nccl", 1)
    net = nn.parallel.DistributedDataParallel(resnet18().cuda(), bucket_cap_mb=10)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    classify(net, [128, 160, 128, 192, 160], 64, torch.float32, optimizer)


# ---- one run ----

def alias_lightning():
    """Lightning under either of its two names."""
    try:
        import lightning as module
    except ImportError:
        import pytorch_lightning as module
    sys.modules["lightning_or_pl"] = module


def finish(path, name, began, error):
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    row = {"program": name, "seconds": round(time.time() - began, 1), "error": error,
           "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
           "entries": len(snapshot["device_traces"][0]),
           "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
           "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
           "free_end_bytes": torch.cuda.mem_get_info()[0]}
    with open(path + ".pickle", "wb") as out:
        pickle.dump(snapshot, out)
    with open(path + ".json", "w", encoding="utf-8") as out:
        json.dump(row, out)


def main():
    name, path = sys.argv[1], os.environ.get("DRY_RECORD")
    torch.manual_seed(3)
    random.seed(3)
    alias_lightning()
    if not path:
        return PROGRAMS[name]()
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=2_000_000)
    began, error = time.time(), None
    try:
        PROGRAMS[name]()
        torch.cuda.synchronize()
    except Exception:  # pylint: disable=broad-exception-caught
        error = traceback.format_exc()[-2000:]
    finish(path, name, began, error)
    return None if error is None else sys.exit(error)


if __name__ == "__main__":
    main()
