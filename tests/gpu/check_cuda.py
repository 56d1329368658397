#!/usr/bin/env python3
"""check_cuda.py: checks the CUDA backend on a stand-in for the driver.

real/dry stands for the driver. It is strict, uses host memory, and fails
or corrupts a copy on request. Every policy must have the same numbers as on the
arena, at two capacities, with contents checked. A failure of any call must end
the run with 5 and leave no memory held. A corrupted copy must be found.
Environment: FRAGSIM (the tool), FRAG_BUILD_DIR (where the stand-in was built).
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

STANDINS = os.path.join(BUILD, "dry")
MOVES_NOTHING = ["torch:expandable_segments:True", "best_fit"]
# Of one side only: how it was timed, and what it is called.
SIDES = {"backend", "modelled_device_seconds", "ns_per_event"}

failures = []


def fail(text):
    failures.append(text)
    print(text)


def run(*arguments, **driver):
    env = dict(os.environ, LD_LIBRARY_PATH=STANDINS,
               **{f"FRAGSIM_DRY_{key.upper()}": str(value)
                  for key, value in driver.items()})
    return subprocess.run([FRAGSIM, *arguments], env=env, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          check=False)


def rows(*arguments):
    done = run("replay", *arguments, "--json", "-", "-q")
    if done.returncode:
        raise SystemExit(f"fragsim replay {' '.join(arguments)}: exit "
                         f"{done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["results"]


def policies():
    names = json.loads(run("policies", "--json", "-").stdout)["policies"]
    return [p["name"] for p in names] + MOVES_NOTHING[:1]


def same_numbers(trace, policy):
    """Both backends must return the same rows."""
    what = [trace, "-p", policy, "-c", "inf,1.1x", "--total", "8GiB", "--check"]
    for arena, cuda in zip(rows(*what), rows(*what, "--backend", "cuda"),
                           strict=True):
        for key in arena.keys() - SIDES:
            if arena[key] != cuda[key]:
                fail(f"{policy} at {arena['capacity_bytes']}: {key} is "
                     f"{cuda[key]}, on the arena {arena[key]}")


def calls_of(folder, *arguments):
    path = os.path.join(folder, "calls")
    done = run(*arguments, calls=path)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    with open(path, encoding="ascii") as file:
        return int(file.read())


def survives_failures(folder, trace, policy):
    """A call fails, for several calls in turn: the run ends with 5 and holds
    nothing. The last two calls release the memory of the check of contents."""
    what = ["replay", trace, "-p", policy, "--backend", "cuda", "--check"]
    count = calls_of(folder, *what)
    steps = sorted({*range(1, 16), *range(16, count, count // 16),
                    *range(count - 15, count - 1)})

    def at(k):
        return k, run(*what, fail_at=k)

    with ThreadPoolExecutor() as pool:
        for k, done in pool.map(at, steps):
            if done.returncode != 5 or "CUDA_ERROR" not in done.stderr:
                fail(f"{policy}, call {k} of {count} fails: exit "
                     f"{done.returncode}, {done.stderr.strip()}")


def finds_spoilt_copy(trace, policy, when):
    """The fault is reported in the event that caused it, not only when the
    block is freed."""
    done = run("replay", trace, "-p", policy, "--backend", "cuda", "--check",
               corrupt_copy=2)
    if (done.returncode != 1 or "has lost its contents" not in done.stderr
            or when not in done.stderr):
        fail(f"{policy}, a corrupted copy: exit {done.returncode}, "
             f"{done.stderr.strip()}")


def true_end_of_memory(trace):
    """Without a capacity, the device itself refuses the request."""
    what = [trace, "-p", "best_fit", "--backend", "cuda"]
    env = {"FRAGSIM_DRY_MEMORY": "24"}
    os.environ.update(env)
    row = rows(*what)[0]
    for key in env:
        del os.environ[key]
    if not row["num_ooms"] or row["peak_reserved_bytes"] > 24 << 20:
        fail(f"at the end of memory: {row}")


def compares(trace):
    """0 if every count is equal and nothing leaked; 1 with the number that
    differs if the device has less memory than the simulated one."""
    done = run("compare", "-q", trace, "-p", "torch", "-p", "compact", "-p",
               "remap", "-c", "inf,1.1x", "--total", "8GiB", "--check",
               "--repeat", "2", "--json", "-")
    found = json.loads(done.stdout)["results"] if done.stdout else []
    if done.returncode or len(found) != 6:
        fail(f"compare: exit {done.returncode}, {done.stderr.strip()}")
    arena = rows(trace, "-p", "torch", "-p", "compact", "-p", "remap", "-c",
                 "inf,1.1x", "--total", "8GiB")
    for row, plain in zip(found, arena, strict=True):
        seconds = sum(c["modelled_seconds"] for c in row["calls"])
        if (not row["same"] or row["leaked_bytes"] or row["runs"] != 3
                or row["real_peak_reserved_bytes"] != plain["peak_reserved_bytes"]
                or row["real_first_oom_event"] != plain["first_oom_event"]
                or abs(seconds - row["modelled_seconds"]) > 1e-7
                or not plain["num_alloc_retries"] and
                seconds < plain["modelled_device_seconds"] * 0.999
                or not row["measured_seconds"] > 0
                or not row["pace"] > 0
                or abs(row["paced_ratio"] / row["modelled_ratio"]
                       - row["pace"]) > 1e-6):
            fail(f"compare: {row}, on the arena {plain}")
    os.environ["FRAGSIM_DRY_MEMORY"] = "24"
    done = run("compare", "-q", trace, "-p", "best_fit", "--repeat", "1")
    del os.environ["FRAGSIM_DRY_MEMORY"]
    if done.returncode != 1 or ", simulated" not in done.stdout:
        fail(f"compare at the end of memory: exit {done.returncode}, "
             f"{done.stdout}")


def chooses_costs(folder, trace):
    """compare takes the costs of the GPU's kind where they were measured, and
    says so where they were not; --costs has the last word."""
    what = ["compare", trace, "-p", "direct", "--repeat", "1", "--json", "-"]
    path = os.path.join(folder, "other.csv")
    with open(os.path.join(ROOT, "real/data/nvidia-h200-costs.csv"),
              encoding="ascii") as file, open(path, "w",
                                              encoding="ascii") as out:
        out.write(file.read())
    for name, more, costs, is_noted in (
            ("NVIDIA H200", [], "h200", False), ("stand-in", [], "h200", True),
            ("NVIDIA H100 80GB HBM3", [], "h100", False),
            ("NVIDIA H100 80GB HBM3", ["--costs", "h200"], "h200", False),
            ("NVIDIA H2000", [], "h200", True),
            ("stand-in", ["--costs", "h200"], "h200", False),
            ("stand-in", ["--costs", path], path, False)):
        done = run(*what, *more, name=name)
        rows_found = json.loads(done.stdout)["results"] if done.stdout else []
        noted = f"this GPU ({name}) was not measured" in done.stderr
        if ([r["costs"] for r in rows_found] != [costs] or noted != is_noted):
            fail(f"costs of {name} {more}: {rows_found}, {done.stderr}")
    done = run(*what, "--costs", "h300")
    if done.returncode != 4 or "h300" not in done.stderr:
        fail(f"costs h300: exit {done.returncode}, {done.stderr}")


def calibrates(folder):
    """--costs reads the written costs; after a failure of any call nothing is
    held."""
    os.environ["FRAGSIM_DRY_MEMORY"] = "64"
    what = ["compare", "--calibrate", "-q", "-f", "--repeat", "1",
            "--csv", os.path.join(folder, "costs.csv"),
            "--calls", os.path.join(folder, "calls.csv")]
    count = calls_of(folder, *what)
    for k in [*range(1, 40), *range(40, count - 1, count // 40)]:
        done = run(*what, fail_at=k)
        if done.returncode != 5 or "CUDA_ERROR" not in done.stderr:
            fail(f"calibrate, call {k} of {count} fails: exit "
                 f"{done.returncode}, {done.stderr.strip()[:400]}")
    del os.environ["FRAGSIM_DRY_MEMORY"]
    trace = os.path.join(folder, "t.h5")
    rows(trace, "-p", "torch", "--costs", os.path.join(folder, "costs.csv"))


def interrupted(folder):
    """Ctrl-C during a run: exit code 130, and nothing is held. (A stand-in
    ends with 86 after a fault, or if memory is held.)"""
    trace = os.path.join(folder, "long.h5")
    subprocess.run([FRAGSIM, "gen", "-q", "-o", trace,
                    "stationary:allocs=3000000,live=300,mean=1MiB,spread=1"],
                   check=True)
    env = dict(os.environ, LD_LIBRARY_PATH=STANDINS)
    for what in (["replay", trace, "-p", "direct", "--backend", "cuda"],
                 ["compare", "--calibrate", "--repeat", "10000"]):
        calls = os.path.join(folder, "calls")
        with subprocess.Popen([FRAGSIM, *what], env=dict(
                env, FRAGSIM_DRY_MEMORY="1024", FRAGSIM_DRY_CALLS=calls), text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tool:
            time.sleep(1)
            tool.send_signal(signal.SIGINT)
            words = tool.communicate()[1]
        with open(calls, encoding="ascii") as file:
            made = int(file.read())
        if tool.returncode != 130 or made < 100:
            fail(f"{what[0]} interrupted after {made} calls: exit "
                 f"{tool.returncode}, {words[:400]}")


def no_driver(trace):
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run([FRAGSIM, "replay", trace, "--backend", "cuda"],
                          env=env, text=True, capture_output=True, check=False)
    if done.returncode == 0:
        return  # there is a GPU
    if done.returncode != 5 or "driver" not in done.stderr:
        fail(f"without a driver: exit {done.returncode}, {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "t.h5")
        subprocess.run([FRAGSIM, "gen", "-q", "-o", trace, sys.argv[1]
                        if len(sys.argv) > 1 else
                        "stationary:allocs=300,live=30,mean=1MiB,spread=1"],
                       check=True)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda p: same_numbers(trace, p), policies()))
        for policy in ("torch", "torch:expandable_segments:True", "remap",
                       "compact", "stitch"):
            survives_failures(folder, trace, policy)
        finds_spoilt_copy(trace, "compact", "when it was moved")
        true_end_of_memory(trace)
        compares(trace)
        chooses_costs(folder, trace)
        calibrates(folder)
        interrupted(folder)
        no_driver(trace)
    if failures:
        sys.exit(f"check_cuda: {len(failures)} wrong")


main()
