"""A program that goes on after every fault. usage: faults.py POLICY; prints the
number of exceptions that it saw.

FAKE_CUDA_FAIL_AT makes one call of the driver fail. The contents of each live
block are compared after each step; a wrong byte ends the program with 3.
"""
import sys

import torch

import fragsim_torch

MIB = 1 << 20
seen = 0


def attempt(what, *args):
    """Only these two exceptions may reach a program."""
    global seen
    try:
        return what(*args)
    except (torch.OutOfMemoryError, RuntimeError):
        seen += 1
        return None


def filled(size, value, stream):
    data = torch.full((size,), value, dtype=torch.uint8)
    with torch.cuda.stream(stream):
        return data.to("cuda")


def check(live):
    for block, value in live:
        back = attempt(block.cpu)
        if back is not None and not bool((back == value).all()):
            print("wrong byte")
            sys.exit(3)


fragsim_torch.use(sys.argv[1])
try:
    torch.cuda.init()
except RuntimeError as error:  # PyTorch cannot use the device after that
    print(error)
    sys.exit(0)
streams = [s for s in (attempt(torch.cuda.default_stream),
                       attempt(torch.cuda.Stream)) if s is not None]
live = []
for step in range(24 if streams else 0):
    size = (step * 7919 * 131) % (9 * MIB) + 1
    block = attempt(filled, size, step % 251, streams[step % len(streams)])
    if block is not None:
        live.append((block, step % 251))
    del block
    if step % 3 == 2 and live:
        attempt(live[0][0].record_stream, streams[-1])
        live.pop(0)
    if step % 8 == 7:
        attempt(torch.cuda.empty_cache)
        attempt(torch.cuda.memory_stats)
        attempt(torch.cuda.memory._snapshot)
    if step == 12:
        attempt(lambda: torch.empty(1 << 40, device="cuda"))
    if step % 4 == 0:
        check(live)
attempt(torch.cuda.synchronize)
check(live)
live.clear()
print(seen)
