#!/usr/bin/env python3
"""inside_torch.py: trains on PyTorch's allocator and on fragsim's policies,
side by side.

  inside_torch.py turns [--seconds N] [--rounds N] [--sides A,B,...] [WORKLOAD...]
    step times: one process for each side, all at once on the GPU, which run
    one step each in turn
  inside_torch.py losses [--steps N] [--at-once N] [WORKLOAD...]
    compares losses, with kernels whose sums have one order (`same`);
    --at-once limits the number of processes on the device
  inside_torch.py work [--seconds N] [--rounds N]
    the cost of the recorder in a small CUDA program
  inside_torch.py page
    makes pages/inside_torch.md from the results of the others

Results are added to data/inside_torch.jsonl (FRAG_ROWS), one JSON object per
line. The workloads are those of the recordings (../shared/oracle/record.py, or
FRAG_WORKLOADS), unchanged. A training step ends with Tensor.backward, a step of
generation is a token. Needs fragsim_torch on PYTHONPATH, FRAGSIM_TORCH_LIBRARY,
and FRAGSIM (the tool); `work` needs FRAG_BUILD_DIR.
"""
import argparse
import contextlib
import datetime
import functools
import glob
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from places import DATA, PAGES, ROOT  # noqa: E402
ROWS = os.environ.get("FRAG_ROWS", os.path.join(DATA, "inside_torch.jsonl"))
WORKLOADS = os.environ.get("FRAG_WORKLOADS", os.path.join(
    ROOT, "..", "shared", "oracle", "record.py"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
FOR_EVER = 10 ** 6

# The environment of each side. The second default is the control.
SIDES = {
    "default": {},
    "again": {},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "remap": {"FRAGSIM_POLICY": "remap"},
    "page16": {"FRAGSIM_POLICY": "remap:page=16MiB"},
    "page8": {"FRAGSIM_POLICY": "remap:page=8MiB"},
    "early": {"FRAGSIM_POLICY": "remap:lodge=early"},
    "torch": {"FRAGSIM_POLICY": "torch"},
    "recorded": {},
    "full": {"FRAGSIM_POLICY": "remap:pack=full"},
    "full110": {"FRAGSIM_POLICY": "remap:pack=full", "FRAG_TIMES": "1.1"},
    "full102": {"FRAGSIM_POLICY": "remap:pack=full", "FRAG_TIMES": "1.02"},
}
NAMED = ("full", "full110", "full102")  # run only if --sides has them

# Settings for sums in one order. torchvision's roi_align then runs in Python
# and would be compiled for a minute, so compilation is off.
SAME = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TORCHDYNAMO_DISABLE": "1"}
RECORDED = ["llama_varlen"]  # also run under the recorder
RARE = ("expandable", "early", "torch")  # run in full rounds only
LOSSES = {"llama_varlen": 6, "generate": 1, "rcnn_train": 5}  # steps


# ---- a side: a process of its own ----

class Enough(Exception):
    """Raised when there are no more turns."""


class Steps:
    """Counts the steps of a program, prints its answer at the end of each step,
    and waits there for the next turn."""

    def __init__(self, torch, memory, turns, endless):
        self.torch, self.numbers, self.peaks, self.timed = torch, *memory
        self.turns, self.endless = turns, endless
        self.values, self.counts, self.began = [], 0, None

    def keep(self, value):
        self.values.append(value)

    def ended(self):
        if not self.turns:
            return
        self.torch.cuda.synchronize()
        now = time.perf_counter()
        if self.began is None:
            say({"ready": True})
            pin(core_of_turns())
            self.torch.set_num_threads(1)
        else:
            say({"seconds": now - self.began, **self.since(), **self.peaks()})
        self.counts = self.numbers()
        word = sys.stdin.readline()
        if not word:
            self.released()
        self.timed(word == "full\n")
        self.began = time.perf_counter()

    def since(self):
        return {key: value - self.counts[key]
                for key, value in self.numbers().items()}

    def released(self):
        self.turns = False
        pin(sorted(range(os.cpu_count())))
        self.torch.set_num_threads(os.cpu_count())
        if self.endless:
            raise Enough


def say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def core_of_turns():
    """One core, for all sides, since only one side runs at a time: the last one,
    or FRAG_CORE. Different cores, or shares of several cores, would have different
    speeds."""
    return [int(os.environ.get("FRAG_CORE", os.cpu_count() - 1))]


def pin(cores):
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(thread), cores)


def workload_source():
    """The source of the workloads, without the recording code around it."""
    with open(WORKLOADS, encoding="utf-8") as file:
        text = file.read()
    return text[text.index("def steps(n)"):text.index("def scrub(snap)")]


def watch(torch, workload, steps):
    """Stores the losses of training or the tokens of generation, and marks the
    ends of steps."""
    def after(owner, name, act):
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def wrapped(self, *rest, **named):
            result = inner(self, *rest, **named)
            act(self, result)
            return result

        setattr(owner, name, wrapped)

    def trained(loss, _):
        steps.keep(float(loss.detach()))
        steps.ended()

    def generated(_, tokens):
        steps.keep(hashlib.sha256(json.dumps(
            tokens.tolist()).encode()).hexdigest()[:16])

    if workload == "generate":
        from transformers import LlamaForCausalLM
        after(LlamaForCausalLM, "generate", generated)
        after(LlamaForCausalLM, "forward", lambda *_: steps.ended())
    else:
        after(torch.Tensor, "backward", trained)


# For each side: its counters, its peaks, and a switch for the optional timing.

def memory_of_ours():
    import fragsim_torch
    fragsim_torch.use()

    def numbers():
        return {"calls": fragsim_torch.driver_calls(),
                "ns": fragsim_torch.driver_ns(),
                "timed_calls": fragsim_torch.timed_calls(),
                "timed_ns": fragsim_torch.timed_ns()}

    def peaks():
        return {"peak_reserved": fragsim_torch.peak_reserved(),
                "peak_allocated": fragsim_torch.peak_allocated()}

    return numbers, peaks, fragsim_torch.timed


def memory_of_pytorch(torch):
    def numbers():
        stats = torch.cuda.memory_stats(0)
        return {"calls": stats.get("num_device_alloc", 0) +
                stats.get("num_device_free", 0),
                "requests": stats.get("allocation.all.allocated", 0) +
                stats.get("allocation.all.freed", 0)}

    def peaks():
        stats = torch.cuda.memory_stats(0)
        return {"peak_reserved": stats["reserved_bytes.all.peak"],
                "peak_allocated": stats["allocated_bytes.all.peak"],
                "allocs": stats["num_device_alloc"],
                "frees": stats["num_device_free"]}

    return numbers, peaks, lambda on: None


def one_order(torch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    for kind in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{kind}_sdp")(False)


def segments(torch):
    """The device's memory calls in PyTorch's own history."""
    return [[e["action"].removeprefix("segment_"), e["size"]]
            for e in torch.cuda.memory._snapshot()["device_traces"][0]
            if e["action"] in ("segment_alloc", "segment_free")]


def program(a):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    ours = "FRAGSIM_POLICY" in SIDES[a.side]
    memory = memory_of_ours() if ours else memory_of_pytorch(torch)
    with_history = a.same and a.side == "recorded"
    if with_history:
        torch.cuda.memory._record_memory_history(
            enabled="all", context=None, max_entries=4_000_000)
    random.seed(0)
    torch.manual_seed(0)
    if a.same:
        one_order(torch)
    steps = Steps(torch, memory, not a.same, a.steps == FOR_EVER)
    watch(torch, a.workload, steps)
    space = {"torch": torch, "nn": nn, "F": F, "random": random,
             "dev": torch.device("cuda:0"), "a": a}
    exec(workload_source(), space)  # pylint: disable=exec-used
    try:
        space["w_" + a.workload]()
    except Enough:
        pass
    torch.cuda.synchronize()
    end = {"values": steps.values, **steps.peaks()}
    if with_history:
        end["segments"] = segments(torch)
    say({"end": end})


# ---- all sides ----

def write(row):
    with open(ROWS, "a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def failed_in(workload, what):
    def failed(side, words):
        print(f"{workload}, {what}, {side}: {words}", file=sys.stderr)
        write({"kind": "failed", "workload": workload, "what": what,
               "side": side, "words": words})
    return failed


def recorded_by(trace, command):
    return [FRAGSIM, "record", "-q", "-f", "-o", trace, "--", *command]


def start(workload, side, steps, folder, same):
    from lockstep import Program
    env = dict(os.environ, PYTHONWARNINGS="ignore", PYTHONHASHSEED="0",
               TRANSFORMERS_VERBOSITY="error", **SIDES[side],
               **(SAME if same else {}))
    if "FRAG_TIMES" in env:  # capacity as a multiple of the peak of allocated bytes
        env["FRAGSIM_CAPACITY"] = str(int(float(env["FRAG_TIMES"]) *
                                          int(env["FRAG_PEAK"])))
    command = [sys.executable, os.path.abspath(__file__), "program", workload,
               side, "--steps", str(steps)] + ["--same"] * same
    if side == "recorded":
        command = recorded_by(os.path.join(folder, "trace.h5"), command)
    return Program(side, command, env, os.path.join(folder, side + ".log"))


def requests(trace):
    """The events of a trace as [kind, bytes], in order."""
    done = subprocess.run([FRAGSIM, "export", "-q", trace, "-o", "-"], check=True,
                          stdout=subprocess.PIPE, text=True)
    size, found = {}, []
    for line in done.stdout.splitlines()[1:]:
        op, block, count = line.split(",")[:3]
        if op == "alloc":
            size[block] = int(count)
        if op in ("alloc", "free"):
            found.append([op, size[block]])
    return found


def counts(found):
    return {op: sum(r[0] == op for r in found) for op in ("alloc", "free")}


def beside(wanted, found):
    """The elements of found that remain after wanted is removed from it in
    order; None if found does not contain wanted in that order."""
    left, wanted = [], list(reversed(wanted))
    for request in found:
        if wanted and wanted[-1] == request:
            wanted.pop()
        else:
            left.append(request)
    return None if wanted else left


def add_trace(end, folder):
    """Compares the trace of the recorded side with PyTorch's own numbers."""
    found = requests(os.path.join(folder, "trace.h5"))
    end["trace"] = counts(found)
    if "segments" in end:
        wanted = end.pop("segments")
        end["history"] = counts(wanted)
        end["others"] = beside(wanted, found)


def finish(process, workload, kind, folder):
    end = process.finish()
    if process.name == "recorded":
        add_trace(end, folder)
    write({"kind": kind, "workload": workload, "side": process.name, **end})


def sides_of(workload, wanted=None):
    return [s for s in SIDES if (s != "recorded" or workload in RECORDED)
            and (s in wanted.split(",") if wanted else s not in NAMED)]


def turns(workload, a):
    from lockstep import attempt, take_turns
    failed = failed_in(workload, "turns")
    steps = a.steps if workload == "generate" else FOR_EVER
    sitting = time.time_ns()
    with tempfile.TemporaryDirectory() as folder:
        programs = [start(workload, side, steps, folder, False)
                    for side in sides_of(workload, a.sides)]
        for number, answers in enumerate(take_turns(
                programs, a.seconds, a.rounds, failed, rare=RARE)):
            write({"kind": "round", "workload": workload, "sitting": sitting,
                   "round": number, "sides": answers})
        alive = [p for p in programs if p.process.returncode is None]
        attempt(alive, lambda p: finish(p, workload, "end", folder), failed)


def losses(a):
    from lockstep import attempt

    def run(pair):
        workload, side = pair
        failed = failed_in(workload, "losses")
        with tempfile.TemporaryDirectory() as folder:
            process = start(workload, side,
                            a.steps or LOSSES.get(workload, 0), folder, True)
            attempt([process], lambda p: finish(p, workload, "losses", folder),
                    failed)

    with ThreadPoolExecutor(a.at_once) as pool:
        list(pool.map(run, [(w, s) for w in a.workloads for s in sides_of(w)]))


def built(name):
    return os.path.join(os.environ["FRAG_BUILD_DIR"], name)


def loader(scenario="work"):
    return [built("tests/record/record_loader"), "dlsym", scenario]


def work(a):
    """Runs the CUDA program of the recorder's tests: steps in turns of several
    processes, then in turns within one process, then whole runs."""
    from lockstep import Program, attempt, take_turns
    failed, sitting = failed_in("work", "turns"), time.time_ns()
    pin(core_of_turns())  # child processes inherit it
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.h5")
        sides = {"default": loader(), "again": loader(),
                 "recorded": recorded_by(trace, loader())}
        programs = [Program(side, command, os.environ,
                            os.path.join(folder, side + ".log"))
                    for side, command in sides.items()]
        for number, answers in enumerate(take_turns(programs, a.seconds,
                                                    a.rounds, failed)):
            write({"kind": "round", "workload": "work", "sitting": sitting,
                   "round": number, "sides": answers})
        alive = [p for p in programs if p.process.returncode is None]
        attempt(alive, lambda p: finish(p, "work", "end", folder), failed)
        both(a, folder, sitting)
        for number in range(min(a.rounds, 11)):
            whole(sides, number, sitting)


def both(a, folder, sitting):
    """Steps with and without the recorder, in one process that loads the
    recorder itself."""
    from lockstep import Program, attempt, take_turns
    failed = failed_in("both", "turns")
    env = dict(os.environ, FRAGSIM_RECORD_FOLDER=folder,
               FRAG_RECORDER=built("libfragsim_record.so"))
    program = Program("both", loader("both"), env,
                      os.path.join(folder, "both.log"))
    for number, answers in enumerate(take_turns([program], a.seconds, a.rounds,
                                                failed)):
        write({"kind": "round", "workload": "both", "sitting": sitting,
               "round": number, "sides": answers["both"]})
    if program.process.returncode is None:
        attempt([program], lambda p: finish_both(p, folder), failed)


def finish_both(program, folder):
    end = program.finish()
    [log] = glob.glob(os.path.join(folder, "*.fragrec"))
    write({"kind": "end", "workload": "both", "side": "recorded", **end,
           "trace": counts(requests(log))})


def whole(sides, number, sitting):
    """Times a program from its start to its end, including the writing of its
    trace."""
    from lockstep import orders
    names, seconds = list(sides), {}
    design = orders(len(names))
    for i in design[number % len(design)]:
        began = time.perf_counter()
        subprocess.run(sides[names[i]], input="turn\n" * 100, text=True,
                       stdout=subprocess.DEVNULL, check=True)
        seconds[names[i]] = {"seconds": time.perf_counter() - began}
    write({"kind": "round", "workload": "whole", "sitting": sitting,
           "round": number, "sides": seconds})


def driver_version():
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii") as file:
            return re.search(r"\d+\.\d+(\.\d+)?", file.read())[0]
    except FileNotFoundError:
        return "none"


def about():
    """The machine, driver and versions of the measurement."""
    code = ("import torch; print(torch.__version__, 'on', "
            "torch.cuda.get_device_name(0))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True, check=False)
    return {"kind": "about", "torch": done.stdout.strip() or "none",
            "driver": driver_version(), "cores": os.cpu_count(),
            "date": str(datetime.date.today()),
            "command": " ".join(["paper/gpu/inside_torch.py", *sys.argv[1:]])}


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("turns", "losses", "work"):
        one = verbs.add_parser(verb)
        one.add_argument("--seconds", type=float, default=80)
        one.add_argument("--rounds", type=int, default=FOR_EVER)
        one.add_argument("--steps", type=int, default=0)
        one.add_argument("--at-once", type=int, default=3)
        one.add_argument("--sides")
        if verb != "work":
            one.add_argument("workloads", nargs="*",
                             default=list(LOSSES))
    one = verbs.add_parser("program")
    one.add_argument("workload")
    one.add_argument("side")
    one.add_argument("--steps", type=int)
    one.add_argument("--same", action="store_true")
    verbs.add_parser("page")
    a = parser.parse_args()
    if a.verb == "program":
        program(a)
    elif a.verb == "page":
        from inside_page import make_page
        make_page(ROWS, os.path.join(PAGES, "inside_torch.md"))
    else:
        write(about())
        if a.verb == "turns":
            for workload in a.workloads:
                turns(workload, a)
        else:
            {"losses": losses, "work": work}[a.verb](a)


if __name__ == "__main__":
    main()
