#!/usr/bin/env python3
"""pool_programs.py: small programs that use PyTorch's pools, its pinned memory and
the metadata of its snapshots. Each runs in the environment of a release of PyTorch
on the stand-ins for CUDA's libraries, and writes the snapshot that PyTorch takes.

usage: pool_programs.py NAME FOLDER

NAME is a function below. FOLDER/NAME.json has the counters of memory_stats and the
limit of the process.
"""
import ctypes
import json
import os
import pickle
import sys

import torch

MIB = 1 << 20


def new(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def mem_pool():
    """Requests in a MemPool and outside of it, on two streams."""
    pool, other = torch.cuda.MemPool(), torch.cuda.Stream()
    kept = [new(3), new(0.1)]
    with torch.cuda.use_mem_pool(pool):
        kept += [new(12), new(0.2)]
        new(30)
        with torch.cuda.stream(other):
            kept.append(new(5))
    new(30)  # of the common pool, although the MemPool has room for it
    del kept[2]
    kept.append(new(12))
    return pool, kept


def no_split():
    """A MemPool whose segments serve one block each."""
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        kept = [new(3), new(0.1), new(25)]
        new(40)
        kept.append(new(30))
    return pool, kept, new(2)


def use_on_oom():
    """A full device: a request outside of a MemPool takes the pool's free memory."""
    limit(256)
    pool = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        new(100)
    kept = [new(100), new(40)]
    new(60)
    kept.append(new(80))
    return pool, kept


def two_pools():
    """Two MemPools, of which the first is deleted and its memory returned."""
    first, second = torch.cuda.MemPool(), torch.cuda.MemPool()
    for pool in (first, second, first):
        with torch.cuda.use_mem_pool(pool):
            new(24)
            kept = new(6)
    del kept, first, pool
    torch.cuda.empty_cache()
    return second, new(24)


def graph():
    """A capture, whose frees are reused inside of it."""
    weights, captured = new(16), torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(3):
            out = new(8)
            new(20)
            new(0.3)
    captured.replay()
    return captured, weights, out, new(20)


def shared_graphs():
    """Three captures: two in the pool of a handle, one in its own."""
    pool = torch.cuda.graph_pool_handle()
    graphs = [torch.cuda.CUDAGraph() for _ in range(3)]
    kept = []
    for captured, handle in zip(graphs, (pool, pool, None)):
        with torch.cuda.graph(captured, pool=handle):
            kept.append(new(4))
            new(48)
    graphs[2].reset()
    return graphs, kept


def checkpoint():
    """A pool that is set back to a checkpoint, as the trees of cudagraphs do."""
    def pool_of(mib):
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, pool=handle, stream=stream):
            out = new(mib)
            new(2 * mib)
        return captured, out

    handle, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
    device = torch.cuda.current_device()
    first, out = pool_of(16)
    state = torch._C._cuda_getCheckpointState(device, handle)
    second, later = pool_of(10)
    stale = [t.untyped_storage()._cdata for t in (out, later)]
    torch._C._cuda_setCheckpointPoolState(device, state, stale, [])
    third, last = pool_of(12)
    return first, second, third, out, later, last


def pinned():
    """Pinned host memory, of which one block is in use by a copy."""
    blocks = [torch.empty(n, dtype=torch.uint8, pin_memory=True)
              for n in (1000, 3 * MIB, 5 * MIB)]
    moved = blocks[1].to("cuda", non_blocking=True)
    del blocks[1]
    blocks.append(torch.empty(2 * MIB, dtype=torch.uint8, pin_memory=True))
    return blocks, moved


def metadata():
    """Texts and JSON values as metadata, in a pool too, and annotations."""
    memory, pool = torch.cuda.memory, torch.cuda.MemPool()
    memory._set_memory_metadata("weights")
    weights = new(12)
    memory._set_memory_metadata({"phase": "prefill", "request": 7})
    with torch.cuda.use_mem_pool(pool):
        cache = new(40)
    memory._set_memory_metadata("")
    rest = new(5)
    memory._annotate_tensor(weights, "packed by AddmmBackward0")
    return pool, weights, cache, rest


def expandable():
    """MemPools and a capture in expandable segments."""
    pool, captured = torch.cuda.MemPool(), torch.cuda.CUDAGraph()
    with torch.cuda.use_mem_pool(pool):
        kept = [new(3), new(0.1)]
        new(70)
        kept.append(new(15))
    with torch.cuda.graph(captured):
        kept.append(new(7))
        new(33)
    new(90)
    return pool, captured, kept


def oom_in_pool():
    """A job that dies in a MemPool, while the common pool has memory free."""
    limit(256)
    pool = torch.cuda.MemPool()
    kept = [new(30)]
    held = [new(19), new(3)]
    held[0] = None
    with torch.cuda.use_mem_pool(pool):
        try:
            for _ in range(9):
                kept.append(new(40))
        except torch.OutOfMemoryError:
            pass
    return pool, kept, held


def placed():
    """Blocks at addresses that a library asks for."""
    library = os.environ["FRAG_PLACE"]  # place.cpp, compiled
    at = new(12).data_ptr()  # freed at once
    place = ctypes.CDLL(library).place
    place.argtypes, place.restype = [ctypes.c_size_t, ctypes.c_void_p], \
        ctypes.c_void_p
    placed = [place(2 * MIB, at + 4 * MIB), place(3 * MIB, at + 8 * MIB)]
    assert placed == [at + 4 * MIB, at + 8 * MIB], placed
    return placed, new(1), new(1.5)


LIMIT = [0]


def limit(mib):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(mib * MIB / total)
    LIMIT[0] = int(mib * MIB / total * total)


def shorten(value):
    """Leaves the folders of this machine out of the names of files."""
    if isinstance(value, list):
        for item in value:
            shorten(item)
    elif isinstance(value, dict):
        name = value.get("filename")
        if name:
            value["filename"] = name[name.find("site-packages/"):] \
                if "site-packages/" in name else os.path.basename(name)
        for item in value.values():
            shorten(item)


def main(name, folder):
    path = os.path.join(folder, name + ".pickle")
    memory, options = torch.cuda.memory, {}
    if name == "pinned":
        options["record_pinned_host_memory"] = True
    if name == "expandable":
        memory._set_allocator_settings("expandable_segments:True")
    torch.empty(0, device="cuda")
    memory._record_memory_history(stacks="python", **options)
    kept = globals()[name]()
    snapshot = memory._snapshot()
    shorten(snapshot)
    with open(path, "wb") as out:
        pickle.dump(snapshot, out)
    with open(path.replace(".pickle", ".json"), "w", encoding="utf-8") as out:
        json.dump({"stats": torch.cuda.memory_stats(), "cap": LIMIT[0]}, out)
    return kept


if __name__ == "__main__":
    main(*sys.argv[1:])
