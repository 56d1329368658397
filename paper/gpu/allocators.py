#!/usr/bin/env python3
"""allocators.py: runs PyTorch's own allocator and fragsim's on one device, in
one run.

  allocators.py build                 compiles the extension that `run` needs, once
  allocators.py run [--seconds N] [--rounds N] --events FOLDER RECORDING...

Adds one row for each round, recording and allocator to data/device_pytorch.csv
(FRAG_ROWS). PyTorch's side is ../shared/oracle/torch_oracle.py (FRAG_ORACLE),
which reads the events that events.py beside it makes from a recording:
FOLDER/NAME.events. PyTorch without its cache is the same loop over c10's
allocate() under PYTORCH_NO_CUDA_MEMORY_CACHING=1. fragsim's side is `fragsim
compare` (FRAGSIM), and the same loop over PyTorch on a policy of fragsim
("PyTorch over POLICY"; fragsim_torch is on PYTHONPATH). A row is
the fastest of three passes, each from an empty cache; `steady` is the fastest
of three more that keep the cache. Each allocator of PyTorch has one process for
all rounds; fragsim has one process for each row. Rounds go through the
allocators alternately forward and backward.
"""
import argparse
import contextlib
import csv
import functools
import io
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from data_header import machine  # noqa: E402
from places import DATA, ROOT  # noqa: E402
ROWS = os.environ.get("FRAG_ROWS", os.path.join(DATA, "device_pytorch.csv"))
ORACLE = os.environ.get("FRAG_ORACLE", os.path.join(
    ROOT, "..", "shared", "oracle", "torch_oracle.py"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
COLUMNS = ["trace", "round", "allocator", "peak_reserved_bytes", "ns_per_event",
           "steady_ns_per_event"]
BARE = "PyTorch without cache"
EVENT = 24  # bytes
PATIENCE = 100  # seconds to wait for an answer
EXPANDABLE = "expandable_segments:True"
REPEAT = 3
SHORT = 20000  # events; a run of a longer recording without a cache takes seconds

UNCACHED = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <chrono>
struct Request { uint32_t op, stream; uint64_t id, bytes; };
double replay_uncached(torch::Tensor events)
{
  auto* r = (const Request*)events.data_ptr();
  size_t n = events.nbytes() / sizeof(Request);
  uint64_t last = 0;
  for (size_t i = 0; i < n; i++)
    if (r[i].id > last) last = r[i].id;
  std::vector<c10::DataPtr> held(last + 1);
  auto* allocator = c10::cuda::CUDACachingAllocator::get();
  auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < n; i++) {
    if (r[i].op == 0 && r[i].bytes) held[r[i].id] = allocator->allocate(r[i].bytes);
    else if (r[i].op == 1) held[r[i].id].clear();
  }
  return std::chrono::duration<double, std::nano>(
      std::chrono::steady_clock::now() - start).count() / (double)(n ? n : 1);
}
"""


# ---- PyTorch's ----

def oracle():
    """Loads torch_oracle.py without its command line, as a namespace."""
    with open(ORACLE, encoding="utf-8") as file:
        text = file.read()
    space = {"__name__": "torch_oracle"}
    exec(text[:text.index("def main()")], space)  # pylint: disable=exec-used
    return space


def uncached_extension():
    from torch.utils.cpp_extension import load_inline
    return load_inline("fragsim_uncached", cpp_sources=UNCACHED, with_cuda=True,
                       functions=["replay_uncached"])


class Allocator:
    """One of PyTorch's allocators, in a process of its own. PyTorch reads the
    environment at the first use of the allocator, and its values hold from then
    on."""

    def __init__(self, env):
        os.environ.update(env)
        self.over = "FRAGSIM_POLICY" in env
        self.cached = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in env
        if self.over:
            import fragsim_torch
            fragsim_torch.use()
        self.oracle = oracle()
        built = self.oracle["load"]()
        self.oracle["load"] = lambda: built
        self.replay = uncached_extension().replay_uncached
        if self.cached:
            self.replay = lambda events: built.replay(events, True)[1]

    def measure(self, path):
        """Returns the peak in bytes, the ns per event from an empty cache, and
        the ns per event in later passes that do not empty the cache."""
        import numpy
        import torch
        torch.cuda.init()
        events = torch.from_numpy(numpy.fromfile(path, dtype=numpy.uint8))
        if not self.cached:
            return "", self.best(events, lambda: None), ""
        if self.over:
            peak, cold = "", self.best(events, torch.cuda.empty_cache)
        else:
            peak, cold = self.from_empty(torch, path)
        return peak, cold, self.best(events, lambda: None)

    def from_empty(self, torch, path):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        done = self.oracle["one"]({"events": path, "repeat": REPEAT})
        if done["first_oom_index"] is not None:
            raise RuntimeError(f"out of memory: {done}")
        return done["peak_reserved"], done["ns_per_event_warm"]

    def best(self, events, before):
        found = []
        for _ in range(REPEAT):
            before()
            found.append(self.replay(events))
        return min(found)


def take(env):
    """Binds a new process to this allocator."""
    global mine  # pylint: disable=global-statement
    mine = Allocator(env)


def ready():
    return True


def measure_here(path):
    return mine.measure(path)


class Worker:
    """The process of an allocator. It is spawned, because a forked child of a
    process that uses CUDA cannot use CUDA."""

    def __init__(self, env, stack):
        self.pool = stack.enter_context(ProcessPoolExecutor(
            1, get_context("spawn"), take, (env,)))
        self.started = self.pool.submit(ready)

    def measure(self, path):
        return self.pool.submit(measure_here, path).result(PATIENCE)


WORKERS = {
    "PyTorch": {},
    f"PyTorch:{EXPANDABLE}": {"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
    "PyTorch over torch": {"FRAGSIM_POLICY": "torch"},
    "PyTorch over remap": {"FRAGSIM_POLICY": "remap"},
    BARE: {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}


def start_workers(stack):
    """The workers that started, by name; failures are reported on stderr."""
    workers = {name: Worker(env, stack) for name, env in WORKERS.items()}
    return {name: worker for name, worker in workers.items()
            if answer(name, functools.partial(worker.started.result, PATIENCE))}


def answer(name, act):
    """The result of act(). If it fails, prints a message on stderr and returns
    None."""
    try:
        return act()
    except Exception as error:  # pylint: disable=broad-except
        print(f"allocators, {name}: {error!r}", file=sys.stderr, flush=True)
        return None


# ---- ours ----

def ours(trace, policy):
    done = subprocess.run([FRAGSIM, "compare", "-q", trace, "-p", policy,
                           "--repeat", str(REPEAT), "--csv", "-"], text=True,
                          stdout=subprocess.PIPE, check=False)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    if len(rows) != 1:
        raise RuntimeError(f"{trace}: exit {done.returncode}")
    return rows[0]["real_peak_reserved_bytes"], rows[0]["real_ns_per_event"], ""


# ---- all of them, in turn ----

def contestants(workers, trace, events):
    """Each of PyTorch's allocators, followed by the policy of fragsim that is
    compared with it."""
    beside = {"PyTorch": "torch", f"PyTorch:{EXPANDABLE}": f"torch:{EXPANDABLE}",
              BARE: "direct"}
    for name, worker in workers.items():
        if name == BARE and os.path.getsize(events) // EVENT > SHORT:
            continue
        yield name, functools.partial(worker.measure, events)
        if name in beside:
            yield beside[name], functools.partial(ours, trace, beside[name])


def native(recording, folder):
    """Converts the recording to a trace file of fragsim, which opens at once.
    """
    name = os.path.basename(recording).split(".")[0]
    trace = os.path.join(folder, name + ".h5")
    subprocess.run([FRAGSIM, "import", "-q", recording, "-o", trace], check=True)
    return name, trace


def measure(number, names, workers, folder, out, until):
    for name, trace in names:
        if time.monotonic() > until:
            return
        events = os.path.join(folder, name + ".events")
        row = list(contestants(workers, trace, events))
        for allocator, act in row if number % 2 == 0 else row[::-1]:
            found = answer(f"{name}, {allocator}", act)
            if found:
                out.writerow([name, number, allocator, *found])


def run(a):
    until, is_new = time.monotonic() + a.seconds, not os.path.exists(ROWS)
    with tempfile.TemporaryDirectory() as folder, \
            open(ROWS, "a", encoding="utf-8") as file, \
            contextlib.ExitStack() as stack:
        workers = start_workers(stack)
        out = csv.writer(file, lineterminator="\n")
        names = [native(r, folder) for r in a.recordings]
        if is_new:
            where = machine()
            file.write(f"# PyTorch {where['torch']}, driver {where['driver']}, "
                       f"{where['date']}; paper/gpu/allocators.py\n")
            out.writerow(COLUMNS)
        for number in range(a.rounds):
            if time.monotonic() > until:
                break
            measure(number, names, workers, a.events, out, until)
            file.flush()


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build")
    one = verbs.add_parser("run")
    one.add_argument("--seconds", type=float, default=75)
    one.add_argument("--rounds", type=int, default=100)
    one.add_argument("--events", required=True)
    one.add_argument("recordings", nargs="+")
    a = parser.parse_args()
    if a.verb == "build":
        oracle()["load"]()
        uncached_extension()
    else:
        run(a)


if __name__ == "__main__":
    main()
