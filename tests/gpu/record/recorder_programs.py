#!/usr/bin/env python3
"""recorder_programs.py [--fragsim TOOL] [-o FILE] [--jobs N] [NAME...]: runs
programs of PyTorch, CuPy, JAX and RMM under `fragsim record` on this machine's
GPU, and compares what the recorder saw with what each allocator says it took.

Writes one CSV row a program into FILE (default: recorder.csv), after
a line that states where and when. Without NAME it runs all programs whose
library is installed; `list` prints their names. Exit 1 if a row differs.

A program calls its allocator with a fixed series of requests. At its end it asks
the allocator for the sizes of its requests to the device (sizes), or for the
bytes that it holds then (now) and held at most (peak). Then it allocates MARK
bytes from the driver itself: requests before that mark are compared.
"""
import argparse
import csv
import ctypes
import datetime
import importlib.util
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor


MARK = 54321
MIB = 1 << 20
COLUMNS = ("program", "allocator", "says", "said_segments", "said_bytes",
           "said_peak_bytes", "segments", "bytes", "peak_bytes", "same",
           "difference", "notes")


# ---- what the programs ask for ----

def series(steps=300, most=64 * MIB, seed=7):
    """Yields (True, key, bytes) to allocate and (False, key, 0) to free."""
    rng = random.Random(seed)
    live = []
    for key in range(steps):
        if live and rng.random() < 0.45:
            yield False, live.pop(rng.randrange(len(live))), 0
        size = int(most ** rng.random()) + 1
        live.append(key)
        yield True, key, size


def play(allocate):
    """Runs the series; `allocate` returns an object that frees itself."""
    live = {}
    for is_alloc, key, size in series():
        if is_alloc:
            live[key] = allocate(size)
        else:
            del live[key]
    return live


def units(size, unit):
    """Rounds up."""
    return -(-size // unit) * unit


class Driver:
    """The driver's own calls, in the device's primary context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.must(self.cuda.cuInit(0))
        self.must(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.must(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def must(result):
        if result:
            raise RuntimeError(f"the driver returned {result}")

    def alloc(self, size):
        at = ctypes.c_uint64()
        self.must(self.cuda.cuMemAlloc_v2(ctypes.byref(at),
                                          ctypes.c_size_t(size)))
        return at

    def free(self, at):
        self.must(self.cuda.cuMemFree_v2(at))

    def of_graphs(self, which):
        """0 used now, 1 most used, 2 reserved now, 3 most reserved."""
        value = ctypes.c_uint64()
        self.must(self.cuda.cuDeviceGetGraphMemAttribute(0, which,
                                                         ctypes.byref(value)))
        return value.value


# ---- programs: each returns what its allocator says ----

def driver():
    """The driver without an allocator: shows that the comparison works."""
    d, sizes = Driver(), []
    live = {}
    for is_alloc, key, size in series(100):
        if is_alloc:
            live[key] = d.alloc(size)
            sizes.append(size)
        else:
            d.free(live.pop(key))
    return {"sizes": sizes, "says": "the program's own list"}, live


def of_torch(torch, says="memory_snapshot, memory_stats"):
    stats = torch.cuda.memory_stats()
    segments = torch.cuda.memory_snapshot()
    return {"now": sum(s["total_size"] for s in segments),
            "peak": stats["reserved_bytes.all.peak"],
            "count": None if any(s.get("is_expandable") for s in segments)
            else stats["num_device_alloc"], "says": says}


def torch_native():
    import torch
    live = play(lambda n: torch.zeros(n, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    return of_torch(torch), live


def torch_emptied():
    import torch
    live = play(lambda n: torch.zeros(n, dtype=torch.uint8, device="cuda"))
    for key in list(live)[::2]:
        del live[key]
    torch.cuda.empty_cache()
    live["more"] = play(lambda n: torch.zeros(2 * n, dtype=torch.uint8,
                                              device="cuda"))
    return of_torch(torch), live


def torch_async():
    """Each tensor is a request to the driver."""
    import torch
    sizes = []

    def one(n):
        sizes.append(n)
        return torch.empty(n, dtype=torch.uint8, device="cuda")
    live = play(one)
    torch.cuda.synchronize()
    return {"sizes": sizes, "says": "the sizes of the tensors"}, live


def torch_graph(torch):
    """A captured step and its replays; returns the tensors."""
    x = torch.zeros(8 * MIB + 512, dtype=torch.uint8, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        (x + 1).sum()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
        for _ in range(10):
            y = torch.cat([y, y[:MIB]]) + 1
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return graph, x, y


def torch_graphs():
    import torch
    live = torch_graph(torch)
    return of_torch(torch), live


def torch_graphs_async():
    """Memory of the graph's nodes: the driver says how much it holds."""
    import torch
    live = torch_graph(torch)
    d = Driver()
    return {"graphs": d.of_graphs(2), "graphs_peak": d.of_graphs(3),
            "says": "cuDeviceGetGraphMemAttribute"}, live


def cupy_pool(pool, says):
    """A pool of CuPy. Its memory hook sees each request to the device."""
    import cupy
    sizes = []

    class Hook(cupy.cuda.MemoryHook):
        name = "sizes"

        def alloc_postprocess(self, **kw):
            sizes.append(kw["mem_size"])
    with Hook():
        live = play(lambda n: pool.malloc(n))
        for key in list(live)[::2]:
            del live[key]
        pool.free_all_blocks()
        live["more"] = play(lambda n: pool.malloc(2 * n))
    cupy.cuda.Device().synchronize()
    return {"sizes": sizes, "now": pool.total_bytes(), "says": says}, live


def cupy_default():
    import cupy
    return cupy_pool(cupy.cuda.MemoryPool(), "MemoryHook, total_bytes")


def cupy_managed():
    import cupy
    return cupy_pool(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed),
                     "MemoryHook, total_bytes")


def cupy_async():
    """CuPy passes each request on, in whole units of 512 bytes."""
    import cupy
    pool, sizes = cupy.cuda.MemoryAsyncPool(), []

    def one(n):
        sizes.append(units(n, 512))
        return pool.malloc(n)
    live = play(one)
    cupy.cuda.Device().synchronize()
    return {"sizes": sizes, "says": "the requests, in units of 512 B"}, live


def jax_arrays():
    import jax
    import numpy
    device = jax.devices()[0]

    def one(n):
        x = jax.device_put(numpy.zeros(n, numpy.uint8), device)
        x.block_until_ready()
        return x
    live = play(one)
    return device, live


def jax_bfc():
    device, live = jax_arrays()
    stats = device.memory_stats()
    return {"now": stats.get("pool_bytes"), "peak": stats.get("peak_pool_bytes"),
            "says": "memory_stats: pool_bytes",
            "stats": {k: int(v) for k, v in stats.items()}}, live


def jax_direct(unit, says):
    _, live = jax_arrays()
    time.sleep(1)  # buffers are freed by another thread
    return {"now": sum(units(x.nbytes, unit) for x in live.values()),
            "says": says}, live


def jax_platform():
    """Each array is its own physical memory, in pages of 2 MiB."""
    return jax_direct(2 * MIB, "the arrays, in pages of 2 MiB")


def jax_async():
    return jax_direct(1, "the sizes of the arrays")


def rmm_over(make):
    """A resource over one that counts: `make` builds it."""
    import rmm
    import rmm.mr as mr
    cuda, sizes, held = mr.CudaMemoryResource(), [], {}

    def take(n, stream):
        at = cuda.allocate(n)
        sizes.append(n)
        held[at] = n
        return at

    def give(at, n, stream):
        del held[at]
        cuda.deallocate(at, n)
    top = make(mr, mr.CallbackMemoryResource(take, give))
    rmm.mr.set_current_device_resource(top)
    live = play(lambda n: rmm.DeviceBuffer(size=n))
    rmm.pylibrmm.stream.DEFAULT_STREAM.synchronize()
    return {"sizes": list(sizes), "now": sum(held.values()),
            "says": "CallbackMemoryResource"}, (live, top)


def rmm_pool():
    return rmm_over(lambda mr, up: mr.PoolMemoryResource(
        up, initial_pool_size=0))


def rmm_arena():
    return rmm_over(lambda mr, up: mr.ArenaMemoryResource(
        up, arena_size=4 << 30))


def rmm_binning():
    return rmm_over(lambda mr, up: mr.BinningMemoryResource(
        mr.PoolMemoryResource(up, initial_pool_size=0), 18, 22))


def rmm_async():
    import rmm
    import rmm.mr as mr
    top = mr.StatisticsResourceAdaptor(mr.CudaAsyncMemoryResource())
    rmm.mr.set_current_device_resource(top)
    live = play(lambda n: rmm.DeviceBuffer(size=n))
    rmm.pylibrmm.stream.DEFAULT_STREAM.synchronize()
    counts = top.allocation_counts
    return {"now": counts.current_bytes, "peak": counts.peak_bytes,
            "count": counts.total_count,
            "says": "StatisticsResourceAdaptor"}, (live, top)


ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
NO_POOL = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
# Name: function, library, allocator, environment.
PROGRAMS = {
    "driver": (driver, None, "none", {}),
    "torch_native": (torch_native, "torch", "native", {}),
    "torch_emptied": (torch_emptied, "torch", "native, empty_cache", {}),
    "torch_expandable": (torch_emptied, "torch", "expandable_segments", {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    "torch_async": (torch_async, "torch", "cudaMallocAsync", ASYNC),
    "torch_graphs": (torch_graphs, "torch", "native, CUDA graph", {}),
    "torch_graphs_async": (torch_graphs_async, "torch",
                           "cudaMallocAsync, CUDA graph", ASYNC),
    "cupy_default": (cupy_default, "cupy", "MemoryPool", {}),
    "cupy_managed": (cupy_managed, "cupy", "MemoryPool, malloc_managed", {}),
    "cupy_async": (cupy_async, "cupy", "MemoryAsyncPool", {}),
    "jax_bfc": (jax_bfc, "jax", "BFC", NO_POOL),
    "jax_preallocated": (jax_bfc, "jax", "BFC, preallocated", {
        "XLA_PYTHON_CLIENT_MEM_FRACTION": ".10"}),
    "jax_platform": (jax_platform, "jax", "platform", {
        "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}),
    "jax_async": (jax_async, "jax", "cuda_async", {
        "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", **NO_POOL}),
    "rmm_pool": (rmm_pool, "rmm", "pool", {}),
    "rmm_arena": (rmm_arena, "rmm", "arena", {}),
    "rmm_binning": (rmm_binning, "rmm", "binning over pool", {}),
    "rmm_async": (rmm_async, "rmm", "cuda_async", {}),
}


def inside(name, path):
    """The recorded program."""
    said, live = PROGRAMS[name][0]()
    d = Driver()
    mark = d.alloc(MARK)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(said, out)
    d.free(mark)
    del live
    sys.stdout.flush()
    os._exit(0)  # some libraries free their memory in an order that fails


# ---- the comparison ----

def seen(text):
    """What the trace has before the mark: the sizes in order, the bytes at the
    mark, and the most bytes."""
    sizes, live, now, peak = [], {}, 0, 0
    for row in csv.DictReader(io.StringIO(text)):
        if row["op"] == "alloc":
            size = int(row["bytes"])
            if size == MARK:
                return {"sizes": sizes, "now": now, "peak": peak}
            sizes.append(size)
            live[row["id"]] = size
            now += size
            peak = max(peak, now)
        elif row["op"] == "free":
            now -= live.pop(row["id"])
    raise RuntimeError("the trace has no mark")


def difference(said, found):
    """The first difference in words, or ''."""
    sizes = said.get("sizes")
    if sizes is not None and sizes != found["sizes"]:
        at = next((i for i, (a, b) in enumerate(zip(sizes, found["sizes"]))
                   if a != b), min(len(sizes), len(found["sizes"])))
        return (f"request {at}: said {sizes[at:at + 3]}, recorded "
                f"{found['sizes'][at:at + 3]}; {len(sizes)} said, "
                f"{len(found['sizes'])} recorded")
    if said.get("count") not in (None, len(found["sizes"])):
        return f"{said['count']} requests said, {len(found['sizes'])} recorded"
    for key in "now", "peak":
        if said.get(key) not in (None, found[key]):
            return f"{key}: {said[key]} bytes said, {found[key]} recorded"
    if said.get("graphs") is not None:
        return of_graphs(said, found)
    return ""


def of_graphs(said, found):
    """The memory of graphs is a part of the recorded requests: the program has
    other requests too, which its allocator passes on one by one."""
    grown = [n for n in found["sizes"] if n % (2 * MIB) == 0]
    if said["graphs"] and said["graphs"] not in (sum(grown), *grown):
        return f"graphs: {said['graphs']} bytes said, recorded {grown[:5]}"
    return "" if said["graphs"] else "the graph has no memory of its own"


def outside(tool, name, folder):
    """Records the program; returns its row."""
    _, _, allocator, settings = PROGRAMS[name]
    trace, words = (os.path.join(folder, name + end) for end in (".h5", ".json"))
    done = subprocess.run(
        [tool, "record", "-f", "-o", trace, "--", sys.executable,
         os.path.abspath(__file__), "--inside", name, words],
        env=dict(os.environ, **settings), capture_output=True, text=True,
        timeout=90, check=False)
    row = dict.fromkeys(COLUMNS, "")
    row.update(program=name, allocator=allocator, same=0)
    try:
        with open(words, encoding="utf-8") as file:
            said = json.load(file)
        text = subprocess.run([tool, "export", trace, "-o", "-", "-q"],
                              capture_output=True, text=True, check=True).stdout
        found = seen(text)
    except (OSError, ValueError, RuntimeError,
            subprocess.CalledProcessError) as e:
        row["difference"] = f"not compared: {e}; exit {done.returncode}: " \
            + " ".join(done.stderr.split())[-300:]
        return row
    words = difference(said, found)
    sizes = said.get("sizes")
    row.update(says=said["says"],
               said_segments=len(sizes) if sizes is not None
               else said.get("count"),
               said_bytes=said.get("now", said.get("graphs", "")),
               said_peak_bytes=said.get("peak", said.get("graphs_peak", "")),
               segments=len(found["sizes"]), bytes=found["now"],
               peak_bytes=found["peak"], same=int(not words), difference=words,
               notes="; ".join(line.partition(": ")[2]
                               for line in done.stderr.splitlines()
                               if line.startswith(trace)
                               and ": device " not in line))
    if words:
        print(f"{name}: {words}", said.get("stats", ""), file=sys.stderr)
    return row


def versions(names):
    """The versions of the libraries, without loading them."""
    from importlib import metadata
    known = []
    for name in sorted({PROGRAMS[n][1] or "" for n in names} - {""}):
        packages = metadata.packages_distributions().get(name, [])
        known += [f"{p} {metadata.version(p)}" for p in packages[:1]]
    return ", ".join(known)


def device():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                               "--format=csv,noheader"], capture_output=True,
                              text=True, check=True).stdout.splitlines()[0]
        return done.replace(", ", ", driver ")
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "no device of nvidia-smi"


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--fragsim", default="fragsim")
    parser.add_argument("-o", default="recorder.csv")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.names == ["list"]:
        print(*PROGRAMS, sep="\n")
        return 0
    names = args.names or [n for n, p in PROGRAMS.items()
                           if p[1] is None or importlib.util.find_spec(p[1])]
    with tempfile.TemporaryDirectory() as folder:
        def one(name):
            try:
                row = outside(args.fragsim, name, folder)
            except subprocess.TimeoutExpired:
                row = dict.fromkeys(COLUMNS, "")
                row.update(program=name, allocator=PROGRAMS[name][2], same=0,
                           difference="not compared: no end after 90 s")
            print(f"{name}: {'the same' if row['same'] else 'differs'}",
                  flush=True)
            return row
        with ThreadPoolExecutor(args.jobs) as pool:
            rows = list(pool.map(one, names))
    with open(args.o, "w", encoding="utf-8", newline="") as out:
        out.write(f"# device {device()}, {versions(names)}, "
                  f"{datetime.date.today()}; tests/gpu/record/recorder_programs.py\n")
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return int(not all(row["same"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
