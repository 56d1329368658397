"""Peer access that the program enabled before use() covers the memory that the
policy maps later. usage: peers.py POLICY; needs the stand-in with 3 devices, of
which 0 and 1 access each other; asking for that enables no other access.
"""
import ctypes
import sys

import torch

import fragsim_torch

MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
driver.frag_dry_may.restype = ctypes.c_bool


def may(device, tensor):
    return driver.frag_dry_may(ctypes.c_int(device),
                              ctypes.c_uint64(tensor.data_ptr()),
                              ctypes.c_size_t(tensor.numel()))


def blocks():
    return [torch.empty(3 * MIB, dtype=torch.uint8, device=f"cuda:{i}")
            for i in range(3)]


def rights(rows):
    return [[may(i, row) for i in range(3)] for row in rows]


before = blocks()
before[0].copy_(before[1])  # PyTorch enables the access
before[1].copy_(before[0])
expected = [[True, True, False], [True, True, False], [False, False, True]]
assert rights(before) == expected, rights(before)
assert fragsim_torch.use(sys.argv[1]) == "class"
after = blocks()
assert rights(after) == expected, rights(after)
assert rights(before) == expected, rights(before)
print(all(fragsim_torch.reserved(i) for i in range(3)))
