#!/usr/bin/env python3
"""policy_table.py [-j N]: replays the default recordings of ../shared with every
policy.

Each recording is replayed by every policy with its default parameters (by plan
with more effort, and by torch also with expandable segments) at unlimited
capacity, and at the midpoint between the lower bound (the peak of the live
requests) and the peak reserved of PyTorch's default. Writes data/policies.csv (one row for each recording, policy
and capacity) and pages/policies.md (the table made from it).
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, replayed, write_csv
from places import DATA, PAGES, ROOT

SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
COLUMNS = ["trace", "policy", "capacity", "capacity_bytes", "lower_bound_bytes",
           "peak_reserved_bytes", "gap_to_bound", "num_ooms",
           "modelled_device_seconds", "bytes_moved"]
# Variants in common use besides a policy's defaults.
EXTRA = ["torch:expandable_segments:True"]
# The table names these policies without their parameters. `plan` has eight
# times its default effort.
PARAMS = {"plan": "effort=16000000"}
MIB = 2 ** 20
READING = """
`direct` sends every request to the driver and `plan` knows the future. They set
the floor: both for memory, `plan` also for driver calls. Policies that may move
blocks or remap pages come next. They pay with driver calls and a few copies
(`remap`), or with many copies (`compact`); `plan_online` is `remap` with a plan
for requests that recur in each step. PyTorch's expandable segments also remap,
and reserve least of what a running program can switch on. `cuda_async` is the
driver's own pool, which remaps too, in a program that never synchronizes its
idle device. A program that synchronizes often reserves less, and one that runs
far ahead of its device reserves other amounts (`allocators.md`). Among the
policies that only place blocks, best fit and
its relatives (`best_fit`, `torch`, `tlsf`, `cupy`) are close to each other.
`vma` needs less memory because it splits large blocks and releases empty ones.
Size classes that never merge (`slab`, `size_class`) and a fit that uses up the
largest hole (`worst_fit`) reserve two to three times the necessary memory.
`rmm_arena` reserves half of the device at its first request, as its source
does.
"""


def recordings():
    """One recording of each workload: without settings, without a limit, in one
    form of its file."""
    paths = sorted(glob.glob(os.path.join(SHARED, "recorded/dev/*.pickle.xz")))
    other = re.compile(r"__|_frames|_kineto|_cpp")
    return [p for p in paths if not other.search(os.path.basename(p))]


def policies():
    done = subprocess.run([FRAGSIM, "policies", "--json", "-"], check=True,
                          capture_output=True, text=True)
    names = [p["name"] for p in json.loads(done.stdout)["policies"]]
    return names + EXTRA


def replay(path, names, capacity):
    command = [FRAGSIM, "replay", "-q", path, "--json", "-", "-c", capacity]
    for name in names:
        command += ["-p", f"{name}:{PARAMS[name]}" if name in PARAMS else name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = json.loads(done.stdout)["results"]
    for name, row in zip(names, rows):
        row["policy"] = name
    return rows


def measure(path, names):
    rows = replay(path, names, "inf")
    bound = max(row["lower_bound_bytes"] for row in rows)
    torch = next(row for row in rows if row["policy"] == "torch")
    middle = (bound + torch["peak_reserved_bytes"]) // 2
    limited = replay(path, names, str(middle))
    for label, some in (("inf", rows), ("midpoint", limited)):
        for row in some:
            row["capacity"] = label
    return rows + limited


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summarize(name, rows):
    mine = [r for r in rows if r["policy"] == name]
    free = [r for r in mine if r["capacity"] == "inf"]
    limited = [r for r in mine if r["capacity"] == "midpoint"]
    ratios = [r["peak_reserved_bytes"] / r["lower_bound_bytes"] for r in free]
    worst = max(free, key=lambda r: r["peak_reserved_bytes"] /
                r["lower_bound_bytes"])
    return {
        "name": name,
        "mean": geometric_mean(ratios),
        "worst": max(ratios),
        "where": worst["trace"],
        "survives": sum(r["num_ooms"] == 0 for r in limited),
        "of": len(limited),
        "seconds": sum(r["modelled_device_seconds"] for r in free),
        "moved": sum(r["bytes_moved"] or 0 for r in free) / MIB / 1024,
    }


def markdown(rows, names, count):
    lines = [
        "# Every policy on the default recordings", "",
        f"{count} recordings of PyTorch 2.11 on an H200; made by "
        "`paper/tables/policy_table.py`, from", "`paper/data/policies.csv`. The columns "
        "`mean` and `worst` are peak reserved divided by the lower",
        "bound: the peak of live requests, each rounded up to the unit of "
        "block addresses. The",
        "midpoint lies between that bound and the peak reserved of PyTorch's "
        "default. Seconds are the",
        "modelled time of the driver calls of all recordings at unlimited "
        "capacity; `moved` is the", "memory that the policy copied.",
        "",
        "| policy | mean | worst | on | survives the midpoint | seconds | "
        "moved, GiB |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    table = sorted((summarize(n, rows) for n in names),
                   key=lambda s: (s["mean"], s["name"]))
    for s in table:
        lines.append(f"| `{s['name']}` | {s['mean']:.3f} | {s['worst']:.2f} | "
                     f"{s['where']} | {s['survives']} of {s['of']} | "
                     f"{s['seconds']:.3f} | {s['moved']:.1f} |")
    return "\n".join(lines) + "\n" + READING


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    paths, names = recordings(), policies()
    if not paths:
        print("policy_table: there are no recordings in", SHARED)
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        rows = sum(pool.map(lambda p: measure(p, names), paths), [])
    rows.sort(key=lambda r: (r["trace"], r["capacity"], r["policy"]))
    os.makedirs(DATA, exist_ok=True)
    write_csv(os.path.join(DATA, "policies.csv"),
              replayed(FRAGSIM, "paper/tables/policy_table.py", RECORDINGS), COLUMNS,
              rows)
    text = markdown(rows, names, len(paths))
    with open(os.path.join(PAGES, "policies.md"), "w",
              encoding="utf-8") as out:
        out.write(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
