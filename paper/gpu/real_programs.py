"""real_programs.py: programs of other people's training loops, for live.py: Trainer of
transformers, Lightning, torchvision. Weights are random and data is made up, so they
need no network. Each is a generator as in truth_programs.py; a loop that belongs to a
library is one step.
"""
import tempfile

import torch
from torch import nn


class Texts(torch.utils.data.Dataset):
    """Token numbers of random lengths, the same in every run."""

    def __init__(self, count, low, high, labels=0):
        chance = torch.Generator().manual_seed(3)
        self.rows = []
        for _ in range(count):
            length = int(torch.randint(low, high + 1, (), generator=chance))
            ids = torch.randint(5, 2000, (length,), generator=chance)
            self.rows.append((ids, int(ids[0]) % labels if labels else ids))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": ids, "labels": label}


def padded(rows):
    ids = nn.utils.rnn.pad_sequence([r["input_ids"] for r in rows], True, 0)
    labels = [r["labels"] for r in rows]
    batch = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    batch["labels"] = torch.tensor(labels) if isinstance(labels[0], int) else \
        nn.utils.rnn.pad_sequence(labels, True, -100)
    return batch


def trained_by_trainer(model, texts, steps, **settings):
    from transformers import Trainer, TrainingArguments
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model=model, data_collator=padded, train_dataset=texts,
                args=TrainingArguments(
                    folder, max_steps=steps, save_strategy="no", report_to=[],
                    logging_strategy="no", disable_tqdm=True, seed=3,
                    dataloader_num_workers=0, **settings)).train()


def trainer_gpt2(job):
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=768, n_head=12, vocab_size=8000))
    trained_by_trainer(model, Texts(64, 100, 600), len(job.steps(10)),
                       per_device_train_batch_size=8, bf16=True)
    yield


def trainer_bert(job):
    from transformers import BertConfig, BertForSequenceClassification
    model = BertForSequenceClassification(
        BertConfig(num_hidden_layers=6, vocab_size=8000, num_labels=7))
    trained_by_trainer(model, Texts(160, 20, 400, 7), len(job.steps(12)),
                       per_device_train_batch_size=16)
    yield


def trainer_llama(job):
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=768, intermediate_size=2048, num_hidden_layers=8, vocab_size=8000,
        num_attention_heads=12, num_key_value_heads=4, use_cache=False))
    trained_by_trainer(model, Texts(64, 200, 900), len(job.steps(8)),
                       per_device_train_batch_size=4, gradient_accumulation_steps=2,
                       gradient_checkpointing=True, bf16=True)
    yield


def accelerate_t5(job):
    from accelerate import Accelerator
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(
        d_model=512, num_layers=6, vocab_size=8000, decoder_start_token_id=0))
    loader = torch.utils.data.DataLoader(Texts(80, 50, 500), 8, collate_fn=padded)
    accelerator = Accelerator(mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), 1e-4), loader)
    for _, batch in zip(job.steps(10), loader):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        yield


@torch.no_grad()
def generate_gpt2(job):
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=768, n_head=12,
                                       vocab_size=8000)).to(job.device).eval()
    for _ in job.steps(6):
        ids = torch.randint(5, 8000, (job.pick(4, 8, 16), job.between(30, 300)))
        model.generate(ids.to(job.device), max_new_tokens=len(job.steps(40)),
                       do_sample=False, pad_token_id=0, eos_token_id=None)
        yield


def lightning(module, batches, steps, job, **settings):
    import pytorch_lightning as pl
    pl.seed_everything(3)
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    with tempfile.TemporaryDirectory() as folder:
        pl.Trainer(max_steps=steps, accelerator="auto" if job.device == "cuda" else "cpu",
                   devices=1, logger=False, enable_checkpointing=False,
                   enable_progress_bar=False, enable_model_summary=False,
                   default_root_dir=folder, **settings).fit(module, loader)


def lightning_autoencoder(job):
    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 64, 3, 2, 1), nn.GELU(), nn.Conv2d(64, 128, 3, 2, 1),
                nn.GELU(), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.GELU(),
                nn.ConvTranspose2d(64, 3, 4, 2, 1))

        def training_step(self, batch, _):
            return nn.functional.mse_loss(self.body(batch), batch)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    chance = torch.Generator().manual_seed(3)
    sizes = [64 * int(torch.randint(2, 7, (), generator=chance)) for _ in range(12)]
    batches = [torch.rand(16, 3, s, s, generator=chance) for s in sizes]
    lightning(Module(), batches, len(job.steps(12)), job)
    yield


def lightning_gpt(job):
    import pytorch_lightning as pl
    from truth_programs import Gpt, next_token

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.gpt = Gpt(6, 768, 8000)

        def training_step(self, batch, _):
            return next_token(self.gpt(batch), batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-4)

    chance = torch.Generator().manual_seed(3)
    batches = [torch.randint(0, 8000, (8, n), generator=chance)
               for n in (500, 300, 700, 200, 640, 900, 400, 800, 100, 760)]
    lightning(Module(), batches, len(job.steps(10)), job, precision="bf16-mixed",
              gradient_clip_val=1.0)
    yield


def vision_resnet(job):
    import torchvision
    model = torchvision.models.resnet50(num_classes=100).to(job.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler(job.device.partition(":")[0])
    for _ in job.steps(10):
        size = job.between(128, 288, 32)
        x, y = torch.rand(job.pick(16, 24, 32), 3, size, size), None
        y = torch.randint(0, 100, (len(x),))
        with job.mixed(torch.float16):
            loss = nn.functional.cross_entropy(model(x.to(job.device)), y.to(job.device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield


def vision_segmentation(job):
    import torchvision
    model = torchvision.models.segmentation.deeplabv3_resnet50(
        weights=None, weights_backbone=None, num_classes=21).to(job.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for _ in job.steps(8):
        high, wide = job.between(160, 416, 32), job.between(160, 416, 32)
        x = torch.rand(4, 3, high, wide).to(job.device)
        y = torch.randint(0, 21, (4, high, wide)).to(job.device)
        loss = nn.functional.cross_entropy(model(x)["out"], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def vision_vit(job):
    import torchvision
    model = torchvision.models.vit_b_16(num_classes=100).to(job.device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for _ in job.steps(8):
        x = torch.rand(job.pick(8, 16, 24, 32), 3, 224, 224).to(job.device)
        with job.mixed():
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


REAL = {f.__name__: f for f in (
    trainer_gpt2, trainer_bert, trainer_llama, accelerate_t5, generate_gpt2,
    lightning_autoencoder, lightning_gpt, vision_resnet, vision_segmentation,
    vision_vit)}
