#!/usr/bin/env python3
"""torch_allocators.py: the time of a request and its free inside PyTorch, with
PyTorch's own allocator and with policies under the class of
real/torch/allocator.cpp, on the stand-ins for CUDA's driver and runtime.

usage: torch_allocators.py [ALLOCATOR...] [-n ROUNDS] [-t SNAPSHOT]

ALLOCATOR is native, POLICY or pluggable:POLICY. Each allocator has a process of
its own; they run in turns, one at a time, and play the requests and frees of a
recording. `pair` is the median over the rounds of the processor time of a
request and its free through the C functions of
torch.cuda.caching_allocator_alloc, `tensor` the same for torch.empty. Both
contain the time of Python. The columns of ratios are medians of the ratios to
the first allocator within a round.

Environment: FRAG_BUILD_DIR (a release build), FRAG_TORCH_PYTHON.
"""
import argparse
import lzma
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(os.environ.get("FRAG_BUILD_DIR",
                                       os.path.join(ROOT, "build")))
STANDINS = os.path.join(BUILD, "dry")
TRACE = os.path.join(ROOT, "traces", "bundled", "gpt2_train.pickle.xz")
ALLOCATORS = ["native", "torch", "torch:expandable_segments:True", "best_fit",
              "remap", "expandable", "pluggable:expandable"]
WAYS = ("pair", "tensor")


# ---- the process of one allocator ----

def events(path):
    """[(row, size)]: a request of `size` bytes, or a free if it is 0. A row
    stays that of its block until the block is freed."""
    with lzma.open(path) as file:
        trace = pickle.load(file)["device_traces"][0]
    rows, free, out = {}, [], []
    for entry in trace:
        if entry["action"] == "alloc":
            rows[entry["addr"]] = free.pop() if free else len(rows)
            out.append((rows[entry["addr"]], entry["size"]))
        elif entry["action"] == "free_completed" and entry["addr"] in rows:
            free.append(rows.pop(entry["addr"]))
            out.append((free[-1], 0))
    return out + [(row, 0) for row in rows.values()]


def play_pairs(todo, table):
    import torch
    take = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    stream = torch.cuda.current_stream().cuda_stream
    started = time.thread_time_ns()
    for row, size in todo:
        if size:
            table[row] = take(size, stream)
        else:
            free(table[row])
    return time.thread_time_ns() - started


def play_tensors(todo, table):
    import torch
    empty, device, dtype = torch.empty, torch.device("cuda:0"), torch.uint8
    started = time.thread_time_ns()
    for row, size in todo:
        table[row] = empty(size, dtype=dtype, device=device) if size else None
    return time.thread_time_ns() - started


def child(allocator, path):
    """Plays a round at each line of the input and prints its times."""
    import torch
    if allocator != "native":
        import fragsim_torch
        policy = allocator.removeprefix("pluggable:")
        fragsim_torch.use(policy, pluggable=policy != allocator)
    torch.empty(1, device="cuda")
    todo = events(path)
    table = [None] * (1 + max(row for row, size in todo))
    for _ in sys.stdin:
        times = [play(todo, table) for play in (play_pairs, play_tensors)]
        pairs = sum(1 for row, size in todo if size)
        print(*[ns / pairs for ns in times], flush=True)


# ---- all allocators in turns ----

def start(allocator, path, folder):
    env = dict(os.environ, LD_LIBRARY_PATH=STANDINS, FRAGSIM_DRY_LEAKS="1",
               FRAGSIM_DRY_MEMORY="65536",
               LD_PRELOAD=os.path.join(STANDINS, "13", "libcudart.so.13"),
               FRAGSIM_TORCH_LIBRARY=os.path.join(BUILD, "libfragsim_torch.so"),
               FRAGSIM_TORCH_CACHE=folder, PYTHONDONTWRITEBYTECODE="1",
               PYTHONPATH=os.path.join(ROOT, "real", "torch"))
    return subprocess.Popen(
        [os.environ.get("FRAG_TORCH_PYTHON", sys.executable), __file__,
         "--child", allocator, "-t", path], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(process):
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit("torch_allocators: a process has ended")
    return [float(x) for x in line.split()]


def measure(allocators, rounds, path):
    with tempfile.TemporaryDirectory() as folder:
        processes = {name: start(name, path, folder) for name in allocators}
        for process in processes.values():  # the caches and the segments
            ask(process)
        times = [{name: ask(process) for name, process in processes.items()}
                 for _ in range(rounds)]
        for process in processes.values():
            process.stdin.close()
            process.wait()
    return times


def show(times):
    first = next(iter(times[0]))
    print(f"{'ns of processor time':30}", "".join(
        f"{way:>8} {'x ' + first:>9}" for way in WAYS))
    for name in times[0]:
        print(f"{name:30}", "".join(
            f"{statistics.median(t[name][way] for t in times):8.0f} "
            f"{statistics.median(t[name][way] / t[first][way] for t in times):9.3f}"
            for way in range(len(WAYS))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("allocators", nargs="*", default=ALLOCATORS)
    parser.add_argument("-n", dest="rounds", type=int, default=30)
    parser.add_argument("-t", dest="trace", default=TRACE)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.trace)
    else:
        show(measure(args.allocators, args.rounds, args.trace))


main()
