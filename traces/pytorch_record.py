#!/usr/bin/env python3
"""pytorch_record.py SCRIPT [ARGUMENT...]: runs a PyTorch script and records what
its CUDA allocator is asked and answers, as fragsim's commands read it.

Writes PREFIX.rankR.oom.pickle when the allocator runs out of memory (the last
time counts) and PREFIX.rankR.exit.pickle at the end; R is the rank in a job of
several processes ($RANK, as torchrun sets it), PREFIX is $FRAGSIM_RECORD or
"snapshot". A program that has a place of its own for it calls start() instead.
Needs PyTorch 2.1 or later, and nothing of fragsim.
"""
import atexit
import os
import runpy
import sys

import torch


def start(prefix=os.environ.get("FRAGSIM_RECORD", "snapshot")):
    """Records from here on."""
    name = f"{prefix}.rank{os.environ.get('RANK', 0)}"

    def dump(why):
        torch.cuda.memory._dump_snapshot(f"{name}.{why}.new")
        os.replace(f"{name}.{why}.new", f"{name}.{why}.pickle")

    torch.cuda.memory._record_memory_history()
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: dump("oom"))
    atexit.register(dump, "exit")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    start()
    runpy.run_path(sys.argv[0], run_name="__main__")
