"""A program of which the policy `torch` and PyTorch's own allocator must report
the same. usage: same.py native|POLICY; prints the reports as JSON.

A seeded sequence of requests on two streams, with frees, late frees, an
emptied cache and refused requests.
"""
import gc
import json
import random
import re
import sys

import torch

MIB = 1 << 20


def sizes(r):
    kind = r.random()
    if kind < 0.4:
        return r.randrange(1, 4096)
    if kind < 0.6:
        return r.randrange(4096, MIB + 1)
    if kind < 0.9:
        return r.randrange(MIB, 12 * MIB)
    return r.randrange(12 * MIB, 60 * MIB)


def blocks():
    """The segments by address order, without the addresses."""
    out = []
    for s in torch.cuda.memory._snapshot()["segments"]:
        out.append([s["total_size"], s["allocated_size"], s["active_size"],
                    s["requested_size"], s["segment_type"],
                    [[b["size"], b["requested_size"], b["state"]]
                     for b in s["blocks"]]])
    return sorted(out)


def history():
    return [[e["action"], e["size"]]
            for e in torch.cuda.memory._snapshot()["device_traces"][0]
            if e["action"] != "snapshot"]


def refused(size):
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        return re.findall(r"Tried to allocate ([\d.]+ \w+)\. GPU (\d+) has a "
                          r"total capacity of ([\d.]+ \w+) of which ([\d.]+ "
                          r"\w+) is free\. .*Of the allocated memory ([\d.]+ "
                          r"\w+) is allocated by PyTorch, and ([\d.]+ \w+) is "
                          r"reserved by PyTorch but unallocated", str(error))
    raise AssertionError("a request of more than the device was served")


def main():
    if sys.argv[1] != "native":
        import fragsim_torch
        assert fragsim_torch.use(sys.argv[1]) == "class"
    r = random.Random(1)
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(
        lambda *numbers: seen.append(numbers))
    torch.cuda.memory._record_memory_history(context=None, stacks="python")
    streams = [torch.cuda.default_stream(), torch.cuda.Stream()]
    live, reports = [], []
    for step in range(1500):
        if live and r.random() < 0.48:
            live.pop(r.randrange(len(live)))
        else:
            at = r.randrange(2)
            with torch.cuda.stream(streams[at]):
                block = torch.empty(sizes(r), dtype=torch.uint8, device="cuda")
            if r.random() < 0.05:
                block.record_stream(streams[1 - at])
            live.append(block)
            del block
        if step % 251 == 250:
            torch.cuda.empty_cache()
        if step % 400 == 399:
            reports.append(refused(1 << 40))
        if step % 100 == 99:
            reports.append(dict(torch.cuda.memory_stats(), at=step))
            reports.append(blocks())
        if step == 700:
            torch.cuda.reset_peak_memory_stats()
        if step == 900:
            torch.cuda.reset_accumulated_memory_stats()
    live.clear()
    gc.collect()
    torch.cuda.empty_cache()
    reports.append(dict(torch.cuda.memory_stats(), at="the end"))
    reports.append(blocks())
    print(json.dumps({"reports": reports, "history": history(), "seen": seen}))


main()
