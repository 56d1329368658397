"""Ends while blocks are live, one of them in a thread, and a graph exists. usage:
exits.py native|POLICY

The thread does not allocate at the end: Python ends such a thread inside
PyTorch's code, which aborts the program under any allocator."""
import sys
import threading

import torch

if sys.argv[1] != "native":
    import fragsim_torch
    fragsim_torch.use(sys.argv[1])

live = [torch.empty(1 << 20, device="cuda") for _ in range(8)]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = torch.empty(1 << 20, device="cuda")
started = threading.Event()


def work():
    block = torch.empty(3 << 20, device="cuda")
    block.record_stream(torch.cuda.Stream())
    started.set()
    threading.Event().wait()


threading.Thread(target=work, daemon=True).start()
started.wait()
print("the end")
