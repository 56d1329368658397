#!/usr/bin/env python3
"""truth_table.py [-j N]: runs the checks that hold fragsim against recorded
allocators, and writes what each of them counts to data/truth.csv, with its command.

Each row of CHECKS names a script of tests/recordings/ and the numbers that it must print.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import replayed, write_csv
from places import DATA, ROOT
from policy_table import FRAGSIM, SHARED

COLUMNS = ["key", "count", "of", "what", "command"]
RESTS_ON = ("the truth was recorded on an H200 and an H100, driver 580.159.04, "
            "PyTorch 2.11.0+cu130")
# script: (key, pattern with the groups count and of, what is counted)
CHECKS = {
    "check_validate.py anchored": [
        ("recordings", r"anchored: (\d+) of (\d+) (?:exact|equal)",
         "recordings replayed exactly, with recorded segment addresses")],
    "check_validate.py foreign": [
        ("foreign", r"foreign: (\d+) of (\d+) (?:exact|equal)",
         "public snapshots of other people replayed exactly")],
    "check_oracle.py": [
        (f"what_if_{name}", rf"(?m)^{name}: (\d+) of (\d+)",
         f"what-if runs that equal PyTorch's own allocator in {name}")
        for name in ("peak_reserved", "first_oom_index", "segments_allocated",
                     "retries")] + [
        ("what_if_device", r"full device instead, peak_reserved: (\d+) of (\d+)",
         "the same with the limit as a capacity, in peak_reserved")],
    "check_validate_cuts.py": [
        ("cuts", r"cuts: (\d+) of (\d+) (?:exact|equal) in .*recorded",
         "recordings cut at a segment event replayed exactly")],
    "check_late.py recorded": [
        ("late_expandable", r"recorded, expandable: (\d+) of (\d+) (?:exact|equal)",
         "late starts with expandable segments replayed exactly"),
        ("late_ordinary", r"recorded, ordinary: (\d+) of (\d+) (?:exact|equal)",
         "late starts with ordinary segments replayed exactly"),
        ("late_by_age", r"recorded, ordinary, by age: (\d+) of (\d+) (?:exact|equal)",
         "late starts with garbage collection by age replayed exactly")],
    "check_allocators.py": [
        (key, rf"(?m)^{key} +(\d+) of (\d+)",
         f"replays through {what} with equal refusals, peaks and segments")
        for key, what in (
            ("rmm_pool", "RMM's pool"),
            ("rmm_pool_max", "RMM's pool with a largest size"),
            ("rmm_pool_initial", "RMM's pool with a first size"),
            ("rmm_arena", "RMM's arenas"),
            ("rmm_binning", "RMM's bins"),
            ("cupy", "CuPy's pool"),
            ("cupy_limit", "CuPy's pool with a limit"),
            ("async", "the driver's pool, synchronized, empty at the start"),
            ("async_keep", "the driver's pool, kept, not synchronized"),
            ("async_keep_sync", "the driver's pool, kept, synchronized"),
            ("jax", "JAX"))] + [
        (f"spread_{key}", rf"(?m)^{key} +\d+ of (?P<of>\d+), (?P<count>\d+) more",
         f"{key}: other rows, within the spread of the seeds")
        for key in ("cupy", "cupy_limit")] + [
        (f"ahead_{key}", rf"driver, {key} +\d+ of (?P<of>\d+) equal .*, "
         r"(?P<count>\d+) within the range",
         f"driver's pool, {key}: rows within the range of the policies")
        for key in ("sync", "every100", "idle", "keep", "work8", "work64")],
}
HOSTILE = ("hostile", r"(?m)^peak_reserved: (\d+) of (\d+)",
           "what-if runs with equal peak reserved if no address is used twice")


def run(script, tool=FRAGSIM):
    done = subprocess.run(
        [sys.executable, *(os.path.join(ROOT, "tests", "recordings", script).split())],
        capture_output=True, text=True, check=False,
        env={**os.environ, "FRAGSIM": os.path.abspath(tool),
             "FRAG_SHARED_DIR": os.path.abspath(SHARED)})
    if done.returncode == 77:
        raise SystemExit(f"truth_table: {script} was skipped: {done.stdout}")
    return done.stdout


def taken(script):
    text = run(script)
    for key, pattern, what in CHECKS[script]:
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            raise SystemExit(f"truth_table: {script} prints {pattern!r} "
                             f"{len(found)} times, expected once:\n{text}")
        numbers = found[0].groupdict() or dict(zip(("count", "of"),
                                                   found[0].groups()))
        yield {"key": key, **numbers, "what": what,
               "command": f"tests/recordings/{script}"}


def asked(*words):
    return json.loads(subprocess.run([FRAGSIM, *words, "--json", "-"], check=False,
                                     capture_output=True, text=True).stdout)["results"]


def validated(path):
    """The rows of a recording, with the peak of a replay that takes no recorded address."""
    told, = asked("info", "-q", path)
    policy = f"torch@{told['torch_version']}:{told['settings'] or ''}".rstrip(":")
    rows = asked("validate", "-q", path)
    for row in rows:
        limit = f"{row['limit_bytes']}B" if row["limit_bytes"] else "inf"
        found, = asked("replay", "-q", path, "-p", policy, "--as-recorded", "--device",
                       str(row["device"]), "--process-limit", limit)
        row["predicted"] = found["peak_reserved_bytes"]
    return rows


def recordings(jobs):
    """What the recordings hold, and the peaks under predicted addresses."""
    paths = sorted(glob.glob(os.path.join(SHARED, "recorded/dev/*.pickle.xz")))
    with ThreadPoolExecutor(jobs) as pool:
        held = list(pool.map(validated, paths))
    yield {"key": "predicted_peak", "of": len(paths),
           "count": sum(all(r["peak_reserved_recorded"] == r["predicted"] for r in rows)
                        for rows in held),
           "what": "recordings with equal peak reserved under predicted addresses",
           "command": "fragsim replay -p torch@2.N:SETTINGS --as-recorded"}
    for key in ("events", "segment_events", "allocs"):
        total = sum(r[key] for rows in held for r in rows)
        yield {"key": key, "count": total, "of": total, "command": "fragsim validate",
               "what": f"{key} in the recordings"}


def hostile():
    """check_oracle.py with a tool that replays under another address rule."""
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(folder, "fragsim")
        with open(tool, "w", encoding="ascii") as out:
            out.write(f'#!/bin/sh\nexec "{os.path.abspath(FRAGSIM)}" "$@" '
                      "--address-rule hostile\n")
        os.chmod(tool, 0o755)
        text = run("check_oracle.py", tool)
    key, pattern, what = HOSTILE
    count, most = re.search(pattern, text).groups()
    yield {"key": key, "count": count, "of": most, "what": what, "command":
           "tests/recordings/check_oracle.py, fragsim replay --address-rule hostile"}


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    rows = [row for script in CHECKS for row in taken(script)]
    rows += [*hostile(), *recordings(jobs)]
    write_csv(os.path.join(DATA, "truth.csv"),
              replayed(FRAGSIM, "paper/tables/truth_table.py", RESTS_ON), COLUMNS,
              rows)
    for row in rows:
        print(f"{row['key']}: {row['count']} of {row['of']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
