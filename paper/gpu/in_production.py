#!/usr/bin/env python3
"""in_production.py: programs as people run them on fragsim's policies inside
PyTorch: refusals, several GPUs, statistics, graphs, compilation, other processes,
training in turns on one and two GPUs, and many threads for a while.

  in_production.py run FOLDER [--seconds N] [--only PART,...]
    all measurements, on a machine with two GPUs; each part has its own time limit.
    Adds rows to FOLDER/in_production.jsonl and makes FOLDER/snapshots/
  in_production.py replay FOLDER
    replays the snapshots by the tool (FRAGSIM) and adds a row for each
  in_production.py page
    makes pages/in_production.md from data/in_production.jsonl

Parts: lines, turns, ranks, soak. Needs fragsim_torch on PYTHONPATH,
FRAGSIM_TORCH_LIBRARY, and FRAG_WORKLOADS as inside_torch.py. Each of --only turns,
--only ranks, and --only lines,soak fills ten minutes.
"""
import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from in_production_programs import environment, ours

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from places import DATA, PAGES, ROOT  # noqa: E402
ROWS = "in_production.jsonl"
POLICIES = ["torch", "torch:expandable_segments:True", "remap",
            "remap:pack=full"]
EVERY = POLICIES + [
    "best_fit", "bfc", "buddy", "cuda_async", "cupy", "direct", "expandable",
    "first_fit", "half_fit", "next_fit", "rmm_arena",
    "rmm_binning", "rmm_pool", "size_class", "slab", "stitch",
    "tlsf", "vma", "worst_fit"]
PLUGGABLE = ["torch pluggable", "remap pluggable"]
OWN = ["PyTorch", "PyTorch:expandable_segments:True"]

# Program: the sides, the visible devices, the limit in seconds.
LINES = {
    "compiled": (["PyTorch", *POLICIES], "1", 170),
    "other_process": (["PyTorch", *POLICIES], "1", 90),
    "peers": (OWN + POLICIES, "0,1", 60),
    "statistics": (OWN + POLICIES, "1", 60),
    "graphs": (OWN + POLICIES, "1", 90),
    "second_device": (["PyTorch", *POLICIES], "0,1", 60),
    "snapshot": (OWN + POLICIES, "1", 60),
    "oom": (OWN + EVERY + PLUGGABLE, "1", 60),
}
# The long soak: all at once, one after another on the visible devices. PyTorch's own
# allocator below a policy has the limit of the process for itself, so a process holds
# at most twice this share of a device.
SOAK = ["remap:pack=full", "remap", "torch", "PyTorch",
        "torch:expandable_segments:True", "PyTorch:expandable_segments:True"]
SOAK_SECONDS, SOAK_SHARE = 480, "0.08"

# Device: workloads; each with the steps of the run that finds the peak, the seconds
# of turns, and rounds. The capacity of a side holds for the steps that this run
# made, so the rounds are fewer.
TURNS = {"0": {"rcnn_train": (290, 270, 285)},
         "1": {"llama_varlen": (250, 165, 245), "generate": (12, 75, 10000)}}
SIDES = "default,again,full,full110,full102"
# Side: the policy, and the limit of the process as a multiple of the peak of allocated
# bytes. As above, the limit holds for the steps of the run that finds the peak.
SEGMENTS = "PyTorch:expandable_segments:True"
RANKS = {"default": ("PyTorch", None), "again": ("PyTorch", None),
         "fragsim": ("expandable", None), "segments": (SEGMENTS, None),
         "fragsim 1.1": ("expandable", 1.1), "segments 1.1": (SEGMENTS, 1.1),
         "fragsim 1.05": ("expandable", 1.05), "segments 1.05": (SEGMENTS, 1.05),
         "fragsim 1.02": ("expandable", 1.02)}
ROUNDS = 220


class Run:
    """The clock, the output and the processes of a run."""

    def __init__(self, folder, seconds):
        self.folder, self.began = folder, time.monotonic()
        self.seconds, self.lock = seconds, threading.Lock()
        self.snapshots = os.path.join(folder, "snapshots")
        os.makedirs(self.snapshots, exist_ok=True)

    def at(self):
        return time.monotonic() - self.began

    def left(self, until=1.0):
        """Seconds to this share of the whole time."""
        return self.seconds * until - self.at()

    def write(self, row):
        with self.lock, open(os.path.join(self.folder, ROWS), "a",
                             encoding="utf-8") as rows:
            rows.write(json.dumps({"at": round(self.at(), 1), **row}) + "\n")

    def say(self, *words):
        print(f"[{self.at():6.1f}]", *words, flush=True)

    def execute(self, command, env, limit, name):
        """Runs a program in a process group of its own. Returns its output, or
        None, and what went wrong."""
        took = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            with subprocess.Popen(
                    command, env={**os.environ, **env}, text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=errors, start_new_session=True) as process:
                try:
                    output, _ = process.communicate(timeout=max(limit, 1))
                    wrong = process.returncode and \
                        f"exit {process.returncode}"
                except subprocess.TimeoutExpired:
                    output, wrong = "", f"no end in {limit:.0f} s"
                finally:
                    # All of the group, processes of their own included.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            errors.seek(0)
            words = errors.read().strip()
        self.say(name, wrong or "done", f"{time.monotonic() - took:.1f} s")
        if wrong:
            print(words[-1500:], flush=True)
            return output, f"{wrong}: {words[-600:]}"
        return output, None


def cores(first, last):
    """The cores for programs without a clock: the last ones are for the turns."""
    count = os.cpu_count()
    return ["taskset", "-c", f"{first}-{max(first, count - 1 - last)}"]


def last_json(output):
    for line in reversed((output or "").splitlines()):
        if line.startswith('{"'):
            with contextlib.suppress(ValueError):
                return json.loads(line)
    return None


# ---- programs without a clock ----

def line(run, name, side, devices, limit, until=0.54, **env):
    began = time.monotonic()
    if run.left(until) < 3:
        run.write({"kind": "failed", "workload": name, "what": "program",
                   "side": side, "words": "no time left"})
        return {}
    output, wrong = run.execute(
        [*cores(0, 4), sys.executable,
         os.path.join(HERE, "in_production_programs.py"), name, side,
         run.snapshots],
        {"CUDA_VISIBLE_DEVICES": devices, "PYTHONWARNINGS": "ignore", **env,
         **environment(side)}, min(limit, run.left(until)), f"{name} {side}")
    found = last_json(output) or {"checks": []}
    if wrong:
        found["checks"].append(["the program ended well", False, wrong])
    run.write({"kind": "line", "line": name, "side": side,
               "seconds": round(time.monotonic() - began, 1), **found})
    return found


def difference(mine, theirs):
    """The counters that differ between two lists of memory_stats()."""
    return sorted({key for a, b in zip(mine, theirs) for key in {*a, *b}
                   if a.get(key) != b.get(key)})


def compare_statistics(run, found):
    """All counters of the same policy in PyTorch and in fragsim."""
    def stats(side):
        with open(found[side]["stats"], encoding="utf-8") as file:
            return json.load(file)

    for side, own in zip(POLICIES, OWN):
        if all("stats" in found.get(s, {}) for s in (side, own)):
            mine, theirs = stats(side), stats(own)
            run.write({"kind": "statistics", "side": side, "against": own,
                       "looks": len(mine), "counters": len(mine[-1]),
                       "differ": difference(mine, theirs)})
    for each in found.values():
        if "stats" in each:
            os.remove(each["stats"])


def lines(run):
    found = {}

    def act(job):
        name, side, devices, limit = job
        found.setdefault(name, {})[side] = line(run, name, side, devices,
                                                limit, FRAG_SOAK="20")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, [(name, side, devices, limit) for name,
                            (sides, devices, limit) in LINES.items()
                            for side in sides]))
    compare_statistics(run, found.get("statistics", {}))


# ---- training in turns on one GPU ----

def peak_of(run, device, workload, steps):
    """Bytes that PyTorch's default allocated at most."""
    output, wrong = run.execute(
        [*cores(0, 4), sys.executable, os.path.join(HERE, "inside_torch.py"),
         "program", workload, "default", "--steps", str(steps)],
        {"CUDA_VISIBLE_DEVICES": device, "PYTHONWARNINGS": "ignore",
         "TRANSFORMERS_VERBOSITY": "error", "PYTHONHASHSEED": "0"},
        min(110, run.left()), f"peak {workload}")
    end = (last_json(output) or {}).get("end")
    run.write({"kind": "peak", "workload": workload, "steps": steps,
               "wrong": wrong, **({"peak_allocated": end["peak_allocated"],
                                   "peak_reserved": end["peak_reserved"]}
                                  if end else {})})
    return end and end["peak_allocated"]


def turns_of(run, device, workload, peak, until):
    steps, seconds, rounds = TURNS[device][workload]
    sides = SIDES if peak else SIDES.replace(",full110,full102", "")
    seconds = min(seconds, run.left(until) - 35)
    if seconds < 10:
        run.write({"kind": "failed", "workload": workload, "what": "turns",
                   "side": "all", "words": "no time left"})
        return
    run.execute(
        [sys.executable, os.path.join(HERE, "inside_torch.py"), "turns",
         "--seconds", f"{seconds:.0f}", "--rounds", str(rounds),
         "--steps", str(steps), "--sides", sides, workload],
        {"CUDA_VISIBLE_DEVICES": device, "PYTHONWARNINGS": "ignore",
         "FRAG_CORE": str(os.cpu_count() - 1 - int(device)),
         "FRAG_ROWS": os.path.join(run.folder, f"turns{device}.jsonl"),
         "FRAG_PEAK": str(peak or 0)},
        run.left(until) + 15, f"turns {workload}")


def join(run, device):
    """Adds the rows that one device's turns wrote to all rows."""
    path = os.path.join(run.folder, f"turns{device}.jsonl")
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as file:
            for row in file:
                run.write(json.loads(row))
        os.remove(path)


def turns(run):
    """Each device has its own workloads, and its own core."""
    with ThreadPoolExecutor(8) as pool:
        jobs = [(d, w) for d, all_of in TURNS.items() for w in all_of]
        peak = dict(zip(jobs, pool.map(
            lambda job: peak_of(run, *job, TURNS[job[0]][job[1]][0]), jobs)))

        def act(device):
            for workload in TURNS[device]:
                turns_of(run, device, workload, peak[device, workload], 0.66)

        list(pool.map(act, TURNS))
    for device in TURNS:
        join(run, device)


# ---- training on two GPUs ----

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def training(mode, name, policy, folder, **env):
    from lockstep import Program
    return Program(
        name, [sys.executable, os.path.join(HERE, "in_production_ranks.py"), mode,
               policy, "0", str(free_port())],
        dict(os.environ, PYTHONWARNINGS="ignore", **env),
        os.path.join(folder, name + ".log"))


def peaks_of(run, mode, folder, failed):
    """Bytes that PyTorch's default allocated at most, on each rank. No sides with
    a capacity if there is no answer."""
    from lockstep import take_turns
    last = None
    for answers in take_turns([training(mode, "peak", "PyTorch", folder)],
                              run.left(0.4), ROUNDS, failed, start=75):
        last = answers["peak"]
    peaks = last and [last["peak_allocated"], last["rank 1"]["peak_allocated"]]
    run.write({"kind": "ranks peak", "mode": mode, "steps": ROUNDS,
               "peak_allocated": peaks})
    return peaks


def ranks_of(run, mode):
    """One mode: all sides in turns. Runs in a process of its own, whose group
    ends with it."""
    from lockstep import attempt, take_turns

    def failed(side, words):
        print(f"{mode}, {side}: {words}", flush=True)
        run.write({"kind": "failed", "workload": mode, "what": "ranks",
                   "side": side, "words": words})

    with tempfile.TemporaryDirectory() as folder:
        peaks = peaks_of(run, mode, folder, failed)
        programs = [training(mode, side, policy, folder,
                             **({"FRAG_LIMITS": json.dumps(
                                 [int(times * p) for p in peaks])}
                                if times else {}))
                    for side, (policy, times) in RANKS.items()
                    if peaks or not times]
        for number, answers in enumerate(take_turns(
                programs, run.left(0.9), ROUNDS, failed, start=75)):
            run.write({"kind": "ranks", "mode": mode, "round": number,
                       "sides": answers})
        alive = [p for p in programs if p.process.returncode is None]
        attempt(alive, lambda p: run.write(
            {"kind": "ranks end", "mode": mode, "side": p.name,
             **p.finish(30)}), failed)


def ranks(run):
    for modes, mode in ((2, "ddp"), (1, "fsdp")):
        seconds = run.left(0.98) / modes
        run.execute([sys.executable, os.path.abspath(__file__), "ranks",
                     run.folder, mode, f"{seconds:.0f}"], {}, seconds + 5,
                    f"ranks {mode}")


# ---- many threads for a while ----

def used():
    """MiB in use on each device, by the driver's tool."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used",
             "--format=csv,noheader,nounits"], capture_output=True, text=True,
            check=False)
    except OSError:  # no driver on this machine
        return []
    return [int(n) for n in done.stdout.split() if n.isdigit()]


def soak(run):
    before = used()
    seconds = max(10, min(SOAK_SECONDS, run.left() - 45))
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")

    def act(job):
        number, side = job
        line(run, "soak", side, devices[number % len(devices)], seconds + 40,
             1, FRAG_SOAK=str(seconds), FRAG_FRACTION=SOAK_SHARE,
             FRAG_ROWS=os.path.join(run.folder, ROWS))

    with ThreadPoolExecutor(len(SOAK)) as pool:
        list(pool.map(act, enumerate(SOAK)))
    time.sleep(1)
    run.write({"kind": "used", "before": before, "after": used()})


# ---- all ----

def about(parts):
    from inside_torch import about as found
    return {**found(), "devices": len(used()),
            "command": f"paper/gpu/in_production.py run --only {parts}"}


def attempt_part(run, name, act, *arguments):
    try:
        return act(run, *arguments)
    except Exception as error:  # pylint: disable=broad-exception-caught
        run.say(name, "FAILED", repr(error))
        run.write({"kind": "failed", "workload": name, "what": "part",
                   "side": "all", "words": repr(error)})
        return None


def build(run):
    """Compiles the class of fragsim before all programs that need it."""
    output, wrong = run.execute(
        [sys.executable, "-m", "fragsim_torch", "build"], {}, 120, "build")
    run.say("build:", (output or "").strip(), wrong or "")
    run.write({"kind": "build", "words": wrong or "compiled"})
    return not wrong


def run_all(a):
    os.makedirs(a.folder, exist_ok=True)
    run, parts = Run(a.folder, a.seconds), a.only.split(",")
    run.write({**about(a.only), "used": used()})
    if not attempt_part(run, "build", build):
        return 1
    for name, act in (("turns", turns), ("lines", lines), ("ranks", ranks),
                      ("soak", soak)):
        if name in parts:
            attempt_part(run, name, act)
    run.say("end")
    return 0


def replayed(tool, path, side):
    """What the tool says that the policy reserves for the snapshot's requests. Under
    a running program `remap` never meshes."""
    policy = "remap:mesh=no" if side == "remap" else side
    done = subprocess.run(
        [tool, "replay", "-q", "-p", policy, "--json=-", path],
        capture_output=True, text=True, check=False)
    if done.returncode:
        return {"words": done.stderr.strip()[-400:]}
    [found] = json.loads(done.stdout)["results"]
    return {"peak_replayed": found["peak_reserved_bytes"],
            "allocated_replayed": found["peak_allocated_bytes"]}


def replay(a):
    run = Run(a.folder, 0)
    tool = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
    with open(os.path.join(a.folder, ROWS), encoding="utf-8") as file:
        rows = [json.loads(l) for l in file]
    for row in rows:
        if row["kind"] == "line" and "snapshot" in row and ours(row["side"]):
            run.write({"kind": "replay", "side": row["side"],
                       "peak_reserved": row["peak_reserved"],
                       "peak_allocated": row["peak_allocated"],
                       **replayed(tool, os.path.join(
                           run.snapshots, row["snapshot"]), row["side"])})


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("folder")
    one.add_argument("--seconds", type=float, default=535)
    one.add_argument("--only", default="lines,turns,ranks,soak")
    one = verbs.add_parser("ranks")  # started by run
    one.add_argument("folder")
    one.add_argument("mode")
    one.add_argument("seconds", type=float)
    verbs.add_parser("replay").add_argument("folder")
    verbs.add_parser("page")
    a = parser.parse_args()
    if a.verb == "run":
        sys.exit(run_all(a))
    if a.verb == "ranks":
        ranks_of(Run(a.folder, a.seconds), a.mode)
    elif a.verb == "replay":
        replay(a)
    else:
        from in_production_page import make_page
        make_page(os.path.join(DATA, ROWS),
                  os.path.join(PAGES, "in_production.md"))


if __name__ == "__main__":
    main()
