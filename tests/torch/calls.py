"""Prints as JSON how often a program calls the driver once it has its memory.
usage: calls.py native|POLICY; needs the stand-in.

`one` is a step on one stream; in `several`, another stream uses a part of the
blocks of a step too.
"""
import ctypes
import json
import random
import sys

import torch

NAMES = ["cuMemAlloc_v2", "cuMemFree_v2", "cuMemCreate", "cuMemRelease",
         "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuCtxPushCurrent_v2",
         "cuCtxSynchronize", "cuEventCreate", "cuEventRecord", "cuEventQuery",
         "cuStreamWaitEvent"]
fake = ctypes.CDLL("libcuda.so.1")
fake.fake_cuda_calls.restype = ctypes.c_uint64


def step(shared):
    r, live = random.Random(1), []
    for i in range(200):
        live.append(torch.empty(r.randrange(1, 3 << 20), dtype=torch.uint8,
                                device="cuda"))
        if shared and i % 8 == 0:
            live[-1].record_stream(other)
        if i % 2:
            live.pop(r.randrange(len(live)))


def calls(shared):
    for _ in range(10):
        step(shared)
    before = [fake.fake_cuda_calls(name.encode()) for name in NAMES]
    for _ in range(10):
        step(shared)
    return {name: fake.fake_cuda_calls(name.encode()) - count
            for name, count in zip(NAMES, before)}


if sys.argv[1] != "native":
    import fragsim_torch
    assert fragsim_torch.use(sys.argv[1]) == "class"
other = torch.cuda.Stream()
print(json.dumps({"one": calls(False), "several": calls(True)}))
