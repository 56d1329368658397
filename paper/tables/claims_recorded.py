#!/usr/bin/env python3
"""claims_recorded.py [SNAPSHOTS]: what fragsim says about the recordings, as far as the claims
need it. Writes data/claims_recorded.jsonl: the first line is the header, each further
line the digest of one answer, with its command. claims.py makes the page from it.

Needs a Python with h5py. Recordings outside of this tree are those of
../shared/recorded; SNAPSHOTS is the folder of those that claims_programs.py wrote.
Without it, the lines about them stay.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import concurrent.futures
import datetime
import glob
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

from data_header import write_data
from explain_table import died
from monitors import monitors
from places import DATA, ROOT
from policy_table import FRAGSIM, SHARED, recordings

OUT = os.path.join(DATA, "claims_recorded.jsonl")
JITTERS = ["0", "0.4", "0.8"]


def bundled(name):
    return os.path.join(ROOT, "traces", "bundled", name)


def shown(path):
    """The path as a reader of the page has it."""
    return "traces/bundled/" + os.path.basename(path) if path.startswith(ROOT + "/traces") \
        else "recorded/" + os.path.relpath(path, os.path.join(SHARED, "recorded"))


def answer(verb, *words):
    done = subprocess.run([FRAGSIM, verb, "-q", *words, "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def replayed(path):
    found, = answer("replay", path, "-p", "torch@recorded")["results"]
    facts, = answer("info", path)["results"][0]["devices"]
    keys = ["peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes",
            "num_segment_alloc", "fragmentation_ratio", "fragmentation_mean", "overhead"]
    return {"name": "replay", "trace": shown(path), "allocs": facts["requests"]["alloc"],
            "device_calls_recorded": facts["recorded"]["segment_alloc"],
            **{k: found[k] for k in keys}}


def explained(pair):
    path, facts = pair
    found = answer("explain", path)["results"][0]
    return {"name": "explain", "trace": shown(path), "limit_bytes": facts["cap"],
            **{k: found[k] for k in ("cause", "cached_bytes", "not_reserved_bytes",
                                     "largest_hole_bytes")},
            "request_bytes": found["request"]["rounded_bytes"],
            "changes": [[c["kind"], c["change"], c["served"]] for c in found["changes"]]}


def polled(path, capacity):
    return {"name": "monitors", "trace": shown(path), "capacity_bytes": capacity,
            "polls": monitors(path, capacity)}


def ranked(*names):
    paths = [os.path.join(SHARED, "recorded/multi", n) for n in names]
    found = answer("ranks", *paths)
    return {"name": "ranks", "trace": shown(paths[0]),
            "ranks": [{k: r[k] for k in ("peak_requested_bytes", "peak_allocated_bytes",
                                         "peak_reserved_bytes")}
                      for r in found["results"]], "imbalance": found["imbalance"]}


def leaking(path, capacity):
    found = answer("leaks", path, "-c", capacity)["results"][0]
    return {"name": "leaks", "trace": shown(path), "capacity": capacity,
            **{k: found[k] for k in ("verdict", "growth_bytes_per_step", "num_steps",
                                     "least_steps_to_oom")}}


def named(path):
    found = answer("top", path, "--by", "stack")["results"][0]
    return {"name": "top", "trace": shown(path), "held_bytes": found["held_bytes"],
            "groups": [[g["name"], g["held_bytes"]] for g in found["groups"]]}


def generated(case):
    """One training program; its batches are up to so much shorter than the longest."""
    jitter, seed = case
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made.h5")
        subprocess.run([FRAGSIM, "gen", f"training:jitter={jitter}", "--seed", str(seed),
                        "-o", path], check=True, capture_output=True)
        found, = answer("replay", path)["results"]
    return {"name": "gen", "trace": f"training:jitter={jitter}", "jitter": jitter,
            "seed": seed, **{k: found[k] for k in ("peak_allocated_bytes",
                                                   "peak_reserved_bytes", "overhead")}}


def counted():
    """The counters that PyTorch itself reported at the end of each recorded run."""
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded/*/*.json"))):
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        stats = facts.get("stats") or {}
        several = "allocated_bytes.all.peak" not in stats
        for device, one in stats.items() if several else [("0", stats)]:
            if not isinstance(one, dict) or "allocated_bytes.all.peak" not in one:
                continue
            yield {"name": "counters", "trace": shown(path), "device": int(device),
                   "batch": facts.get("batch"), "oom": bool(facts.get("oom")),
                   "limit_bytes": facts.get("cap") or None,
                   "peak_allocated_bytes": one["allocated_bytes.all.peak"],
                   "peak_reserved_bytes": one["reserved_bytes.all.peak"]}


def written(folder):
    """The snapshots of claims_programs.py: does the replay agree, and what do the
    buckets of DDP hold at the peak?"""
    paths = sorted(glob.glob(os.path.join(folder, "*.pickle.xz")))
    found = subprocess.run([FRAGSIM, "validate", "-q", *paths], check=False,
                           capture_output=True, text=True).stdout
    yield {"name": "validate", "trace": "claims_snapshots.tar", "of": len(paths),
           "exact": len(re.findall(r"^\S+, device \d+: exact$", found, re.M))}
    row = named(os.path.join(folder, "ranks_ddp.pickle.xz"))
    groups = [g for g in row["groups"] if "distributed.py" in g[0]]
    yield {**row, "trace": "ranks_ddp.pickle.xz", "groups": groups}


def kept():
    """The lines of the file that is there, about those snapshots."""
    with open(OUT, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    yield from (r for r in found
                if r["name"] == "validate" or r.get("trace") == "ranks_ddp.pickle.xz")


def rows():
    dead = list(died(os.path.join(SHARED, "recorded/dev"))) + \
        list(died(os.path.join(SHARED, "recorded/causes")))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(replayed, recordings())
        yield from pool.map(explained, dead)
        yield from pool.map(lambda p: polled(p[0], p[1]["cap"]), dead)
        yield from pool.map(lambda p: polled(p, None), recordings())
        yield from pool.map(generated, itertools.product(JITTERS, range(1, 8)))
    yield ranked("multi_dp.pickle.xz")
    for kind in ("ddp", "fsdp"):
        yield ranked(*[f"multi_{kind}_rank{r}.pickle.xz" for r in (0, 1)])
    for capacity in ("24GiB", "80GiB"):
        yield leaking(bundled("leak_frames.pickle.xz"), capacity)
    yield named(bundled("leak_frames.pickle.xz"))
    yield from counted()
    yield from written(sys.argv[1]) if len(sys.argv) > 1 else kept()


def main():
    if not importlib.util.find_spec("h5py"):
        print("claims_recorded: there is no h5py for", sys.executable)
        return 77
    version = subprocess.run([FRAGSIM, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    head = {"name": "header", "tool": version, "date": str(datetime.date.today()),
            "command": "paper/tables/claims_recorded.py",
            "device": "NVIDIA H200; batch, causes and h100: NVIDIA H100",
            "torch": "2.11.0+cu130"}
    write_data(OUT, "".join(json.dumps(row) + "\n" for row in [head, *rows()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
