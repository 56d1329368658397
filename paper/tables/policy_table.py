#!/usr/bin/env python3
"""policy_table.py [-j N] [--only POLICY,...]: replays the default recordings of ../shared with every
policy, and finds what every policy needs for them.

Each recording is replayed by every policy with its default parameters (by plan
with more effort, and by torch and remap also with other settings) at unlimited
capacity, and at the midpoint between the lower bound (the peak of the live
requests) and the peak reserved of PyTorch's default. `fragsim fit` finds the need
of each policy: the least capacity of a device from which on nothing fails, and the
least memory limit of the process. Writes data/policies.csv (one row for each
recording, policy and capacity), data/needs.csv (one for each recording, policy and
kind of bound) and pages/policies.md (the table made from both). --only renews the rows
of these policies and keeps the others.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from data_header import read_csv, RECORDINGS, replayed, write_csv
from places import DATA, PAGES, ROOT

SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
COLUMNS = ["trace", "policy", "capacity", "capacity_bytes", "lower_bound_bytes",
           "peak_reserved_bytes", "gap_to_bound", "num_ooms",
           "modelled_device_seconds", "bytes_moved"]
NEED_COLUMNS = ["trace", "policy", "bound", "need_bytes", "fit_bytes",
                "step_bytes", "lower_bound_bytes", "peak_allocated_bytes",
                "peak_reserved_bytes"]
BOUNDS = {"capacity": "--capacity", "limit": "--process-limit"}  # options of fit
# A variant in common use besides a policy's defaults. The data also have rows of
# remap:pack=full, a parameter of fragsim 0.1.
EXTRA = ["torch:expandable_segments:True"]
# The table names these policies without their parameters. `plan` has eight
# times its default effort.
PARAMS = {"plan": "effort=16000000"}
MIB = 2 ** 20
HEAD = """# Every policy on the default recordings

{count} recordings of PyTorch 2.11 on an H200; made by `paper/tables/policy_table.py`, from
`paper/data/needs.csv` and `paper/data/policies.csv`. None of the recordings ran under a
bound.

The *need* is the least bound from which on nothing fails (`fragsim fit`), and what
decides whether a job runs: `device` is the capacity of a device, `limit` the memory limit
of the process, as `set_per_process_memory_fraction` sets it. `fails above` counts the
recordings on which the policy is not monotone, for a device and under a limit: it serves
all requests with less memory than it needs, and fails with more. `reserved` is
peak reserved without a bound, which is what a monitor shows. All of these are divided by
the lower bound: the peak of live requests, each rounded up to the least unit of block
addresses of the policies. The midpoint is the capacity of a device, between that bound
and the peak reserved of PyTorch's default. Seconds are the modelled time of the driver
calls of all recordings at unlimited capacity; `moved` is the memory that the policy
copied.

| policy | need: device, mean | worst | on | limit, mean | worst | fails above | reserved, mean | worst | survives the midpoint | seconds | moved, GiB |
|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
READING = """
What decides whether a job runs is the need. Policies that map small pages and return free
ones when the device refuses (`remap`, `expandable`, `plan_online`, which is `remap` with a
plan for requests that recur in each step) need hardly more than the bound, and copy nothing;
`compact` copies blocks instead. PyTorch's expandable segments do the same with pages of 20
MiB, and are the least that a running program can switch on (`data/law.csv` has the size of
the page). They pay with driver calls. `plan` knows the future. `direct` sends every request
to the driver. `vma` returns empty blocks early. The policies that only place blocks in
segments follow, best fit and its relatives (`best_fit`, `torch`, `tlsf`, `cupy`) close
to each other. `cuda_async` is the driver's own pool, in a program that never synchronizes its
idle device; a program that synchronizes often reserves less, and one that runs far ahead
of its device other amounts (`allocators.md`). Size classes (`slab`) reserve most without
a bound and need less than the default, since a full device gets their empty segments
back. `rmm_arena` reserves half of the device at its first request, as its source does.
"""


# What decides the lower bound and the midpoint: a policy that rounds least, and the default.
BESIDE = ["torch_host", "torch"]


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


def ask(path, names, verb, *options):
    """The rows of a command about all policies, which are compared there."""
    command = [FRAGSIM, verb, "-q", path, "--json", "-", *options]
    for name in names:
        command += ["-p", f"{name}:{PARAMS[name]}" if name in PARAMS else name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = json.loads(done.stdout)["results"]
    for name, row in zip(names, rows):
        row["policy"] = name
    return rows


def measure(path, names):
    rows = ask(path, names, "replay", "-c", "inf")
    bound = max(row["lower_bound_bytes"] for row in rows)
    torch = next(row for row in rows if row["policy"] == "torch")
    middle = (bound + torch["peak_reserved_bytes"]) // 2
    limited = ask(path, names, "replay", "-c", str(middle))
    for label, some in (("inf", rows), ("midpoint", limited)):
        for row in some:
            row["capacity"] = label
    needs = [dict(row, bound=bound) for bound, option in BOUNDS.items() for row in
             ask(path, names, "fit", "-j1", option, "inf")]
    return rows + limited, needs


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def ratios_of(rows, column):
    """{recording: its ratio to the lower bound}"""
    return {r["trace"]: r[column] / r["lower_bound_bytes"] for r in rows}


def summarize(name, rows, needs):
    mine = [r for r in rows if r["policy"] == name]
    free = [r for r in mine if r["capacity"] == "inf"]
    limited = [r for r in mine if r["capacity"] == "midpoint"]
    found = {bound: [r for r in needs
                     if (r["policy"], r["bound"]) == (name, bound)]
             for bound in BOUNDS}
    need = {bound: ratios_of(found[bound], "need_bytes") for bound in BOUNDS}
    reserved = ratios_of(free, "peak_reserved_bytes")
    return {
        "name": name,
        "need": {b: geometric_mean(need[b].values()) for b in BOUNDS},
        "most": {b: max(need[b].values()) for b in BOUNDS},
        "where": max(need["capacity"], key=need["capacity"].get),
        "fails_above": [sum(r["fit_bytes"] < r["need_bytes"]
                            for r in found[b]) for b in BOUNDS],
        "mean": geometric_mean(reserved.values()),
        "worst": max(reserved.values()),
        "survives": sum(r["num_ooms"] == 0 for r in limited),
        "of": len(limited),
        "seconds": sum(r["modelled_device_seconds"] for r in free),
        "moved": sum(r["bytes_moved"] or 0 for r in free) / MIB / 1024,
    }


def line(s):
    cells = [f"`{s['name']}`", f"{s['need']['capacity']:.3f}",
             f"{s['most']['capacity']:.2f}", s["where"],
             f"{s['need']['limit']:.3f}", f"{s['most']['limit']:.2f}",
             "{}, {}".format(*s["fails_above"]), f"{s['mean']:.3f}",
             f"{s['worst']:.2f}", f"{s['survives']} of {s['of']}",
             f"{s['seconds']:.3f}", f"{s['moved']:.1f}"]
    return f"| {' | '.join(cells)} |"


def markdown(rows, needs, names, count):
    table = sorted((summarize(n, rows, needs) for n in names),
                   key=lambda s: (s["need"]["capacity"], s["name"]))
    return HEAD.format(count=count) + "\n".join(map(line, table)) + "\n" + READING


def joined(path, rows, renewed):
    """The rows, with those of the file whose policies were not renewed; and the header
    that says so."""
    head, stored = read_csv(path)
    key = lambda r: (r["trace"], r["policy"], r.get("capacity"), r.get("bound"))
    # A run with an OOM goes on without the refused blocks: its bound is the policy's too.
    bounds = {key(r): int(r["lower_bound_bytes"]) for r in stored
              if r.get("capacity", "inf") == "inf"}
    wrong = [r["trace"] for r in rows if r["policy"] in renewed and
             bounds.get(key(r)) not in (None, r["lower_bound_bytes"])]
    if wrong:
        sys.exit(f"policy_table: {path}: expected the stored lower bound of {wrong[0]}, "
                 "found another one; make all rows again")
    return f"# {head}; again {', '.join(renewed)}: ", [
        {k: number(v) for k, v in r.items()} for r in stored
        if r["policy"] not in renewed] + [r for r in rows if r["policy"] in renewed]


def number(text):
    """A cell as it was written: a number, a word, or None for an empty one."""
    if not text[:1].isdigit() and text[:1] != "-":
        return text or None
    return float(text) if set(text) & set(".e") else int(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="renew the rows of these policies")
    args = parser.parse_args()
    jobs, paths, names = args.j, recordings(), policies()
    renewed = args.only.split(",") if args.only else []
    if not paths:
        print("policy_table: there are no recordings in", SHARED)
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        measured = list(pool.map(
            lambda p: measure(p, renewed + BESIDE if renewed else names),
            paths))
    rows, needs = (sum(parts, []) for parts in zip(*measured))
    header = replayed(FRAGSIM, "paper/tables/policy_table.py", RECORDINGS)
    heads = {"policies.csv": header, "needs.csv": header}
    if renewed:
        said, rows = joined(os.path.join(DATA, "policies.csv"), rows, renewed)
        heads["policies.csv"] = said + header[2:]
        said, needs = joined(os.path.join(DATA, "needs.csv"), needs, renewed)
        heads["needs.csv"] = said + header[2:]
    rows.sort(key=lambda r: (r["trace"], r["capacity"], r["policy"]))
    needs.sort(key=lambda r: (r["trace"], r["bound"], r["policy"]))
    os.makedirs(DATA, exist_ok=True)
    write_csv(os.path.join(DATA, "policies.csv"), heads["policies.csv"], COLUMNS, rows)
    write_csv(os.path.join(DATA, "needs.csv"), heads["needs.csv"], NEED_COLUMNS, needs)
    text = markdown(rows, needs, {r["policy"] for r in rows}, len(paths))
    with open(os.path.join(PAGES, "policies.md"), "w",
              encoding="utf-8") as out:
        out.write(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
