#!/usr/bin/env python3
"""check_beside.py: checks that a program under libfragsim_torch.so gets what the
simulation predicts, event by event, under every kind of bound.

tests/gpu/torch/torch_beside.c serves the requests of a recording by the library, on
the stand-in for the driver, and compares each answer with the simulation. For every
policy that can serve a program, under a capacity, under a limit of the process, and on a
device of which other memory leaves so much (full: from the start; late: after an earlier
request, before an empty_cache), the bounds are what `fragsim fit` names, the
next smaller bound, and 1.02 times the peak requested; the recording must survive the
first and die under the second.
Environment: FRAG_BUILD_DIR.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, BUNDLED, FRAGSIM, need, share

PROGRAM = os.path.join(BUILD, "tests", "torch_beside")
LIBRARY = os.path.join(BUILD, "libfragsim_torch.so")
TRACES = ("leak", "lstm_varlen__cap_tight_exp", "gpt2_train")
VARIANTS = ["torch:expandable_segments:True", "remap", "expandable"]
# kind: what fit is asked
KINDS = {"capacity": ["-cinf"], "limit": ["--process-limit=inf"],
         "full": ["-cinf", "--total=150109880320B"],  # an H200
         "late": ["-cinf", "--total=150109880320B"]}
# Their segments are whole pages: the stand-in does not share one between segments.
WHOLE = {"torch", "best_fit", "expandable", "paged", "remap", "bfc"} | set(VARIANTS)
# Other memory leaves so much of the device. The segments of bfc grow with each, so an
# earlier request changes them.
LEFT = {"full": WHOLE, "late": WHOLE - {"bfc"}}
PAGE = 2 << 20  # what is left of a device is whole pages
failures = []


def fail(text):
    failures.append(text)
    print(text, flush=True)


def answer(*arguments):
    done = subprocess.run([FRAGSIM, *arguments, "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def policies(kind):
    """A program has no future to be known, and its blocks stay where they are."""
    names = [p["name"] for p in answer("policies")["policies"]
             if not {"moves", "future"} & set(p["needs"])] + VARIANTS
    return [n for n in names if n in LEFT.get(kind, names)]


def trace_path(name):
    return name if name.endswith(".csv") else os.path.join(BUNDLED, name + ".pickle.xz")


def made(folder):
    """A trace with an empty_cache while half of the blocks are live."""
    path = os.path.join(folder, "emptied.csv")
    with open(path, "w", encoding="utf-8") as out:
        out.write("op,id,bytes,stream\n")
        out.writelines(f"alloc,{i},{512 << 20},0\n" for i in range(40))
        out.writelines(f"free,{i},,0\n" for i in range(20))
        out.write("empty_cache,,,\n")
        out.writelines(f"alloc,{i},{384 << 20},0\n" for i in range(40, 80))
    return path


def fits(case):
    trace, kind = case
    rows = answer("fit", trace_path(trace), "--as-recorded", "-j1", *KINDS[kind],
                  *(f"-p{policy}" for policy in policies(kind)))["results"]
    return [(trace, kind, row) for row in rows]


def agrees(case):
    trace, kind, row = case
    fit, step = row["need_bytes"], row["step_bytes"]
    tight = int(1.02 * row["lower_bound_bytes"])
    if kind in LEFT:
        fit, step, tight = fit and -(-fit // PAGE) * PAGE, PAGE, tight // PAGE * PAGE
    wanted = {tight: None}
    if fit is not None:
        wanted |= {fit: "lived", fit - step: "died"}
    env = dict(os.environ, FRAGSIM_DRY_LEAKS="1", FRAGSIM_DRY_GPU="h200",
               FRAGSIM_OUTPUT="", LD_LIBRARY_PATH=os.path.join(BUILD, "dry"))
    done = subprocess.run([PROGRAM, LIBRARY, trace_path(trace), row["policy"], kind,
                           *map(str, wanted)], env=env, text=True,
                          capture_output=True, check=False)
    found = done.stdout.split()
    if done.returncode or done.stderr:
        fail(f"{trace}: {done.stderr.strip() or done.returncode}")
    elif any(w not in (None, f) for w, f in zip(wanted.values(), found)):
        fail(f"{trace}: {row['policy']}, {kind}: {dict(zip(wanted, found))}, fit: {fit}")


def main():
    need(PROGRAM, LIBRARY)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        cases = [(trace, kind) for trace in [*share(TRACES), made(folder)]
                 for kind in KINDS]
        rows = [row for found in pool.map(fits, cases) for row in found]
        list(pool.map(agrees, rows))
    print(f"{len(rows)} rows of policy, trace and bound, {len(failures)} differ")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
