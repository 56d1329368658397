"""unfinished.py POLICY: captures fail in the middle, and the program goes on
without graphs. PyTorch announces the begin of such a capture and never its end.
The policy serves again once no stream is captured, and no free is held back.

Run on the stand-in for the CUDA runtime.
"""
import os
import sys
import threading

os.environ["FRAGSIM_POLICY"] = sys.argv[1]

import torch  # noqa: E402  pylint: disable=wrong-import-position

import fragsim_torch  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def is_default(tensor):
    """Whether the memory of the tensor is of no pool."""
    return any(tuple(s["segment_pool_id"]) == (0, 0) for s in
               torch.cuda.memory_snapshot() if s["address"] <=
               tensor.data_ptr() < s["address"] + s["total_size"])


def reserved_below():
    """PyTorch's own memory: the policy maps, and PyTorch's own does not."""
    return sum(s["total_size"] for s in torch.cuda.memory_snapshot()
               if not s["is_expandable"])


def refused(work):
    try:
        work()
    except RuntimeError as error:
        return "captur" in str(error)
    return False


def fail(live, requests):
    """A capture in which the program waits for the device, with blocks that are
    freed and requested during the capture or not."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        live.clear()
        kept = [block(1) for _ in range(requests)]
        del kept
        assert refused(torch.cuda.synchronize)
        assert refused(graph.capture_end)


def goes_on():
    """Requests and frees of this thread, of another, and of a MemPool."""
    below = reserved_below()
    mine = block(6)
    other = []
    thread = threading.Thread(target=lambda: other.append(block(7)))
    thread.start()
    thread.join()
    assert reserved_below() == below, "PyTorch's own allocator served"
    assert is_default(mine) and is_default(other[0])
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        assert not is_default(block(1))
    del mine, other[:]
    stats = torch.cuda.memory_stats()
    assert stats["active_bytes.all.current"] == 0, "a free is held back"
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == reserved_below(), "a cache is kept"


fragsim_torch.use()
fail([block(4)], 1)
goes_on()
fail([], 0)
goes_on()
print("ok")
