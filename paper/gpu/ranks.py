#!/usr/bin/env python3
"""ranks.py: training on two GPUs, on PyTorch's allocator and on fragsim's policies, in
turns (tables/lockstep.py).

  ranks.py run FOLDER [--seconds N]
    all sides of DDP, then of FSDP, on a machine with two GPUs; adds rows to
    FOLDER/ranks.jsonl. `tables/steps_table.py ranks` makes data/steps_ranks.csv of them.

Needs fragsim_torch on PYTHONPATH and FRAGSIM_TORCH_LIBRARY.
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from data_header import machine  # noqa: E402
ROWS = "ranks.jsonl"

# Side: the policy, and the limit of the process as a multiple of the peak of allocated
# bytes. The limit holds for the steps of the run that finds the peak.
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


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def training(mode, name, policy, folder, **env):
    from lockstep import Program
    return Program(
        name, [sys.executable, os.path.join(HERE, "ranks_program.py"), mode,
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


def build(run):
    """Compiles the class of fragsim before the programs that need it."""
    output, wrong = run.execute(
        [sys.executable, "-m", "fragsim_torch", "build"], {}, 120, "build")
    run.say("build:", (output or "").strip(), wrong or "")
    return not wrong


def run_all(a):
    os.makedirs(a.folder, exist_ok=True)
    run = Run(a.folder, a.seconds)
    run.write({"kind": "about", **machine(), "command": "paper/gpu/ranks.py run"})
    if not build(run):
        return 1
    ranks(run)
    return 0


def ranks(run):
    for modes, mode in ((2, "ddp"), (1, "fsdp")):
        seconds = run.left(0.98) / modes
        run.execute([sys.executable, os.path.abspath(__file__), "ranks",
                     run.folder, mode, f"{seconds:.0f}"], {}, seconds + 5,
                    f"ranks {mode}")


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("folder")
    one.add_argument("--seconds", type=float, default=535)
    one = verbs.add_parser("ranks")  # started by run
    one.add_argument("folder")
    one.add_argument("mode")
    one.add_argument("seconds", type=float)
    a = parser.parse_args()
    if a.verb == "run":
        sys.exit(run_all(a))
    ranks_of(Run(a.folder, a.seconds), a.mode)


if __name__ == "__main__":
    main()
