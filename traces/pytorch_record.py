#!/usr/bin/env python3
"""pytorch_record.py SCRIPT [ARGUMENT...]: runs a PyTorch script and records the
requests to its CUDA allocator and the results, in files that every fragsim
command reads.

The recorder writes PREFIX.rankR.oom.pickle each time the allocator runs out of
memory (a later file replaces an earlier one), and PREFIX.rankR.exit.pickle when
the script ends. PREFIX is $FRAGSIM_RECORD, or "snapshot" if it is not set. R is
the rank of the process, $RANK as torchrun sets it, or 0. A program can also
import this file and call start() itself. The recorder needs PyTorch 2.1 or
later and no other part of fragsim.
"""
import atexit
import os
import runpy
import sys

import torch


def start(prefix=os.environ.get("FRAGSIM_RECORD", "snapshot")):
    """Starts the recording and arranges for both files to be written."""
    name = f"{prefix}.rank{os.environ.get('RANK', 0)}"

    def dump(why):
        # A killed process leaves no half-written .pickle: the rename is last.
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
