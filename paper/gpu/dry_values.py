#!/usr/bin/env python3
"""dry_values.py record FILE | force FILE | without PART[,PART] PROGRAM [ARGUMENT...]:
removes a cause for which a run without a GPU differs from a GPU.

record   runs the program on a GPU and writes each value that PyTorch reads there, a line
         of operator and value, into FILE
force    below `fragsim dry`: each read of an operator yields the next value of FILE that
         was read by the same operator; ends with an error if FILE has no more of it
without  runs the program, with or without a GPU, without a part of PyTorch: cudnn, or
         casts, the cache of autocast

With the values of the GPU, or without the part on both sides, both runs have the same
requests, if nothing but the values or the part made the difference.
"""
import collections
import contextlib
import os
import runpy
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that read, and what they read of their result.
READ = {"aten::nonzero": lambda out: out.shape[0],
        "aten::_unique2": lambda out: out[0].shape[0],
        "aten::masked_select": lambda out: out.shape[0],
        "torchvision::nms": lambda out: out.shape[0],
        "aten::_local_scalar_dense": float}


class Record(TorchDispatchMode):
    def __init__(self, path):
        super().__init__()
        self.out = open(path, "w", encoding="ascii")  # pylint: disable=consider-using-with

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in READ and args[0].is_cuda:
            print(name, READ[name](out), file=self.out, flush=True)
        return out


class Force(TorchDispatchMode):
    """`now` is where the stand-ins look for what a read yields."""

    def __init__(self, path, now):
        super().__init__()
        self.now, self.values = now, collections.defaultdict(collections.deque)
        with open(path, encoding="ascii") as file:
            for name, value in map(str.split, file):
                self.values[name].append(float(value))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name not in READ or not args[0].is_cuda:
            return func(*args, **(kwargs or {}))
        value = self.values[name].popleft()
        self.now.value = (value, args[0].dtype if name.endswith("dense") else None)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.now.value = None


def stand_in():
    """The state of the module that `fragsim dry` loaded (real/dry/fragsim_dry.py)."""
    return next(m for m in list(sys.modules.values())
                if os.path.basename(getattr(m, "__file__", None) or "")
                == "fragsim_dry.py")._now


def without(parts):
    if "cudnn" in parts:
        torch.backends.cudnn.enabled = False
    if "casts" in parts:
        torch.set_autocast_cache_enabled(False)
    return contextlib.nullcontext()


def main():
    verb, what, *program = sys.argv[1:]
    mode = {"record": Record, "force": lambda path: Force(path, stand_in()),
            "without": lambda parts: without(parts.split(","))}[verb](what)
    sys.argv = program
    with mode:
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
