#!/usr/bin/env python3
"""claims_programs.py all|two|pack FOLDER [NAME...]: small PyTorch programs, each with and
without one of the remedies that articles on GPU memory recommend. They need a GPU
(`two` needs two) and write FOLDER/claims_runs.jsonl, or claims_two.jsonl, and a
snapshot for most programs; `pack` puts these into FOLDER/claims_snapshots.tar.

`one NAME FOLDER` runs one program; `turn NAME` is one of several processes that do
their steps strictly in turns, for step times. The first row of the results holds
device, driver, date and command. A program that fails leaves a row with the key
`error`, and the others run. claims.py reads the results.
"""
import concurrent.futures
import ctypes
import datetime
import gc
import io
import json
import lzma
import os
import pickle
import random
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import weakref

MIB = 1 << 20
GIB = 1 << 30
HERE = os.path.abspath(__file__)
EPOCH = 5        # steps; where a remedy is applied once per epoch
SECONDS = 60     # limit of one program


# ---- models and the training step ----

def gpt(layers=8, width=1024, words=32000):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            many, length, _ = x.shape
            q, k, v = (t.view(many, length, width // 64, 64).transpose(1, 2)
                       for t in self.qkv(self.before(x)).chunk(3, -1))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(many, length, width))
            return x + self.down(F.gelu(self.up(self.between(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.parts = nn.ModuleList(Block() for _ in range(layers))
            self.head = nn.Linear(width, words, bias=False)

        def enter(self, ids):
            return self.words(ids)

        def leave(self, x):
            return self.head(x)

    return Gpt()


def cnn(separable=False):
    """A residual network of 18 layers, for pictures of 512 x 512."""
    from torch import nn
    from torch.nn import functional as F

    def conv(i, o, stride):
        if not separable:
            return nn.Conv2d(i, o, 3, stride, 1, bias=False)
        return nn.Sequential(nn.Conv2d(i, i, 3, stride, 1, groups=i, bias=False),
                             nn.Conv2d(i, o, 1, bias=False))

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.one, self.two = conv(i, o, stride), conv(o, o, 1)
            self.norm, self.last = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
            self.short = nn.Conv2d(i, o, 1, stride) if i != o else nn.Identity()

        def forward(self, x):
            y = F.relu(self.norm(self.one(x)))
            return F.relu(self.last(self.two(y)) + self.short(x))

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 64, 7, 2, 3)
            wide = [64, 64, 64, 128, 128, 256, 256, 512, 512]
            self.parts = nn.ModuleList(
                Block(i, o, 1 if i == o else 2) for i, o in zip(wide, wide[1:]))
            self.head = nn.Linear(512, 1000)

        def enter(self, x):
            return F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)

        def leave(self, x):
            return self.head(x.mean((2, 3)))

    return Cnn()


def linear(width=4096, layers=8):
    from torch import nn

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

        def enter(self, x):
            return x

        def leave(self, x):
            return x

    return Stack()


class Job:
    """A training job; its options are those of PROGRAMS."""

    def __init__(self, model="gpt", batch=8, length=512, varlen=False, amp=None,
                 checkpoint=False, accumulate=1, drop=False, empty=0, collect=0,
                 layers=8, device="cuda", wrap=None):
        import torch
        self.kind, self.batch, self.accumulate = model, batch, accumulate
        self.length, self.varlen, self.layers = length, varlen, layers
        self.amp = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(amp)
        self.checkpoint, self.drop = checkpoint, drop
        self.empty, self.collect = empty, collect
        self.device, self.done = device, 0
        self.random = random.Random(7)
        torch.manual_seed(7)
        made = {"gpt": lambda: gpt(layers), "cnn": cnn,
                "separable": lambda: cnn(separable=True), "linear": linear}
        self.model = made[model]().to(device)
        self.call = self.forward
        if wrap:
            self.call = wrap(self)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler(device.partition(":")[0], init_scale=128.0,
                                           enabled=amp == "fp16")

    def data(self, many):
        import torch
        if self.kind == "gpt":
            length = self.random.randrange(64, self.length) if self.varlen else self.length
            ids = torch.randint(0, 32000, (many, length), device=self.device)
            return ids, ids
        if self.kind == "linear":
            return (torch.randn(many, 4096, device=self.device),) * 2
        return (torch.rand(many, 3, 512, 512, device=self.device),
                torch.randint(0, 1000, (many,), device=self.device))

    def forward(self, x, model=None):
        from torch.utils.checkpoint import checkpoint
        model = model or self.model
        x = model.enter(x)
        for part in model.parts:
            x = checkpoint(part, x, use_reentrant=False) if self.checkpoint else part(x)
        return model.leave(x)

    def loss_of(self, out, wanted):
        from torch.nn import functional as F
        if self.kind == "linear":
            return F.mse_loss(out.float(), wanted)
        return F.cross_entropy(out.float().flatten(0, -2), wanted.flatten())

    def autocast(self):
        import torch
        return torch.autocast("cuda", self.amp or torch.bfloat16,
                              enabled=self.amp is not None)

    def step(self):
        import torch
        for _ in range(self.accumulate):
            x, wanted = self.data(self.batch // self.accumulate)
            with self.autocast():
                self.out = self.call(x)
                self.loss = self.loss_of(self.out, wanted) / self.accumulate
            self.scaler.scale(self.loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        if self.drop:
            del self.out, self.loss
        if self.collect and self.done % self.collect == 0:
            gc.collect()
        if self.empty and self.done % self.empty == 0:
            torch.cuda.empty_cache()


# ---- what is measured ----

def counters(device=0):
    import torch
    stats = torch.cuda.memory_stats(device)
    named = {"peak_allocated": "allocated_bytes.all.peak",
             "peak_reserved": "reserved_bytes.all.peak",
             "peak_requested": "requested_bytes.all.peak",
             "end_allocated": "allocated_bytes.all.current",
             "end_reserved": "reserved_bytes.all.current",
             "requests": "allocation.all.allocated",
             "retries": "num_alloc_retries", "ooms": "num_ooms",
             "driver_allocs": "num_device_alloc", "driver_frees": "num_device_free"}
    return {key: stats.get(name) for key, name in named.items()}


def used(device=0):
    """Bytes in use on the whole device, as the driver says."""
    import torch
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def nvml(device=0):
    """(driver version, bytes in use on the device) as NVML says, or None."""
    import torch
    try:
        lib = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    text, handle = ctypes.create_string_buffer(96), ctypes.c_void_p()
    numbers = (ctypes.c_ulonglong * 3)()
    uuid = "GPU-" + str(torch.cuda.get_device_properties(device).uuid)
    if (lib.nvmlInit_v2() or lib.nvmlSystemGetDriverVersion(text, 96)
            or lib.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
            or lib.nvmlDeviceGetMemoryInfo(handle, numbers)):
        return None
    return text.value.decode(), numbers[2]


def record(frames=False):
    import torch
    torch.cuda.memory._record_memory_history(
        enabled="all", context="all" if frames else None, stacks="python",
        max_entries=1_000_000)


def fix_names(snap):
    """No path of the recording machine stays in the file."""
    lists = [e.get("frames") for t in snap["device_traces"] for e in t]
    for segment in snap["segments"]:
        lists.append(segment.get("frames"))
        lists += [b.get("frames") for b in segment["blocks"]]
    for frame in (f for frames in lists for f in frames or ()):
        name = frame["filename"]
        _, torch_, rest = name.rpartition("/torch/")
        frame["filename"] = "torch/" + rest if torch_ else name.rpartition("/")[2]
    return snap


def keep(folder, name):
    """Writes the snapshot to FOLDER/NAME.pickle.xz and returns that name."""
    import torch
    if not folder:
        return None
    torch.cuda.synchronize()
    data = pickle.dumps(fix_names(torch.cuda.memory._snapshot()))
    torch.cuda.memory._record_memory_history(enabled=None)
    with lzma.open(os.path.join(folder, name + ".pickle.xz"), "wb", preset=3) as out:
        out.write(data)
    return name + ".pickle.xz"


def timed(act, count):
    """Median and count of the seconds of act(), the device included."""
    import torch
    found = []
    for _ in range(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        act()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


class limited:
    """A memory limit of so many bytes, as set_per_process_memory_fraction sets."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        import torch
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(self.size / total)

    def __exit__(self, *_):
        import torch
        torch.cuda.set_per_process_memory_fraction(1.0)


# ---- programs: training with and without ----

TRAINING = {
    "gpt_fp32": {}, "gpt_bf16": {"amp": "bf16"}, "gpt_fp16": {"amp": "fp16"},
    "gpt_fp32_checkpoint": {"checkpoint": True},
    "gpt_bf16_checkpoint": {"amp": "bf16", "checkpoint": True},
    "gpt_bf16_long": {"amp": "bf16", "length": 4096, "batch": 4},
    "gpt_bf16_long_checkpoint": {"amp": "bf16", "length": 4096, "batch": 4,
                                 "checkpoint": True},
    "gpt_b32": {"batch": 32}, "gpt_b32_accumulate4": {"batch": 32, "accumulate": 4},
    "gpt_b32_checkpoint": {"batch": 32, "checkpoint": True},
    "gpt_drop_empty": {"drop": True, "empty": 1}, "gpt_drop": {"drop": True},
    "cnn_b8": {"model": "cnn"}, "cnn_b32": {"model": "cnn", "batch": 32},
    "cnn_b32_bf16": {"model": "cnn", "batch": 32, "amp": "bf16"},
    "cnn_b32_fp16": {"model": "cnn", "batch": 32, "amp": "fp16"},
    "cnn_b32_checkpoint": {"model": "cnn", "batch": 32, "checkpoint": True},
    "cnn_b32_bf16_checkpoint": {"model": "cnn", "batch": 32, "amp": "bf16",
                                "checkpoint": True},
    "cnn_b32_accumulate4": {"model": "cnn", "batch": 32, "accumulate": 4},
    "cnn_b32_drop_empty": {"model": "cnn", "batch": 32, "drop": True, "empty": 1},
    "cnn_b32_bf16_accumulate4": {"model": "cnn", "batch": 32, "amp": "bf16",
                                 "accumulate": 4},
    "separable_b32": {"model": "separable", "batch": 32},
    "linear_fp32": {"model": "linear", "batch": 64},
    "linear_bf16": {"model": "linear", "batch": 64, "amp": "bf16"},
    "linear_fp16": {"model": "linear", "batch": 64, "amp": "fp16"},
    "linear_b16384_fp32": {"model": "linear", "batch": 16384},
    "linear_b16384_bf16": {"model": "linear", "batch": 16384, "amp": "bf16"},
    "varlen_never": {"varlen": True, "layers": 4, "length": 1024},
    "varlen_epoch": {"varlen": True, "layers": 4, "length": 1024, "empty": EPOCH},
    "varlen_step": {"varlen": True, "layers": 4, "length": 1024, "empty": 1},
    "varlen_drop_empty": {"varlen": True, "layers": 4, "length": 1024, "empty": 1,
                          "drop": True},
    "varlen_collect": {"varlen": True, "layers": 4, "length": 1024, "collect": 1},
}


def training(name, folder):
    options = TRAINING[name]
    record()
    job = Job(**options)
    for _ in range(4 * EPOCH if options.get("varlen") else 4):
        job.step()
    return {"options": options, "steps": job.done, "snapshot": keep(folder, name),
            "parameters": sum(p.numel() for p in job.model.parameters()), **counters()}


# ---- programs: one question each ----

def evaluation(folder, mode):
    import contextlib
    import torch
    record()
    job = Job(amp="bf16")
    guard = {"grad": contextlib.nullcontext, "no_grad": torch.no_grad,
             "inference": torch.inference_mode}[mode]
    floor = torch.cuda.memory_allocated()
    with guard():
        for _ in range(4):
            x, wanted = job.data(8)
            with job.autocast():
                out = job.forward(x)
                loss = job.loss_of(out, wanted)
            del out, loss
    return {"before": floor, "snapshot": keep(folder, "eval_" + mode), **counters()}


def losses(folder, mode, frames=True):
    """A list of losses, as it is often kept; the model is small, 60 steps."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    record(frames)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1000)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept, total, curve = [], 0.0, []

    def one():
        nonlocal total
        x = torch.randn(256, 1024, device="cuda")
        loss = F.cross_entropy(model(x), torch.randint(0, 1000, (256,), device="cuda"))
        if mode == "graph":        # an evaluation that keeps the graph of each loss
            total = total + loss
        else:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            kept.append(loss.item() if mode == "item" else loss)

    start = time.perf_counter()
    for _ in range(60):
        one()
        curve.append(torch.cuda.memory_allocated())
    torch.cuda.synchronize()
    spent = time.perf_counter() - start
    slope = (curve[-1] - curve[9]) / (len(curve) - 10)
    return {"bytes_a_step": slope, "seconds": spent, "steps": len(curve),
            "snapshot": keep(folder, "losses_" + mode), **counters()}


def cycles(mode):
    """Objects that refer to themselves hold a tensor of 8 MiB each; 60 steps."""
    import torch

    class Holder:
        pass

    gc.collect()
    if mode == "disabled":
        gc.disable()
    start = time.perf_counter()
    for _ in range(60):
        holder = Holder()
        holder.itself = holder if mode != "no_cycle" else None
        holder.data = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
        if mode == "collect":
            gc.collect()
    torch.cuda.synchronize()
    spent = time.perf_counter() - start
    gc.enable()
    return {"steps": 60, "seconds": spent, **counters()}


def referrers():
    """What gc.get_referrers finds: a holder in Python, and autograd's graph."""
    import torch
    weight = torch.randn(256, 256, device="cuda", requires_grad=True)
    holder = []
    tensor = torch.relu(weight)
    holder.append(tensor)
    in_python = any(r is holder for r in gc.get_referrers(tensor))
    mid = torch.sigmoid(weight)
    out = mid * 2
    watched = weakref.ref(mid)
    before = torch.cuda.memory_allocated()
    del mid                  # the graph of `out` still holds its bytes
    still = torch.cuda.memory_allocated() == before
    found = watched() is not None and bool(gc.get_referrers(watched()))
    return {"finds_python_list": in_python, "graph_holds_bytes": still,
            "finds_graph": found, "kept": out.numel() > 0}


def summary():
    """The texts and lists that the articles read."""
    import torch
    job = Job(layers=2)
    job.step()
    text = torch.cuda.memory_summary(device=None, abbreviated=False)
    rows = [line.split("|")[1].strip() for line in text.splitlines()
            if line.count("|") > 3]
    snap = torch.cuda.memory_snapshot()
    return {"has_fragmentation": "ragmentation" in text,
            "has_available": "vailable" in text,
            "rows": [r for r in dict.fromkeys(rows) if r],
            "devices_named": [w for w in text.split() if w.startswith("ID")] and
            text.count("device ID"),
            "per_tensor": "tensor" in text.lower(),
            "snapshot_items": len(snap),
            "snapshot_blocks": sum(len(s["blocks"]) for s in snap),
            "blocks_active": sum(b["state"] == "active_allocated"
                                 for s in snap for b in s["blocks"]),
            "item_keys": sorted(snap[0]),
            "has_efficient_coalesce": hasattr(torch.cuda.memory, "efficient_coalesce"),
            "names_with_coalesce": [n for n in dir(torch.cuda.memory)
                                    if "coalesce" in n or "compact" in n],
            "text": text}


def profiled(folder):
    """The profiler as the articles call it."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function
    job = Job(layers=2, amp="bf16")
    job.step()
    found = {}
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 profile_memory=True, record_shapes=True) as prof:
        with record_function("one_step"):
            job.step()
    for key in ("self_cuda_memory_usage", "cuda_memory_usage",
                "self_device_memory_usage"):
        try:
            text = prof.key_averages().table(sort_by=key, row_limit=10)
            found["table_" + key] = len(text.splitlines())
        except Exception as error:  # pylint: disable=broad-except
            found["table_" + key] = f"{type(error).__name__}: {error}"
    path = os.path.join(folder or "/tmp", f"chrome{os.getpid()}.json")
    prof.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.remove(path)
    found["chrome_memory_events"] = text.count('"[memory]"')
    found["chrome_has_phase"] = "one_step" in text
    try:
        with torch.autograd.profiler.profile(use_cuda=True):
            pass
        found["use_cuda"] = "accepted"
    except Exception as error:  # pylint: disable=broad-except
        found["use_cuda"] = f"{type(error).__name__}: {error}"
    return found


def emptied():
    """What empty_cache releases after a step, and what it leaves."""
    import torch
    job = Job(varlen=True, layers=4, length=1024)
    for _ in range(6):
        job.step()
    watched = Knot()
    again = weakref.ref(watched)
    del watched
    found = {"allocated_before": torch.cuda.memory_allocated(),
             "reserved_before": torch.cuda.memory_reserved(), "used_before": used()}
    torch.cuda.empty_cache()
    found |= {"allocated_after": torch.cuda.memory_allocated(),
              "reserved_after": torch.cuda.memory_reserved(), "used_after": used(),
              "cycle_survives_empty_cache": again() is not None}
    gc.collect()
    found["cycle_survives_collect"] = again() is not None
    return found


class Knot:
    def __init__(self):
        self.itself = self


def retried():
    """A request that only fits if the cache is released, with and without
    empty_cache before it; and one that fits in neither case."""
    import torch
    found = {}
    with limited(4 * GIB):
        for mode in ("alone", "after_empty_cache"):
            torch.cuda.empty_cache()
            many = [torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
                    for _ in range(140)]
            del many
            before = torch.cuda.memory_stats().get("num_alloc_retries", 0)
            cached = torch.cuda.memory_reserved()
            if mode != "alone":
                torch.cuda.empty_cache()
            try:
                big = torch.empty(3 * GIB, dtype=torch.uint8, device="cuda")
                served = True
                del big
            except torch.OutOfMemoryError:
                served = False
            found[mode] = {"cached": cached, "served": served, "retries":
                           torch.cuda.memory_stats().get("num_alloc_retries", 0) - before}
        for mode in ("alone", "after_empty_cache"):
            held = torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
            if mode != "alone":
                torch.cuda.empty_cache()
            try:
                torch.empty(3 * GIB, dtype=torch.uint8, device="cuda")
                found["too_large_" + mode] = True
            except torch.OutOfMemoryError:
                found["too_large_" + mode] = False
            del held
    return found


def runtime():
    """The CUDA runtime library that PyTorch has loaded."""
    if hasattr(ctypes.CDLL(None), "cudaMallocAsync"):
        return ctypes.CDLL(None)
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            if "libcudart" in line:
                return ctypes.CDLL(line.split()[-1])
    return ctypes.CDLL("libcudart.so.13")


def fraction():
    """What set_per_process_memory_fraction limits, and what it does not."""
    import torch
    torch.zeros(1, device="cuda")
    cart, outside = runtime(), ctypes.c_void_p()
    before, limit = used(), 2 * GIB
    with limited(limit):
        many = []
        try:
            while True:
                many.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as error:
            text = str(error)
        full = torch.cuda.memory_reserved()
        refused = cart.cudaMalloc(ctypes.byref(outside), ctypes.c_size_t(GIB))
        return {"limit": limit, "reserved": full, "used_by_context": before,
                "used": used(), "outside_1gib": "refused" if refused else "served",
                "message": text.split(" If reserved")[0]}


def halved(folder):
    """Article C's loop: the batch is halved after each OOM."""
    import torch
    with limited(9 * GIB):
        record()
        job, tried = Job(batch=64), []
        while job.batch:
            out_of_memory = False
            try:
                job.step()
                job.step()
            except torch.OutOfMemoryError:
                out_of_memory = True
                job.optimizer.zero_grad(set_to_none=True)
                job.out = job.loss = None
            tried.append({"batch": job.batch, "oom": out_of_memory,
                          "allocated": torch.cuda.memory_allocated(),
                          "reserved": torch.cuda.memory_reserved()})
            if not out_of_memory:
                break
            torch.cuda.empty_cache()
            job.batch //= 2
        return {"limit": 9 * GIB, "tried": tried, "snapshot": keep(folder, "halved"),
                **counters()}


def lifetimes():
    """del, moves to the CPU, zero_grad, a decorator's delta and peak."""
    import torch

    def now():
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    found, start = {}, now()
    data = torch.randn(64 * MIB // 4, device="cuda")
    found["tensor"] = now() - start
    host = data.cpu()
    found["after_cpu_copy"] = now() - start
    del data
    found["after_del"] = now() - start
    found["reserved_after_del"] = torch.cuda.memory_reserved()
    del host
    job = Job(layers=2)
    x, wanted = job.data(8)
    job.step()
    base = now()
    job.loss_of(job.forward(x), wanted).backward()
    held = now()
    job.optimizer.zero_grad(set_to_none=False)
    zeroed = now()
    job.optimizer.zero_grad(set_to_none=True)
    found |= {"parameter_bytes": sum(4 * p.numel() for p in job.model.parameters()),
              "after_backward": held - base, "after_zero_grad_false": zeroed - base,
              "after_zero_grad_true": now() - base}
    job.model.to("cpu")
    found["after_model_to_cpu"] = now() - base
    job.model.to("cuda")
    torch.cuda.reset_peak_memory_stats()
    before = now()
    with torch.no_grad():
        out = job.forward(x)
    found |= {"function_delta": now() - before, "out_bytes": out.numel() * 4,
              "function_peak": torch.cuda.max_memory_allocated() - before}
    return found


def pruned(folder):
    """Masks of torch.nn.utils.prune, and half of each layer removed in mid-run."""
    import torch
    from torch import nn
    from torch.nn.utils import prune
    record()
    model = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(64)]).cuda()
    start = torch.cuda.memory_allocated()
    for layer in model:
        prune.custom_from_mask(layer, "weight", torch.rand_like(layer.weight) > 0.5)
    masked = torch.cuda.memory_allocated()
    for layer in model:
        prune.remove(layer, "weight")
    removed = torch.cuda.memory_allocated()
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    for layer in model:
        layer.weight = nn.Parameter(layer.weight.detach()[:512].clone())
    smaller = torch.cuda.memory_allocated()
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved()
    stuck = torch.cuda.memory_stats()["inactive_split_bytes.all.current"]
    return {"weights": start, "with_masks": masked, "masks_removed": removed,
            "rows_removed": smaller, "reserved_before": reserved,
            "reserved_after": left, "inactive_split": stuck,
            "snapshot": keep(folder, "pruned"), **counters()}


def quantised():
    """The same weights as fp32, bf16 and int8 (one scale a row)."""
    import torch
    job = Job()
    sizes, start = {}, torch.cuda.memory_allocated()
    sizes["fp32"] = start
    with torch.no_grad():
        small = [(p / p.abs().amax(-1, keepdim=True).clamp_min(1e-8) * 127).to(torch.int8)
                 for p in job.model.parameters()]
    sizes["int8"] = torch.cuda.memory_allocated() - start
    del small
    job.model.to(torch.bfloat16)
    sizes["bf16"] = torch.cuda.memory_allocated()
    return sizes


def pinned():
    """Batches that wait in pinned host memory, and those prefetched to the GPU."""
    import torch
    torch.zeros(1, device="cuda")
    before, allocated = used(), torch.cuda.memory_allocated()
    host = [torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True) for _ in range(4)]
    after = used()
    on_device = [h.to("cuda", non_blocking=True) for h in host]
    return {"host": 256 * MIB, "device_used": after - before,
            "device_allocated_pinned": 0 if torch.cuda.memory_allocated() ==
            allocated + 256 * MIB else None,
            "prefetched": torch.cuda.memory_allocated() - allocated,
            "kept": len(on_device)}


def graphs(folder, with_graph):
    """Inference at five batch sizes, as calls and as CUDA graphs."""
    import torch
    from torch import nn
    record()
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(),
                                          nn.Linear(4096, 1024)) for _ in range(6)])
    model = model.cuda().eval()
    kept = []
    with torch.no_grad():
        for batch in (64, 512, 1024, 4096, 8192):
            x = torch.zeros(batch, 1024, device="cuda")
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                model(x)
            torch.cuda.current_stream().wait_stream(side)
            if with_graph:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    out = model(x)
                kept.append((graph, x, out))
                graph.replay()
            else:
                model(x)
    torch.cuda.synchronize()
    name = "graphs" if with_graph else "graphs_without"
    peaks = counters()
    gc.collect()
    torch.cuda.empty_cache()
    return {"snapshot": keep(folder, name), **peaks,
            "reserved_after_empty_cache": torch.cuda.memory_reserved(),
            "allocated_at_end": torch.cuda.memory_allocated()}


def polled():
    """What threads that poll see of the peak, in six seconds of training."""
    import torch
    seen, stop = {}, threading.Event()
    signals = {"allocated": torch.cuda.memory_allocated,
               "reserved": torch.cuda.memory_reserved, "used": used}

    def poll(period):
        found = seen[str(period)] = {key: 0 for key in signals} | {"polls": 0}
        while not stop.is_set():
            for key, read in signals.items():
                found[key] = max(found[key], read())
            found["polls"] += 1
            stop.wait(period)

    job = Job(varlen=True, layers=8, length=1024)
    job.step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    threads = [threading.Thread(target=poll, args=(p,)) for p in (1.0, 0.1, 0.01)]
    for thread in threads:
        thread.start()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 6:
        job.step()
        torch.cuda.synchronize()
        count += 1
    peak = torch.cuda.max_memory_allocated()
    held = torch.cuda.max_memory_reserved()
    stop.set()
    for thread in threads:
        thread.join()
    return {"true_allocated": peak, "true_reserved": held, "steps": count,
            "seconds": time.perf_counter() - start, "seen": seen}


def calls():
    """Seconds of one allocation and its release, by size: the driver's calls, the
    driver's pool and PyTorch's caching allocator; medians of 200, in turns."""
    import torch
    torch.zeros(1, device="cuda")
    cart, where, found = runtime(), ctypes.c_void_p(), {}
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def naive(size):
        assert not cart.cudaMalloc(ctypes.byref(where), ctypes.c_size_t(size))
        assert not cart.cudaFree(where)

    def pool(size):
        assert not cart.cudaMallocAsync(ctypes.byref(where), ctypes.c_size_t(size), stream)
        assert not cart.cudaFreeAsync(where, stream)

    def caching(size):
        torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(size))

    for size in (4096, 64 << 10, MIB, 16 * MIB, 256 * MIB):
        times = {act: [] for act in (naive, pool, caching)}
        for turn in range(205):
            for act, rows in times.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                act(size)
                rows.append(time.perf_counter() - start)
        found[size] = {act.__name__: statistics.median(rows[5:])
                       for act, rows in times.items()}
    return {"n": 200, "seconds": found}


def context():
    """Bytes on the device that the allocator does not know: context, libraries."""
    import torch
    first = used()
    torch.zeros(1, device="cuda")
    after_tensor = used() - torch.cuda.memory_reserved()
    job = Job(amp="bf16")
    for _ in range(3):
        job.step()
    torch.cuda.synchronize()
    seen = nvml()
    total = torch.cuda.get_device_properties(0).total_memory
    return {"used_at_start": first, "outside_after_first_tensor": after_tensor,
            "outside_after_training": used() - torch.cuda.memory_reserved(),
            "used": used(), "nvml_used": seen and seen[1], "total": total,
            "free": torch.cuda.mem_get_info()[0],
            "total_minus_reserved": total - torch.cuda.memory_reserved(),
            "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved()}


def variables():
    """The peak of one job; the caller sets environment variables."""
    job = Job(layers=2, amp="bf16")
    for _ in range(3):
        job.step()
    return counters()


def served(folder):
    """300 requests of random size to one model, as a server has them."""
    import torch
    record()
    job, chance, curve = Job(layers=4), random.Random(3), []
    job.model.to(torch.bfloat16)
    with torch.no_grad():
        for _ in range(300):
            ids = torch.randint(0, 32000, (chance.randrange(1, 17),
                                           chance.randrange(16, 512)), device="cuda")
            job.forward(ids)
            curve.append(torch.cuda.memory_reserved())
    return {"requests_served": 300, "reserved_at": {n: curve[n - 1] for n in
                                                    (1, 10, 30, 100, 200, 300)},
            "snapshot": keep(folder, "served"), **counters()}


QUESTIONS = {
    **{f"eval_{m}": lambda f, m=m: evaluation(f, m) for m in ("grad", "no_grad",
                                                              "inference")},
    **{f"losses_{m}": lambda f, m=m: losses(f, m) for m in ("append", "item", "graph")},
    **{f"cycles_{m}": lambda _, m=m: cycles(m) for m in ("no_cycle", "automatic",
                                                         "collect", "disabled")},
    "referrers": lambda _: referrers(), "summary": lambda _: summary(),
    "profiled": profiled, "retried": lambda _: retried(), "halved": halved,
    "lifetimes": lambda _: lifetimes(), "pruned": pruned,
    "quantised": lambda _: quantised(),
    "graphs": lambda f: graphs(f, True), "graphs_without": lambda f: graphs(f, False),
    "served": served, "variables": lambda _: variables(),
    "variables_set": lambda _: variables()}
# These look at the whole device or at times, so they run alone.
ALONE = {"context": lambda _: context(), "emptied": lambda _: emptied(),
         "fraction": lambda _: fraction(), "pinned": lambda _: pinned(),
         "polled": lambda _: polled(), "calls": lambda _: calls()}
ENVIRONMENT = {
    "variables_set": {"CUDA_LAUNCH_BLOCKING": "1", "NCCL_DEBUG": "INFO",
                      "PYTHONMALLOC": "malloc", "PYTHONUNBUFFERED": "1"},
    "nocache": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync",
              "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}}

# Step times: the jobs of one line run in turns, so many rounds.
TURNS = {
    "turns_gpt": (["gpt_fp32", "gpt_bf16", "gpt_fp16", "gpt_fp32_checkpoint",
                   "gpt_bf16_checkpoint"], 15),
    "turns_batch": (["gpt_b32", "gpt_b32_accumulate4", "gpt_b32_checkpoint"], 9),
    "turns_cnn": (["cnn_b8", "cnn_b32", "cnn_b32_bf16", "cnn_b32_fp16",
                   "cnn_b32_accumulate4", "cnn_b32_bf16_accumulate4",
                   "cnn_b32_checkpoint", "cnn_b32_bf16_checkpoint",
                   "separable_b32"], 12),
    "turns_linear": (["linear_fp32", "linear_bf16", "linear_b16384_fp32",
                      "linear_b16384_bf16"], 15),
    "turns_empty": (["varlen_never", "varlen_epoch", "varlen_step",
                     "varlen_drop_empty", "varlen_collect"], 40),
    "turns_allocator": (["gpt_bf16", "gpt_bf16@nocache", "gpt_bf16@async"], 20),
    "turns_losses": (["losses_append", "losses_item"], 5),
    "turns_serve": (["serve", "serve@nocache", "serve@async"], 100)}
WARM = 4


# ---- running them ----

def one(name, folder):
    """Runs one program here; prints its row as one line."""
    start = time.perf_counter()
    row = {"name": name}
    try:
        if name in TRAINING:
            row |= training(name, folder)
        else:
            row |= (QUESTIONS | ALONE)[name](folder)
    except Exception as error:  # pylint: disable=broad-except
        row["error"] = f"{type(error).__name__}: {str(error)[:300]}"
    row["seconds_all"] = round(time.perf_counter() - start, 2)
    print("\n" + json.dumps(row), flush=True)


def server():
    """One request of random size to a model, as a step."""
    import torch
    job, chance = Job(layers=4), random.Random(3)
    job.model.to(torch.bfloat16)

    def step():
        with torch.no_grad():
            job.forward(torch.randint(0, 32000, (chance.randrange(1, 17),
                                                 chance.randrange(16, 512)),
                                      device="cuda"))
    return step


def turn(name):
    """A step for each line on stdin; prints its seconds. Ready after WARM steps."""
    import torch
    if name.startswith("losses_"):
        def step():
            losses(None, name.removeprefix("losses_"), frames=False)
            torch.cuda.memory._record_memory_history(enabled=None)
    elif name.startswith("serve"):
        step = server()
    else:
        step = Job(**TRAINING[name.partition("@")[0]]).step
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for _ in sys.stdin:
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        print(time.perf_counter() - start, flush=True)


def environment(name):
    return os.environ | ENVIRONMENT.get(name.rpartition("@")[2], {})


def in_turns(name):
    """The row of one line of TURNS."""
    names, rounds = TURNS[name]
    start = time.perf_counter()
    jobs = {n: subprocess.Popen([sys.executable, HERE, "turn", n], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=environment(n)) for n in names}
    guard = threading.Timer(2 * SECONDS, lambda: [j.kill() for j in jobs.values()])
    guard.start()
    times = {n: [] for n in names}
    try:
        for n, job in jobs.items():
            if job.stdout.readline().strip() != "ready":
                times.pop(n)
        for turn_ in range(rounds):
            order = list(times)
            for n in order[turn_ % len(order):] + order[:turn_ % len(order)]:
                try:
                    jobs[n].stdin.write("step\n")
                    jobs[n].stdin.flush()
                    times[n].append(float(jobs[n].stdout.readline()))
                except (OSError, ValueError):
                    times.pop(n)
    finally:
        guard.cancel()
        for job in jobs.values():
            job.kill()
            job.wait()
    return {"name": name, "rounds": rounds, "failed": sorted(set(names) - set(times)),
            "seconds_median": {n: statistics.median(t) for n, t in times.items() if t},
            "seconds": {n: [round(v, 6) for v in t] for n, t in times.items()},
            "seconds_all": round(time.perf_counter() - start, 2)}


def apart(name, folder):
    """The row of one program, which runs in its own process."""
    try:
        done = subprocess.run([sys.executable, HERE, "one", name, folder], text=True,
                              check=False, capture_output=True, timeout=SECONDS,
                              env=environment(name))
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"more than {SECONDS} seconds"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"name"'):
            return json.loads(line)
    return {"name": name, "error": f"exit {done.returncode}: {done.stderr[-300:]}"}


def header(command):
    """Device, driver, date and command of a run."""
    code = ("import json, torch, sys; sys.path.insert(0, sys.argv[1]); "
            "import claims_programs as c; p = torch.cuda.get_device_properties(0); "
            "n = c.nvml(); print(json.dumps({'device': p.name, 'torch': "
            "torch.__version__, 'total_memory': p.total_memory, 'devices': "
            "torch.cuda.device_count(), 'cudnn': torch.backends.cudnn.version(), "
            "'driver': n and n[0]}))")
    done = subprocess.run([sys.executable, "-c", code, os.path.dirname(HERE)],
                          check=False, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1]) if done.stdout else \
        {"error": done.stderr[-300:]}
    return {"name": "header", **found, "command": command,
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}


def write_all(folder, only):
    """Runs all programs of one GPU; rows are written as they come."""
    rows = open(os.path.join(folder, "claims_runs.jsonl"), "a", encoding="utf-8")
    start = time.perf_counter()

    def put(row):
        rows.write(json.dumps(row) + "\n")
        rows.flush()
        print(f"{time.perf_counter() - start:7.1f} s  {row['name']}  "
              f"{row.get('error', 'ok')}", flush=True)

    def chosen(names):
        return [n for n in names if not only or n in only]

    put(header("paper/gpu/claims_programs.py all"))
    for name in chosen(ALONE):
        put(apart(name, folder))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for row in pool.map(lambda n: apart(n, folder),
                            chosen([*TRAINING, *QUESTIONS])):
            put(row)
    for name in chosen(TURNS):
        put(in_turns(name))


def pack(folder):
    """All snapshots become one file."""
    names = sorted(n for n in os.listdir(folder) if n.endswith(".pickle.xz"))
    with tarfile.open(os.path.join(folder, "claims_snapshots.tar"), "w") as tar:
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            os.remove(path)


# ---- two GPUs ----

def rank_main(rank, folder, rendezvous, out):
    """One rank: NCCL's bytes, DDP's and FSDP's, beside the same job alone."""
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    device = f"cuda:{rank}"
    small = torch.zeros(1, device=device)
    row = {"name": f"ranks_{rank}", "rank": rank, "used_at_start": used(rank)}

    def outside():
        torch.cuda.synchronize()
        return used(rank) - torch.cuda.memory_reserved(rank)

    torch.mm(torch.ones(64, 64, device=device), torch.ones(64, 64, device=device))
    row["outside_before_nccl"] = outside()
    dist.init_process_group("nccl", init_method="file://" + rendezvous, rank=rank,
                            world_size=2, device_id=torch.device(device))
    value = torch.full((1 << 20,), float(rank + 1), device=device)
    dist.all_reduce(value)
    row |= {"all_reduce_right": bool((value == 3).all()), "small": small.numel(),
            "rank_and_world": [dist.get_rank(), dist.get_world_size()],
            "current_device": torch.cuda.current_device(),
            "outside_after_all_reduce": outside()}
    del value

    def module(job):
        class Call(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = job.model

            def forward(self, x):
                return job.forward(x, self.model)
        return Call()

    def ddp(job):
        return torch.nn.parallel.DistributedDataParallel(module(job),
                                                         device_ids=[rank])

    def fsdp(job):
        from torch.distributed.fsdp import fully_shard
        call = module(job)
        for part in job.model.parts:
            fully_shard(part)
        return fully_shard(call)

    def put():
        with open(out, "w", encoding="utf-8") as file:
            json.dump(row, file)

    def stage(key, act):
        try:
            row[key] = act()
        except Exception as error:  # pylint: disable=broad-except
            row[key] = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        put()
        dist.barrier()

    def trained(kind, layers):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(rank)
        before, recorded = outside(), rank == 0 and layers == 8
        if recorded:
            record(frames=True)
        wrap = {"alone": None, "ddp": ddp, "fsdp": fsdp}[kind]
        job = Job(layers=layers, amp="bf16", device=device, wrap=wrap)
        steady = torch.cuda.memory_allocated(rank)
        for _ in range(3):
            job.step()
        found = {"outside_before": before, "outside": outside(), "steady": steady,
                 "parameter_bytes": sum(4 * p.numel() for p in job.model.parameters()),
                 "used": used(rank), **counters(rank)}
        if recorded:
            found["snapshot"] = keep(folder, f"ranks_{kind}")
        return found

    for layers in (1, 8):
        stage(f"alone_{layers}", lambda n=layers: trained("alone", n))
        stage(f"ddp_{layers}", lambda n=layers: trained("ddp", n))
    stage("sampler", lambda: sampled(rank, device))
    for layers in (1, 8):
        stage(f"fsdp_{layers}", lambda n=layers: trained("fsdp", n))
    put()
    dist.destroy_process_group()


def sampled(rank, device):
    """DistributedSampler deals out samples by number; their lengths differ."""
    import torch
    from torch.utils.data import DistributedSampler
    chance = random.Random(5)
    lengths = [int(64 * 2 ** (4 * chance.random())) for _ in range(64)]
    mine = list(DistributedSampler(range(64), num_replicas=2, rank=rank, shuffle=False))
    torch.cuda.empty_cache()
    job, peaks = Job(layers=4, amp="bf16", device=device), {}
    for kind in ("equal", "different"):
        torch.cuda.reset_peak_memory_stats(rank)
        base = torch.cuda.memory_allocated(rank)
        for at in range(0, 32, 8):
            job.length = max(lengths[i] for i in mine[at:at + 8]) \
                if kind == "different" else 512
            job.step()
        peaks[kind] = torch.cuda.max_memory_allocated(rank) - base
    return {"samples": len(mine), "tokens": sum(lengths[i] for i in mine), **peaks}


def pair():
    """One process and two GPUs: pools, a transfer, a model cut in two."""
    import torch
    for device in (0, 1):
        torch.zeros(1, device=f"cuda:{device}")
    row = {"name": "pair", "start": [used(0), used(1)]}
    data = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda:0")
    row["after_data"] = [torch.cuda.memory_allocated(d) for d in (0, 1)]
    other = data.to("cuda:1")
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    row |= {"after_transfer": [torch.cuda.memory_allocated(d) for d in (0, 1)],
            "same": bool(other.numel() == data.numel())}
    del data, other
    row |= {"after_del": [torch.cuda.memory_allocated(d) for d in (0, 1)],
            "reserved_after_del": [torch.cuda.memory_reserved(d) for d in (0, 1)]}
    torch.cuda.set_device(1)
    text = torch.cuda.memory_summary(device=None)
    row["summary_of_none"] = [w.strip(" |,") for w in text.splitlines() if "device ID" in w]
    torch.cuda.set_device(0)
    torch.cuda.empty_cache()
    row["after_empty_cache"] = [torch.cuda.memory_reserved(d) for d in (0, 1)]
    for kind, split in (("whole", False), ("split", True)):
        for device in (0, 1):
            torch.cuda.reset_peak_memory_stats(device)
        job = Job(amp="bf16")
        if split:
            half = len(job.model.parts) // 2
            for part in [*job.model.parts[half:], job.model.head]:
                part.to("cuda:1")

            def call(x, job=job, half=half):
                x = job.model.enter(x)
                for number, part in enumerate(job.model.parts):
                    x = part(x.to("cuda:1") if number == half else x)
                return job.model.leave(x)
            job.call = call
            job.loss_of = lambda out, wanted, f=job.loss_of: f(out, wanted.to("cuda:1"))
            for device in (0, 1):
                torch.cuda.reset_peak_memory_stats(device)
        for _ in range(3):
            job.step()
        row[kind] = [torch.cuda.max_memory_allocated(d) for d in (0, 1)]
        del job
        gc.collect()
    print("\n" + json.dumps(row), flush=True)


def write_two(folder):
    """The part with two GPUs."""
    rows = open(os.path.join(folder, "claims_two.jsonl"), "a", encoding="utf-8")
    rows.write(json.dumps(header("paper/gpu/claims_programs.py two")) + "\n")
    meeting = os.path.join(folder, f"meeting{os.getpid()}")
    outs = [os.path.join(folder, f"rank{r}.json") for r in (0, 1)]
    ranks = [subprocess.Popen([sys.executable, HERE, "rank", str(r), folder, meeting,
                               outs[r]]) for r in (0, 1)]
    try:
        for process in ranks:
            process.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        for process in ranks:
            process.kill()
    for number, path in enumerate(outs):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                rows.write(file.read() + "\n")
            os.remove(path)
        else:
            rows.write(json.dumps({"name": f"ranks_{number}", "error": "no result"}) + "\n")
    done = subprocess.run([sys.executable, HERE, "pair"], check=False, text=True,
                          capture_output=True, timeout=SECONDS)
    lines = [ln for ln in done.stdout.splitlines() if ln.startswith('{"name"')]
    rows.write((lines[-1] if lines else json.dumps(
        {"name": "pair", "error": done.stderr[-300:]})) + "\n")
    rows.close()
    if os.path.exists(meeting):
        os.remove(meeting)


def main():
    what, *rest = sys.argv[1:]
    if what == "one":
        one(rest[0], rest[1] if len(rest) > 1 else None)
    elif what == "turn":
        turn(rest[0])
    elif what == "rank":
        rank_main(int(rest[0]), rest[1], rest[2], rest[3])
    elif what == "pair":
        pair()
    elif what == "two":
        write_two(rest[0])
    elif what == "pack":
        pack(rest[0])
    elif what == "all":
        write_all(rest[0], set(rest[1:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
