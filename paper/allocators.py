#!/usr/bin/env python3
"""allocators.py: PyTorch's own allocator and ours on one device in one run.

allocators.py build                 compiles what the next needs, once
allocators.py run [--seconds N] [--rounds N] --events FOLDER RECORDING...

Adds to data/device_pytorch.csv (FRAG_ROWS) a row a round, recording and allocator. What
PyTorch's does is ../shared/oracle/torch_oracle.py (FRAG_ORACLE), which takes the events
that events.py beside it makes of a recording: FOLDER/NAME.events; without its cache
it is the same loop over c10's allocate() under PYTORCH_NO_CUDA_MEMORY_CACHING=1. Ours
is `fragsim compare` (FRAGSIM). A row is a process of its own that goes through the events
three times, from an empty cache each, and the quickest counts; rounds go forward and
backward through the allocators in turn.
"""
import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.environ.get("FRAG_ROWS", os.path.join(HERE, "data",
                                                "device_pytorch.csv"))
ORACLE = os.environ.get("FRAG_ORACLE", os.path.join(
    HERE, "..", "..", "shared", "oracle", "torch_oracle.py"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(HERE, "..", "build",
                                                 "fragsim"))
COLUMNS = ["trace", "round", "allocator", "peak_reserved_bytes", "ns_per_event"]
EXPANDABLE = "expandable_segments:True"
REPEAT = 3
SHORT = 20000  # events: of longer recordings a run without a cache takes seconds

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
    """torch_oracle.py without its command line, as a namespace."""
    with open(ORACLE, encoding="utf-8") as file:
        text = file.read()
    space = {"__name__": "torch_oracle"}
    exec(text[:text.index("def main()")], space)  # pylint: disable=exec-used
    return space


def uncached_extension():
    from torch.utils.cpp_extension import load_inline
    return load_inline("fragsim_uncached", cpp_sources=UNCACHED, with_cuda=True,
                       functions=["replay_uncached"])


class PyTorch:
    def __init__(self):
        self.oracle, self.uncached = oracle(), uncached_extension()
        built = self.oracle["load"]()
        self.oracle["load"] = lambda: built

    def cached(self, events, conf):
        done = self.oracle["one"]({"events": events, "conf": conf,
                                   "repeat": REPEAT})
        if done["first_oom_index"] is not None:
            raise RuntimeError(f"out of memory: {done}")
        return done["peak_reserved"], done["ns_per_event_warm"]

    def without_cache(self, events):
        import numpy
        import torch
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
        torch.cuda.init()
        held = torch.from_numpy(numpy.fromfile(events, dtype=numpy.uint8))
        return "", min(self.uncached.replay_uncached(held)
                       for _ in range(REPEAT))


def in_child(act):
    """What act() returns in a process of its own, which has the device afresh."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sink, json.dumps(act()).encode())
        except Exception as error:  # pylint: disable=broad-except
            print(f"allocators: {error!r}", file=sys.stderr, flush=True)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


# ---- ours ----

def ours(trace, policy):
    done = subprocess.run([FRAGSIM, "compare", "-q", trace, "-p", policy,
                           "--repeat", str(REPEAT), "--csv", "-"], text=True,
                          stdout=subprocess.PIPE, check=False)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    if len(rows) != 1:
        return None
    return rows[0]["real_peak_reserved_bytes"], rows[0]["real_ns_per_event"]


# ---- all of them, in turn ----

def contestants(torch, trace, events):
    found = [
        ("PyTorch", lambda: in_child(lambda: torch.cached(events, ""))),
        ("torch", lambda: ours(trace, "torch")),
        (f"PyTorch:{EXPANDABLE}",
         lambda: in_child(lambda: torch.cached(events, EXPANDABLE))),
        (f"torch:{EXPANDABLE}", lambda: ours(trace, f"torch:{EXPANDABLE}")),
    ]
    if os.path.getsize(events) // 24 <= SHORT:
        found += [("PyTorch without cache",
                   lambda: in_child(lambda: torch.without_cache(events))),
                  ("direct", lambda: ours(trace, "direct"))]
    return found


def native(recording, folder):
    """The recording as a trace of ours, which is opened at once."""
    name = os.path.basename(recording).split(".")[0]
    trace = os.path.join(folder, name + ".h5")
    subprocess.run([FRAGSIM, "import", "-q", recording, "-o", trace], check=True)
    return name, trace


def measure(number, names, torch, a, out):
    for name, trace in names:
        events = os.path.join(a.events, name + ".events")
        row = contestants(torch, trace, events)
        for allocator, act in row if number % 2 == 0 else row[::-1]:
            found = act()
            if found:
                out.writerow([name, number, allocator, *found])


def run(a):
    torch, is_new = PyTorch(), not os.path.exists(ROWS)
    until = time.monotonic() + a.seconds
    with tempfile.TemporaryDirectory() as folder, \
            open(ROWS, "a", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        names = [native(r, folder) for r in a.recordings]
        if is_new:
            from inside_torch import about
            where = about()
            file.write(f"# PyTorch {where['torch']}, driver {where['driver']}, "
                       f"{where['date']}; paper/allocators.py\n")
            out.writerow(COLUMNS)
        for number in range(a.rounds):
            if time.monotonic() > until:
                break
            measure(number, names, torch, a, out)
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
        PyTorch()
    else:
        run(a)


if __name__ == "__main__":
    main()
