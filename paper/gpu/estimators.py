#!/usr/bin/env python3
"""estimators.py: what other ways say about the memory of a program before there is a
GPU, beside `fragsim dry` and beside what a GPU needed.

    run ESTIMATOR -- PROGRAM ARGUMENT...   one estimate, as JSON on stdout
    measure [-o DATA] [--estimators A,B] [--limit SECONDS] PROGRAM...
                                           programs of oracle/record.py, into the data
    page [FILE [DATA]]                     paper/pages/estimators.md from the data

An estimator runs PROGRAM, a Python file, unchanged:

    dry          fragsim dry: PyTorch's own allocator over stand-ins for CUDA
    fake         FakeTensorMode, and the bytes of the live storages of device cuda
    memtracker   torch.distributed._tools.mem_tracker.MemTracker
    cpu          the device names replaced by "cpu"; torch.profiler lists what the CPU's
                 allocator gave, and fragsim's policy torch serves these sizes
    fakecuda     FakeGPU's preflight with its runtime fakecuda, which computes on the CPU
    fakegpu      FakeGPU's own stand-ins for libraries of CUDA 12, and PyTorch's own count
    dry12        fragsim dry with the PyTorch of fakegpu, to tell the two apart

fakecuda and fakegpu need the package fakegpu, built by its own instructions, on
PYTHONPATH; fakegpu and dry12 a PyTorch for CUDA 12 with its libraries:
FRAG_DRY_PYTHON_12=/path/python, without which they take the other one.

fake and memtracker run over the stand-ins of `fragsim dry`, so that PyTorch sees an
H200. On a CPU, and under FakeGPU, the functions that record the memory history do
nothing. MemTracker refuses a second call of a module unless its statistics are reset;
that is done when a model is called again.

Needs a PyTorch with CUDA, and the libraries that PROGRAM imports: set
FRAG_DRY_PYTHON=/path/python. FRAGSIM is the tool (default: fragsim); FRAG_SHARED_DIR
holds oracle/record.py and recorded/dev, which has the true peaks.
"""
import argparse
import collections
import contextlib
import csv
import io
import json
import os
import re
import resource
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import traceback
import types

sys.dont_write_bytecode = True
HERE = os.path.abspath(__file__)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tables"))
from data_header import read_csv, replayed, write_csv  # noqa: E402
from places import DATA, PAGES, ROOT                   # noqa: E402

FRAGSIM = os.environ.get("FRAGSIM", "fragsim")
PYTHON = os.environ.get("FRAG_DRY_PYTHON", sys.executable)
PYTHON_12 = os.environ.get("FRAG_DRY_PYTHON_12", PYTHON)
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
TABLE = os.path.join(DATA, "estimators.csv")
COLUMNS = ["estimator", "program", "peak_allocated_bytes", "peak_reserved_bytes",
           "true_peak_allocated_bytes", "true_peak_reserved_bytes", "processor_seconds",
           "error"]
LIMIT = 360  # seconds of a processor
ESTIMATORS = ["dry", "fakegpu", "dry12", "fakecuda", "fake", "memtracker", "cpu"]
MEASURES = ("peak_allocated_bytes", "peak_reserved_bytes")


# ---- inside the process that runs the program ----

def start(command, source=None):
    """Runs the program as __main__; its own output goes to stderr."""
    sys.argv = list(command)
    with contextlib.redirect_stdout(sys.stderr):
        if source is None:
            runpy.run_path(command[0], run_name="__main__")
            return
        module = types.ModuleType("__main__")
        module.__file__ = command[0]
        sys.modules["__main__"] = module
        exec(compile(source, command[0], "exec"), module.__dict__)


def without_history():
    """The calls that keep or write the memory history do nothing."""
    import torch
    torch.cuda.memory._record_memory_history = lambda *_, **__: None
    torch.cuda.memory._snapshot = lambda *_, **__: {"device_traces": [[]],
                                                    "segments": []}


def live_storages():
    """A mode that adds up the bytes of the storages of device cuda while they live."""
    import weakref
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Live(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = weakref.WeakSet()
            self.bytes = self.peak = 0

        def release(self, size):
            self.bytes -= size

        def add(self, tensor):
            storage = tensor.untyped_storage()
            if tensor.device.type != "cuda" or storage in self.seen:
                return
            self.seen.add(storage)
            self.bytes += storage.nbytes()
            self.peak = max(self.peak, self.bytes)
            weakref.finalize(storage, self.release, storage.nbytes()).atexit = False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            torch.utils._pytree.tree_map_only(torch.Tensor, self.add, out)
            return out
    return Live()


def swap_parameters(mode):
    """PyTorch 2.11 cannot move a module of fake tensors to a device (`_apply(): Couldn't
    swap`) while the mode keeps weak references to the parameters: it forgets them."""
    import torch
    swap = torch.utils.swap_tensors

    def forgetful(first, second):
        kind = type(mode.fake_tensor_converter)
        mode.fake_tensor_converter = kind(copy_data=False, export=False)
        swap(first, second)
    torch.utils.swap_tensors = forgetful


def fake(command):
    from torch._subclasses.fake_tensor import FakeTensorMode
    live, mode = live_storages(), FakeTensorMode(allow_non_fake_inputs=True)
    swap_parameters(mode)
    with mode, live:
        start(command)
    return {"peak_allocated_bytes": live.peak}


def memtracker(command):
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker
    tracker = MemTracker()

    def forget(module, _):
        """A model is called again: its statistics, not its peak, are reset."""
        modules = tracker._mod_tracker
        if (module in tracker.memory_tracking and not modules.is_bw
                and not set(modules.parents) - {"Global"}):
            tracker.reset_mod_stats()

    torch.nn.modules.module.register_module_forward_pre_hook(forget)
    with tracker:
        start(command)
    peaks = [sizes["Total"] for device, sizes in
             tracker.get_tracker_snapshot("peak").items() if device.type == "cuda"]
    return {"peak_allocated_bytes": sum(peaks)}


def no_gpu():
    """What a program asks of the device beside memory has an answer on a CPU."""
    import torch
    without_history()
    nothing = lambda *_, **__: None
    cuda = torch.cuda
    cuda.synchronize = cuda.empty_cache = cuda.set_per_process_memory_fraction = nothing
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=1 << 40)
    cuda.get_device_name = lambda *_: "CPU"
    cuda.mem_get_info = lambda *_: (1 << 40, 1 << 40)
    cuda.memory_stats = lambda *_: collections.Counter()


def cpu_events(profiler):
    """The CPU's allocations and frees, as the rows of a CSV trace, in order of time."""
    from torch._C._profiler import _EventType
    found, nodes = [], list(profiler.profiler.kineto_results.experimental_event_tree())
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children)
        if node.tag == _EventType.Allocation and node.typed[1].device.type == "cpu":
            found.append((node.start_time_ns, node.typed[1].ptr,
                          node.typed[1].alloc_size))
    ids, rows = {}, []
    for number, (_, address, size) in enumerate(sorted(found, key=lambda f: f[0])):
        if size > 0:
            ids[address] = number
            rows.append(("alloc", number, size, 0))
        elif size < 0 and address in ids:
            rows.append(("free", ids.pop(address), "", ""))
    return rows


def cpu(command):
    from torch.profiler import ProfilerActivity, profile
    with open(command[0], encoding="utf-8") as file:
        source = re.sub(r"""(["'])cuda(:\d+)?\1""", '"cpu"', file.read())
    no_gpu()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        start(command, source)
    text = io.StringIO()
    csv.writer(text).writerows([("op", "id", "bytes", "stream"), *cpu_events(profiler)])
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as trace:
        trace.write(text.getvalue())
        trace.flush()
        done = subprocess.run([FRAGSIM, "replay", "-q", "-p", "torch", "--json", "-",
                               trace.name], check=True, capture_output=True, text=True)
    row = json.loads(done.stdout)["results"][0]
    return {key: row[key] for key in MEASURES}


def fakecuda(command):
    without_history()
    start(command)
    return {}


def peaks(command):
    """PyTorch's own count, when the program has ended."""
    import torch
    start(command)
    stats = torch.cuda.memory_stats()
    return {"peak_allocated_bytes": stats["allocated_bytes.all.peak"],
            "peak_reserved_bytes": stats["reserved_bytes.all.peak"]}


INSIDE = {"fake": fake, "memtracker": memtracker, "cpu": cpu, "fakecuda": fakecuda,
          "peaks": peaks}


def late(*_):
    raise TimeoutError("more processor time than the limit")


def inside(name, limit, result, command):
    """Runs the program under the estimator NAME and writes what that found to RESULT."""
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        found = INSIDE[name](command)
    except BaseException as error:  # a program may also end with SystemExit
        traceback.print_exc()
        text = (str(error).strip() or "no text").splitlines()[0]
        found = {"error": f"{type(error).__name__}: {text}"}
    signal.setitimer(signal.ITIMER_PROF, 0)
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


# ---- outside: one process for each estimate ----

def child(name, limit, result, command):
    """The command line that runs the program under the estimator."""
    part = "peaks" if name in ("dry", "dry12", "fakegpu") else name
    python = PYTHON_12 if name in ("dry12", "fakegpu") else PYTHON
    fake_gpu = [python, "-m", "fakegpu"]
    dry = [FRAGSIM, "dry", "-q", "--gpu", "h200", "--"]
    before = {"dry": dry, "dry12": dry, "fake": dry, "memtracker": dry, "cpu": [],
              "fakegpu": [*fake_gpu, "--profile", "h200", "--device-count", "1"],
              "fakecuda": [*fake_gpu, "preflight", "--runtime", "fakecuda", "--profile",
                           "h200", "--report-dir", os.path.dirname(result), "--"]}
    return [*before[name], python, HERE, "inside", part, str(limit), result, *command]


def fakecuda_report(folder, found):
    """The peaks of FakeGPU's report: tensors, and its model of the allocator."""
    path = os.path.join(folder, "preflight_report.json")
    if found.get("error") or not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as file:
        device = json.load(file)["devices"][0]
    return {"peak_allocated_bytes": device["allocated_peak_memory"],
            "peak_reserved_bytes": device["peak_reserved_memory"]}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def estimate(name, command, limit=LIMIT):
    with tempfile.TemporaryDirectory() as folder:
        result, begin = os.path.join(folder, "result.json"), processor_seconds()
        done = subprocess.run(child(name, limit, result, command), check=False,
                              cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        sys.stderr.write(done.stdout)
        found = {"error": f"exit {done.returncode}, without a result"}
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                found = json.load(file)
        if name == "fakecuda":
            found = fakecuda_report(folder, found)
    return {"estimator": name, "program": " ".join(command[1:2] or command),
            **{key: found.get(key) for key in MEASURES},
            "processor_seconds": round(processor_seconds() - begin, 1),
            "error": found.get("error")}


def truth(program):
    path = os.path.join(SHARED, "recorded", "dev", program + ".json")
    with open(path, encoding="utf-8") as file:
        stats = json.load(file)["stats"]
    return {"true_peak_allocated_bytes": stats["allocated_bytes.all.peak"],
            "true_peak_reserved_bytes": stats["reserved_bytes.all.peak"]}


def measure(options):
    """Adds the estimates to the data; an older one of the same program is replaced."""
    rows = read_csv(options.output)[1] if os.path.exists(options.output) else []
    rows = {(r["program"], r["estimator"]): r for r in rows}
    header = replayed(FRAGSIM, "paper/gpu/estimators.py measure",
                      "20 programs recorded with PyTorch 2.11 on an H200; one core, "
                      "PyTorch 2.11.0+cu130")
    for name in options.estimators.split(","):
        for program in options.programs:
            with tempfile.TemporaryDirectory() as out:
                command = [os.path.join(SHARED, "oracle", "record.py"), program, out]
                row = estimate(name, command, options.limit)
            row.update(truth(program))
            print(json.dumps(row), flush=True)
            rows[program, name] = row
            write_csv(options.output, header, COLUMNS, [rows[k] for k in sorted(rows)])


# ---- the page ----

# estimator: its version, and what it says it estimates
ABOUT = {
    "dry": ("this tool", "the blocks and segments of PyTorch's own allocator, with the "
            "libraries' workspaces"),
    "fakegpu": ("FakeGPU 1.5.5, PyTorch 2.8.0 for CUDA 12.8", "the blocks and segments "
                "of PyTorch's own allocator"),
    "dry12": ("this tool, PyTorch 2.8.0 for CUDA 12.8", "as `dry`"),
    "fakecuda": ("FakeGPU 1.5.5, runtime `fakecuda`", "bytes of tensors on the CPU, and "
                 "a model of the caching allocator"),
    "fake": ("PyTorch 2.11", "bytes of live storages; no reserved memory"),
    "memtracker": ("PyTorch 2.11", "bytes of live storages, rounded to 512; no reserved "
                   "memory"),
    "cpu": ("PyTorch 2.11, torch.profiler", "what the CPU's allocator gave, through "
            "fragsim's policy `torch`")}
INTRODUCTION = """
Made by `paper/gpu/estimators.py page` from `paper/data/estimators.csv`, which
`paper/gpu/estimators.py measure` makes; it says how each estimator runs a program.

The programs are those of `oracle/record.py`. An H200 recorded them with PyTorch's
default settings; the peaks of that run are the truth. All estimators ran on a machine
without a GPU, on one core of it, and the programs ran whole. An error is (estimate -
truth) / truth, against the quantity that the estimator says it estimates; the medians
are those of the absolute errors, over the programs that it could run. Seconds are
processor time, with the start of Python and of PyTorch.
"""
NOTES = """
An estimator that says nothing about reserved memory stands there in brackets: its
allocated memory, taken for what the GPU must have.

- `fake`, `memtracker`: over the stand-ins of `fragsim dry`, so that PyTorch sees an H200.
  Without a driver, PyTorch's `backward` of fake tensors on a device `cuda` fails, and
  MemTracker needs tensors. Each was helped over a refusal of PyTorch 2.11: the weak
  references that keep a module of fake tensors from moving to a device are dropped, and
  the statistics of MemTracker are reset when a model is called again.
- `cpu`: the recipe of xMem (arXiv 2510.21048), whose code is not public, without its
  corrections. It computes everything. One core here multiplies matrices with 55 GFLOP/s
  in float32, 149 in bfloat16 and 0.2 in float16; by that and a count of the products,
  `gpt2_train` needs more than {limit} seconds and `llama_noamp` about 600. Only `leak`
  was run; others may need less than {limit} seconds, and were not tried.
- `fakegpu`: FakeGPU stands in for driver, runtime and cuBLAS of CUDA 12. With PyTorch
  2.11 for CUDA 13 it starts, allocates and multiplies, but its device has 0
  multiprocessors there, and the first random tensor on the device ends the process
  with SIGFPE. So it ran with PyTorch 2.8 for CUDA 12.8 and NVIDIA's other libraries; what is
  due to that PyTorch is seen in `dry12`, which says the same to the byte in
  `bert_serve` and `cudagraph`. FakeGPU's runtime has no `__cudaInitModule`, so
  torchvision cannot be loaded; transformers ran where torchvision is not installed.
- `fakecuda`: FakeGPU's other runtime, which computes on the CPU, as `cpu` does.
- `dry` of `generate` and `rlhf` ran 6 and 5 rounds, where 3 were recorded; with 3 both
  peaks are equal (`pages/dry.md`).

Programs without a row under an estimator were not tried with it.
"""


def error_of(row, key, of=None):
    """The error of an estimate in per cent, of the truth OF (default: KEY), or None."""
    return (100 * (int(row[key]) / int(row["true_" + (of or key)]) - 1)
            if row and row[key] else None)


def per_cent(value):
    return "-" if value is None else f"{value:+.2f}" if abs(value) >= .005 else "0"


def median_and_worst(rows, key):
    """Two cells. What estimates no reserved memory is taken for it, in brackets."""
    own = any(r[key] for r in rows)
    found = [error_of(r, key if own else MEASURES[0], key) for r in rows]
    if not found:
        return "- | -"
    cells = f"{statistics.median(map(abs, found)):.2f}", per_cent(max(found, key=abs))
    return " | ".join(c if own else f"({c})" for c in cells)


def summary(rows):
    for name, (version, says) in ABOUT.items():
        mine = [r for r in rows if r["estimator"] == name]
        done = [r for r in mine if not r["error"]]
        seconds = [float(r["processor_seconds"]) for r in done]
        if mine:
            yield (f"| `{name}` | {version} | {says} | {len(done)} of {len(mine)} | "
                   f"{median_and_worst(done, MEASURES[0])} | "
                   f"{median_and_worst(done, MEASURES[1])} | "
                   f"{f'{statistics.median(seconds):.0f}' if seconds else '-'} |")


def by_program(rows):
    found = {(r["program"], r["estimator"]): r for r in rows}
    for program in sorted({r["program"] for r in rows}):
        one = next(r for r in rows if r["program"] == program)
        true = [f"{int(one['true_' + key]) / 2**30:.3f}" for key in MEASURES]
        cells = [per_cent(error_of(found.get((program, name)), key))
                 for name, key in SHOWN]
        yield f"| `{program}` | {' | '.join(true + cells)} |"


SHOWN = [(name, key) for name in ABOUT for key in MEASURES
         if name not in ("fake", "memtracker") or key == MEASURES[0]]


def seconds_of(rows):
    found = {(r["program"], r["estimator"]): r["processor_seconds"] for r in rows
             if not r["error"]}
    for program in sorted({r["program"] for r in rows}):
        yield (f"| `{program}` | " + " | ".join(
            found.get((program, name), "-") for name in ABOUT) + " |")


def refusals(rows):
    why = collections.defaultdict(list)
    for row in rows:
        if row["error"]:
            why[row["estimator"], row["error"]].append(f"`{row['program']}`")
    for (name, error), programs in sorted(why.items()):
        yield f"- `{name}`, {', '.join(programs)}: {error}"


def page(out, data):
    about, rows = read_csv(data)
    short = {MEASURES[0]: "allocated", MEASURES[1]: "reserved"}
    heads = [f"{name}, {short[key]}" for name, key in SHOWN]
    lines = [
        "# What others say before there is a GPU", "", about + ".",
        INTRODUCTION.format(limit=LIMIT),
        "| estimator | version | what it estimates | programs it ran | allocated: median "
        "error, % | worst, % | reserved: median error, % | worst, % | seconds, median |",
        "|---|---|---|---|" + "---:|" * 5, *summary(rows),
        NOTES.format(limit=LIMIT),
        "## Errors in per cent", "",
        "| program | allocated, GiB | reserved, GiB | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * (2 + len(heads)), *by_program(rows), "",
        "## Processor seconds", "", "| program | " + " | ".join(ABOUT) + " |",
        "|---|" + "---:|" * len(ABOUT), *seconds_of(rows), "",
        "## What could not be run", "", *refusals(rows)]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")


def main():
    if sys.argv[1:2] == ["inside"]:
        inside(sys.argv[2], float(sys.argv[3]), *sys.argv[4:5], sys.argv[5:])
        return
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("run")
    part.add_argument("estimator", choices=ESTIMATORS)
    part.add_argument("command", nargs="+")
    part = parts.add_parser("measure")
    part.add_argument("-o", "--output", default=TABLE)
    part.add_argument("--estimators", default="dry,fake,memtracker,cpu")
    part.add_argument("--limit", type=float, default=LIMIT)
    part.add_argument("programs", nargs="+")
    part = parts.add_parser("page")
    part.add_argument("file", nargs="?", default=os.path.join(PAGES, "estimators.md"))
    part.add_argument("data", nargs="?", default=TABLE)
    options = parser.parse_args()
    if options.part == "run":
        print(json.dumps(estimate(options.estimator, options.command)))
    elif options.part == "measure":
        measure(options)
    else:
        page(options.file, options.data)


if __name__ == "__main__":
    main()
