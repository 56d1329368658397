#!/usr/bin/env python3
"""survival_table.py [-j N]: which policy runs which of the default recordings of
../shared at which capacity of the device, and the capacities at which PyTorch's
default fails although it survives with less memory. No run has a limit of the
process.

Writes data/survival.csv, one row for each policy and capacity with the number of
recordings that run without an OOM, and data/survival_spans.csv, one row for each span
of capacities with one outcome of `fragsim fit TRACE --frontier -`, from the
smallest capacity that any request stream needs up to the last change.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, policies, recordings

CAPACITIES = ["1.01x", "1.02x", "1.05x", "1.1x", "1.2x", "1.3x", "1.5x", "2x",
              "3x", "4x"]


def run(*command):
    return subprocess.run([FRAGSIM, *command], check=True, text=True,
                          capture_output=True).stdout


def survival(path, names):
    """[(policy, capacity, whether it runs)]"""
    command = ["replay", "-q", path, "--stop-at-oom", "--json", "-", "-c",
               ",".join(CAPACITIES)]
    for name in names:
        command += ["-p", name]
    rows = json.loads(run(*command))["results"]
    wanted = [(n, c) for n in names for c in CAPACITIES]
    if len(rows) != len(wanted):
        raise SystemExit(f"{path}: {len(rows)} rows, expected {len(wanted)}")
    return [(n, c, not r["num_ooms"]) for (n, c), r in zip(wanted, rows)]


def spans(path):
    """The spans of capacities with one outcome; neighbours are joined."""
    found = []
    for r in csv.DictReader(io.StringIO(run("fit", "-q", path, "-c", "inf",
                                            "--frontier", "-"))):
        row = {"trace": r["trace"], "from_bytes": r["from_bytes"],
               "to_bytes": r["to_bytes"],
               "survives": int(r["first_oom_event"] == "")}
        if found and found[-1]["survives"] == row["survives"]:
            found[-1]["to_bytes"] = row["to_bytes"]
        else:
            found.append(row)
    return found


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    paths, names = recordings(), policies()
    if not paths:
        print("survival_table: the recordings are absent; skipped")
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        held = list(pool.map(lambda p: survival(p, names), paths))
        frontier = sum(pool.map(spans, paths), [])
    header = replayed(FRAGSIM, "paper/tables/survival_table.py", RECORDINGS)
    rows = [{"policy": n, "capacity": c, "recordings": len(held),
             "survives": sum((n, c, True) in some for some in held)}
            for n in names for c in CAPACITIES]
    write_csv(os.path.join(DATA, "survival.csv"), header,
              list(rows[0]), rows)
    write_csv(os.path.join(DATA, "survival_spans.csv"), header,
              list(frontier[0]), frontier)
    print(f"{len(rows)} rows of survival, {len(frontier)} spans")
    return 0


if __name__ == "__main__":
    sys.exit(main())
