"""captures.py POLICY: one thread captures graphs while others request memory that
the policy can serve only after a wait for the device. No capture may become
invalid, no request may fail, and nothing is left at the end.

Run on the stand-in for the CUDA runtime with FRAGSIM_DRY_WAIT_US, so that requests
queue up behind a wait while a capture begins.
"""
import os
import sys
import threading
import time

os.environ["FRAGSIM_POLICY"] = sys.argv[1]

import torch  # noqa: E402  pylint: disable=wrong-import-position

import fragsim_torch  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
GRAPHS = 120
errors = []
ended = threading.Event()


def act(work):
    try:
        work()
    except Exception as error:  # pylint: disable=broad-exception-caught
        errors.append(f"{type(error).__name__}: {str(error)[:200]}")
        ended.set()


def requests():
    """The largest block is made of the pages of the first, after a wait."""
    with torch.cuda.stream(torch.cuda.Stream()):
        while not ended.is_set():
            live = [torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
                    for size in (5, 3)]
            live[0] = None
            live.append(torch.empty(17 * MIB, dtype=torch.uint8,
                                    device="cuda"))
            del live
            torch.cuda.empty_cache()


def hold_interpreter():
    """Requests stop where they read their stack, until the capture begins."""
    until = time.monotonic() + 0.003
    while time.monotonic() < until:
        pass


def captures():
    static, kept = torch.zeros(MIB, dtype=torch.uint8, device="cuda"), []
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(GRAPHS):
            graph = torch.cuda.CUDAGraph()
            hold_interpreter()
            graph.capture_begin(capture_error_mode="thread_local")
            kept.append(static.clone())
            time.sleep(0.003)
            graph.capture_end()
            graph.replay()
            kept.append(graph)
            time.sleep(0.003)
    kept.clear()
    ended.set()


fragsim_torch.use()
# The stack of a request is read before the lock of the allocator is taken.
sys.setswitchinterval(0.1)
torch.cuda.memory._record_memory_history(stacks="python", max_entries=1000)
threads = [threading.Thread(target=act, args=(requests,)) for _ in range(5)]
threads.append(threading.Thread(target=act, args=(captures,)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
torch.cuda.synchronize()
torch.cuda.empty_cache()
print(errors[0] if errors else "none",
      torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
