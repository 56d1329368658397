"""Shares a block with other processes. usage: ipc.py native|POLICY; prints what
another process would receive, without addresses, or the refusal."""
import sys

import torch

if sys.argv[1] != "native":
    import fragsim_torch
    assert fragsim_torch.use(sys.argv[1]) == "class"

a = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
b = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
try:
    shared = b.untyped_storage()._share_cuda_()
    # device, handle, bytes, offset; the stand-in's handle begins with the
    # process and the address
    print(shared[0], len(shared[1]), shared[1][:2], shared[1][18:].count(0),
          shared[2], shared[3])
except RuntimeError as error:
    print(str(error).splitlines()[0])
