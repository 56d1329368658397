"""Runs PyTorch's memory on a policy of fragsim.

    import fragsim_torch
    fragsim_torch.use()            # before anything is put on a GPU
    ...
    fragsim_torch.peak_reserved()  # bytes, of device 0

For a part of a program, use `with
torch.cuda.use_mem_pool(fragsim_torch.pool())`. The environment selects the
policy: FRAGSIM_POLICY, FRAGSIM_CAPACITY, FRAGSIM_OUTPUT (see adaptor.h). The
library is searched at FRAGSIM_TORCH_LIBRARY, beside this file, and where an
installation puts it.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libfragsim_torch.so"
PLACES = [os.environ.get("FRAGSIM_TORCH_LIBRARY", ""), os.path.join(HERE, NAME),
          os.path.join(HERE, "..", "..", "lib", "fragsim", NAME),
          os.path.join(HERE, "lib", "fragsim", NAME)]  # in the Python package


def _path() -> str:
    for place in PLACES:
        if os.path.isfile(place):
            return os.path.realpath(place)
    raise FileNotFoundError(f"{NAME} is in none of {PLACES}; set "
                            "FRAGSIM_TORCH_LIBRARY to its path")


_library = ctypes.CDLL(_path())
_made: list[Any] = []  # PyTorch does not keep a reference


def _allocator() -> Any:
    if not _made:
        made = torch.cuda.memory.CUDAPluggableAllocator(
            _path(), "frag_torch_alloc", "frag_torch_free")
        for hook, function in (("set_record_stream_fn",
                                _library.frag_torch_record_stream),
                               ("set_reset_fn",
                                _library.frag_torch_empty_cache)):
            getattr(made.allocator(), hook)(
                ctypes.cast(function, ctypes.c_void_p).value)
        _made.append(made)
    return _made[0]


def use() -> None:
    """Serves all of the program's requests by the policy from here on."""
    torch.cuda.memory.change_current_allocator(_allocator())


def pool() -> Any:
    """Returns a memory pool whose segments come from the policy."""
    return torch.cuda.MemPool(_allocator().allocator())


def _read(name: str, *device: int) -> int:
    function = getattr(_library, name)
    function.restype = ctypes.c_size_t
    return int(function(*device))


def reserved(device: int = 0) -> int:
    return _read("frag_torch_reserved", device)


def peak_reserved(device: int = 0) -> int:
    return _read("frag_torch_peak_reserved", device)


def peak_allocated(device: int = 0) -> int:
    return _read("frag_torch_peak_allocated", device)


def driver_calls(device: int = 0) -> int:
    return _read("frag_torch_driver_calls", device)


def driver_ns(device: int = 0) -> int:
    """Time spent in the driver's calls."""
    return _read("frag_torch_driver_ns", device)


def timed(on: bool) -> None:
    """Turns the timing of requests and frees on or off."""
    _library.frag_torch_timed(int(on))


def timed_calls() -> int:
    """Number of requests and frees that were timed."""
    return _read("frag_torch_timed_calls")


def timed_ns() -> int:
    """Time spent in the timed requests and frees."""
    return _read("frag_torch_timed_ns")
