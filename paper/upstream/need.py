#!/usr/bin/env python3
"""need.py: the smallest limit of the process (set_per_process_memory_fraction) at
which a program ends, by bisection, and the calls of the driver at some limits.

usage: need.py OUT.csv LABEL SETTINGS [PROGRAM...]

Runs in the Python whose PyTorch is measured, on a GPU or on the stand-ins for
CUDA's libraries (LD_LIBRARY_PATH). Each trial is a process of its own. A row is a
program under SETTINGS and one limit: unlimited, the least limit at which it ends
(share "need"), and shares of the peak of the allocated bytes. Calls are counted
from the trace: a map of N bytes creates and maps N / page handles and sets access
once; an unmap waits for the stream, and unmaps and releases each of its handles.
"""
import csv
import json
import os
import random
import sys
import time

MIB = 1 << 20
UNIT = 2 * MIB  # the limits tried
SHARES = (1.02, 1.05, 1.25)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu", "releases"))
os.environ["FRAGSIM_DRY_LEAKS"] = "1"  # what is held at the end is no fault


# ---- programs ----

def random_script(torch, seed):
    """The random scripts of tests/gpu/releases, without handling of OOM."""
    import scripts
    scripts.torch = torch

    class Script(scripts.Script):
        def allocate(self):
            rng = self.rng
            size = rng.choice(self.usual) if rng.random() < self.repeats \
                else self.draw()
            self.live.append((torch.empty(size, dtype=torch.uint8,
                                          device="cuda"), 0))

    script = Script(random.Random(seed), [torch.cuda.default_stream()], 0, False)
    for _ in range(1000):
        script.step()


def train(torch, model, batches, accumulate=1):
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for at, batch in enumerate(batches):
        model(batch).sum().backward()
        if at % accumulate == accumulate - 1:
            optimizer.step()
            optimizer.zero_grad()


def layers(torch, width, depth, causal=False):
    layer = torch.nn.TransformerEncoderLayer(
        width, 16, 4 * width, batch_first=True, norm_first=True, dropout=0.1)
    return torch.nn.TransformerEncoder(layer, depth,
                                       enable_nested_tensor=False).cuda()


def lengths(torch, seed, count, width, batch, low, high):
    rng = random.Random(seed)
    for _ in range(count):
        yield torch.empty(batch, rng.randint(low, high), width, device="cuda")


def mlp(torch):
    nn = torch.nn
    model = nn.Sequential(*[part for _ in range(8) for part in
                            (nn.Linear(2048, 2048), nn.GELU())]).cuda()
    rng = random.Random(1)
    train(torch, model, (torch.empty(rng.randint(64, 4096), 2048, device="cuda")
                         for _ in range(16)))


def varlen(torch):
    train(torch, layers(torch, 512, 6),
          lengths(torch, 2, 16, 512, 8, 64, 768))


def wide_varlen(torch):
    train(torch, layers(torch, 1024, 8),
          lengths(torch, 3, 14, 1024, 4, 128, 1024))


def accumulate(torch):
    train(torch, layers(torch, 768, 6),
          lengths(torch, 4, 16, 768, 6, 100, 700), accumulate=4)


def checkpointed(torch):
    from torch.utils.checkpoint import checkpoint
    model = layers(torch, 1024, 8)

    def forward(batch):
        for layer in model.layers:
            batch = checkpoint(layer, batch, use_reentrant=False)
        return batch

    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for batch in lengths(torch, 5, 12, 1024, 8, 128, 1200):
        batch.requires_grad_()
        forward(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def cache(torch):
    """Requests of several lengths that each keep a growing cache."""
    rng, held = random.Random(6), []
    with torch.no_grad():
        for _ in range(30):
            held.append([torch.empty(16, rng.randint(1, 64), 1024, device="cuda")
                         for _ in range(24)])
            for one in held:
                for at, item in enumerate(one):
                    grown = torch.empty(16, item.shape[1] + 1, 1024, device="cuda")
                    one[at] = grown
            if len(held) > 8:
                held.pop(rng.randrange(len(held)))


PROGRAMS = {f"random_{seed}": lambda torch, seed=seed: random_script(torch, seed)
            for seed in (11, 12, 13)}
PROGRAMS.update({each.__name__: each for each in
                 (mlp, varlen, wide_varlen, accumulate, checkpointed, cache)})


# ---- trials ----

def calls(torch, settings):
    page = 20 * MIB
    if "expandable_segments_page_mb:" in settings:
        page = int(settings.split("expandable_segments_page_mb:")[1]
                   .split(",")[0]) * MIB
    found = dict.fromkeys(("creates", "accesses", "unmaps", "releases"), 0)
    for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
        count = entry["size"] // (page if entry["size"] % page == 0 else 2 * MIB)
        if entry["action"] == "segment_map":
            found["creates"] += count
            found["accesses"] += 1
        elif entry["action"] == "segment_unmap":
            found["unmaps"] += 1
            found["releases"] += count
        elif entry["action"] == "segment_alloc":
            found["creates"] += 1
        elif entry["action"] == "segment_free":
            found["releases"] += 1
    return found


def child(name, settings, limit, pipe):
    import torch
    torch.manual_seed(0)
    if limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total)
    torch.cuda.memory._record_memory_history(context=None, max_entries=4000000)
    begin, fits = time.monotonic(), True
    try:
        PROGRAMS[name](torch)
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        fits = False
    took = time.monotonic() - begin
    stats = torch.cuda.memory_stats()
    os.write(pipe, json.dumps({
        "fits": fits, "allocated": stats["allocated_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"], "seconds": round(took, 3),
        **calls(torch, settings)}).encode())
    os._exit(0)


def trial(name, settings, limit=0):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        child(name, settings, limit, write)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(pid, 0)
    if not text:
        raise SystemExit(f"{name} with {settings!r} at {limit}: the process died")
    return json.loads(text)


def need(name, settings, free):
    """The least limit, to UNIT bytes, at which the program ends; outcomes above
    it are not tried."""
    low, high = free["allocated"] // UNIT - 1, -(-free["reserved"] // UNIT)
    while not trial(name, settings, high * UNIT)["fits"]:
        high += high // 8 + 1
    while high - low > 1:
        middle = (low + high) // 2
        if trial(name, settings, middle * UNIT)["fits"]:
            high = middle
        else:
            low = middle
    return high * UNIT


def main():
    out, label, settings = sys.argv[1:4]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
    import torch  # noqa: F401, before the forks; it does not touch CUDA
    columns = ["label", "settings", "program", "share", "limit", "fits",
               "allocated", "reserved", "retries", "creates", "accesses",
               "unmaps", "releases", "seconds"]
    is_new = not os.path.exists(out)
    with open(out, "a", encoding="ascii", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()

        def row(name, share, limit, found):
            writer.writerow({"label": label, "settings": settings, "program": name,
                             "share": share, "limit": limit, **found})
            file.flush()

        for name in sys.argv[4:] or PROGRAMS:
            free = trial(name, settings)
            if not free["fits"]:
                raise SystemExit(f"{name} does not fit the device")
            row(name, "inf", "", free)
            least = need(name, settings, free)
            row(name, "need", least, trial(name, settings, least))
            for share in SHARES:
                limit = int(share * free["allocated"])
                row(name, share, limit, trial(name, settings, limit))
            print(label, name, f"need {least / free['allocated']:.4f} of the peak",
                  flush=True)


if __name__ == "__main__":
    main()
