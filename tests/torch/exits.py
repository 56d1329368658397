"""Ends while blocks are live, a thread allocates and a graph exists. usage:
exits.py POLICY"""
import sys
import threading

import torch

import fragsim_torch

fragsim_torch.use(sys.argv[1])
live = [torch.empty(1 << 20, device="cuda") for _ in range(8)]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = torch.empty(1 << 20, device="cuda")
started = threading.Event()


def work():
    while True:
        block = torch.empty(3 << 20, device="cuda")
        block.record_stream(torch.cuda.Stream())
        started.set()


threading.Thread(target=work, daemon=True).start()
started.wait()
print("the end")
