"""Prints as JSON how often a program calls the driver once it has its memory.
usage: calls.py native|POLICY; needs the stand-in.

`one` is a step on one stream; in `several`, another stream uses a part of the
blocks of a step too. In `refused`, requests exceed the limit of the program, and
some of them the device.
"""
import ctypes
import json
import random
import sys

import torch

NAMES = ["cuMemAlloc_v2", "cuMemFree_v2", "cuMemCreate", "cuMemRelease",
         "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAddressReserve",
         "cuMemAddressFree", "cuCtxPushCurrent_v2",
         "cuCtxSynchronize", "cuEventCreate", "cuEventRecord", "cuEventQuery",
         "cuStreamWaitEvent"]
driver = ctypes.CDLL("libcuda.so.1")
driver.frag_dry_calls.restype = ctypes.c_uint64


def step(shared):
    r, live = random.Random(1), []
    for i in range(200):
        live.append(torch.empty(r.randrange(1, 3 << 20), dtype=torch.uint8,
                                device="cuda"))
        if shared and i % 8 == 0:
            live[-1].record_stream(other)
        if i % 2:
            live.pop(r.randrange(len(live)))


def refused():
    for size in (1 << 42, torch.cuda.mem_get_info()[1] - (1 << 29)):
        try:
            torch.empty(size, dtype=torch.uint8, device="cuda")
            raise ValueError(f"{size} bytes were served")
        except torch.OutOfMemoryError:
            pass


def calls(act, *args):
    for _ in range(10):
        act(*args)
    before = [driver.frag_dry_calls(name.encode()) for name in NAMES]
    for _ in range(10):
        act(*args)
    return {name: driver.frag_dry_calls(name.encode()) - count
            for name, count in zip(NAMES, before)}


if sys.argv[1] != "native":
    import fragsim_torch
    assert fragsim_torch.use(sys.argv[1]) == "class"
other = torch.cuda.Stream()
found = {"one": calls(step, False), "several": calls(step, True)}
torch.cuda.set_per_process_memory_fraction(0.5)
found["refused"] = calls(refused)
print(json.dumps(found))
