#!/usr/bin/env python3
"""check_round_trip.py: random traces, exported as the snapshot of a run of the policy
torch, are validated: the reader must find in the file what the run did.

A case is a trace (streams, sizes, frees that complete later, uses on other streams, calls
of empty_cache; every second one has private pools), a release whose rules hold, a group of
settings, and a bound: none, a full device, or a limit of the process, of which validate is
told. The device reports 16 GiB: one that reports no more than the capacity has reservations
that a request can exceed, of which the file says less than all. Cases that PyTorch itself
would not survive (the command says so) are counted apart.

Usage: check_round_trip.py [CASES [SEED]]; 320 cases without, a quarter in a short run.
FRAG_TINY=1: such a device, too.
Prints the cases and the differences of each release; a case that differs is kept in the
folder FRAG_KEEP, if that is set. Exit 1 if one differs.
"""
import collections
import os
import pickle
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHORT, attempt, need, FRAGSIM

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
TOTAL = 16 * GIB
# Settings, and the first release that knows them.
GROUPS = (
    ("", 1),
    ("expandable_segments:True", 1),
    ("max_split_size_mb:32", 1),
    ("roundup_power2_divisions:4", 1),
    ("roundup_power2_divisions:[1:4,64:1,256:8,>:2]", 1),
    ("garbage_collection_threshold:0.6", 1),
    ("expandable_segments:True,roundup_power2_divisions:8", 1),
    ("expandable_segments:True,garbage_collection_threshold:0.5", 1),
    ("expandable_segments:True,max_split_size_mb:64", 5),
    ("max_split_size_mb:24,garbage_collection_threshold:0.7", 1),
    ("large_segment_size_mb:32,expandable_segments:True", 11),
    ("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.01", 12),
)
POOLS = ((0, 0), (0, 1), (1, 0), (2, 0))


def releases():
    """The releases that the policy models, as its header names them."""
    with open(os.path.join(ROOT, "policies", "torch", "versions.h"),
              encoding="utf-8") as file:
        text = file.read()
    oldest, newest = (int(re.search(rf"TORCH_MODEL_{end} = (\d+)", text)[1])
                      for end in ("OLDEST", "NEWEST"))
    return range(oldest, newest + 1)


def size_of(rng, kind):
    """A requested size; `kind` says which sizes the trace has."""
    if kind == 0:
        return rng.choice((1, 511, 512, 513, MIB - 1, MIB, MIB + 1, 10 * MIB - 1,
                           10 * MIB, 20 * MIB + 1))
    if kind == 1:
        return int(2 ** rng.uniform(0, 28))
    if kind == 2:
        return rng.choice((1, 3 * MIB, 13443072, 16 * MIB, 33 * MIB, 64 * MIB))
    return rng.randint(1, 4 * MIB)


def make(rng):
    """Events (op, block, bytes, stream, pool) and whether there are private pools."""
    kind, count = rng.randrange(4), rng.choice((8, 30, 100, 300))
    streams = rng.choice(((0,), (0, 7), (0, 871720512, 24), tuple(range(9))))
    pools = POOLS[:rng.randint(2, 4)] if rng.random() < .5 else POOLS[:1]
    # The first request is of the default pool.
    caches, uses = rng.choice((0, .03, .1)), rng.choice((0, .05))
    events, live, pending = [], [], []
    for block in range(count):
        while live and rng.random() < .45:
            i = live.pop(rng.randrange(len(live)) if rng.random() < .7 else 0)
            if uses and rng.random() < .2:
                events.append(("free_requested", i, 0, 0, 0))
                pending.append(i)
            else:
                events.append(("free", i, 0, 0, 0))
        while pending and rng.random() < .2:
            events.append(("free", pending.pop(0), 0, 0, 0))
        if live and rng.random() < uses:
            events.append(("record_stream", rng.choice(live), 0,
                           rng.choice(streams), 0))
        if rng.random() < caches:
            events.append(("empty_cache", 0, 0, 0, 0))
        events.append(("alloc", block, size_of(rng, kind), rng.choice(streams),
                       rng.randrange(len(pools)) if block else 0))
        live.append(block)
    if rng.random() < .5:
        events += [("free", i, 0, 0, 0) for i in live]
        events += [("empty_cache", 0, 0, 0, 0)] * rng.randrange(2)
    return events, len(pools) > 1


def as_csv(events, path):
    """Writes the events as rows."""
    with open(path, "w", encoding="ascii") as file:
        file.write("op,id,bytes,stream\n")
        for op, block, size, stream, _ in events:
            file.write({"alloc": f"{op},{block},{size},{stream}\n",
                        "record_stream": f"{op},{block},,{stream}\n",
                        "empty_cache": f"{op},,,\n"}.get(op, f"{op},{block},,\n"))


def as_snapshot(events, path):
    """Writes the events as a history, which has pools. A call of empty_cache is there
    by a segment that it returned."""
    entries, blocks, asked, at = [], {}, set(), 0x7f0000000000
    spare = [0x7e0000000000 + k * GIB for k in range(len(events))]

    def entry(action, addr, size, stream, pool):
        entries.append({"action": action, "addr": addr, "size": size,
                        "stream": stream, "pool_id": POOLS[pool]})
    for addr in spare[:sum(e[0] == "empty_cache" for e in events)]:
        entry("segment_alloc", addr, 2 * MIB, 0, 0)
    for op, block, size, stream, pool in events:
        if op == "alloc":
            at += GIB
            blocks[block] = (at, size, stream, pool)
            entry("alloc", *blocks[block])
        elif op == "empty_cache":
            entry("segment_free", spare.pop(0), 2 * MIB, 0, 0)
        elif op in ("free", "free_requested"):
            if block not in asked:
                entry("free_requested", *blocks[block])
                asked.add(block)
            if op == "free":
                entry("free_completed", *blocks[block])
    with open(path, "wb") as file:
        pickle.dump({"device_traces": [entries], "segments": []}, file)


def case(rng, release, folder):
    """Runs a case; (verdict, its words)."""
    events, has_pools = make(rng)
    settings, _ = rng.choice([g for g in GROUPS if g[1] <= release])
    trace = os.path.join(folder, "t.pickle" if has_pools else "t.csv")
    (as_snapshot if has_pools else as_csv)(events, trace)
    total, told = [], []
    bound = rng.choice((["-c", "inf"], ["-c", "0.8x"], ["-c", "0.8x"], "limit"))
    if "fraction" in settings or (bound == "limit" and release >= 10):
        share = rng.choice((.005, .01, .02, .05))
        if "fraction" in settings:
            settings, share = settings.split("fraction:")[0] + "fraction:", share
            settings += str(share)
        else:
            settings += f"{',' if settings else ''}per_process_memory_fraction:{share}"
        limit = round(share * TOTAL) if release >= 13 else int(share * TOTAL)
        total, told, bound = ["--total", TOTAL], ["--recorded-limit", limit], []
    elif bound == "limit":
        bound = []
    elif not os.environ.get("FRAG_TINY"):
        bound += ["--total", TOTAL]
    policy = f"torch@2.{release}{':' if settings else ''}{settings}"
    export = ["export", trace, "--to", "snapshot", "-p", policy, *bound, *total,
              "-o", os.path.join(folder, "s.pickle"), "-f"]
    validate = ["validate", os.path.join(folder, "s.pickle"), *total, *told]
    words = " ".join(map(str, export)) + "; fragsim " + " ".join(map(str, validate))
    done = attempt(*export)
    if done.returncode:
        return ("died" if "internal assertion" in done.stderr else "failed",
                f"{words}\n{done.stderr}")
    done = attempt(*validate)
    return ("same" if done.returncode == 0 else "differs",
            f"{words}\n{done.stdout}{done.stderr}")


def keep(folder, number):
    """Copies the files of a case, if they are wanted."""
    to = os.environ.get("FRAG_KEEP")
    if to:
        os.makedirs(to, exist_ok=True)
        for name in os.listdir(folder):
            os.replace(os.path.join(folder, name),
                       os.path.join(to, f"{number}.{name}"))


def main():
    """Runs the cases, each release in turn."""
    need(FRAGSIM)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 80 if SHORT else 320
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    counts = {r: collections.Counter() for r in releases()}
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        release = list(counts)[number % len(counts)]
        with tempfile.TemporaryDirectory() as folder:
            verdict, words = case(rng, release, folder)
            if verdict not in ("same", "died"):
                print(f"case {number}, seed {seed}: {verdict}: fragsim {words}")
                keep(folder, number)
        counts[release][verdict] += 1
    for release, n in counts.items():
        print(f"2.{release}: {sum(n.values())} cases, {n['differs']} differ, "
              f"{n['failed']} fail, {n['died']} end as PyTorch does")
    return any(n["differs"] or n["failed"] for n in counts.values())


if __name__ == "__main__":
    sys.exit(main())
