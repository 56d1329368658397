#!/usr/bin/env python3
"""calibrate.py [-j N] [--new FOLDER | --table]: how often jobs that died live with a
setting, for each state in which their recording leaves the question.

A pair is a recording of a job that died and a recording of the same job that did not.
Some pairs are recorded in ../shared (NAME__cap_* and NAME). More are cut: a complete
recording is replayed under limits of the process, shares of its own need, and cut at
the request that fails. With `--new`, both are from a folder that paper/gpu/truth.py made.

Each dead file is asked, under the limit at which it died, what the settings of SETTINGS
need; the state (STATES) sees nothing of the complete run. The truth is the need of the
complete run with the same setting: the job lived if that is at most the limit. A need is
the least limit that serves, found by replays under ever closer limits, to 0.1 %.

Jobs held out are no replays: paper/gpu/holdout.py let programs that had no part in the
rule die under 0.88 to 1.17 times the bytes that they had at their peak, asked `tune` about
each death, and then ran them with its setting under the same limit.

Writes data/dead.csv or, with --new, data/dead_new.csv (one row for each death and
setting), and pages/dead.md from both and data/dead_holdout.csv, which it prints; --table
makes the page alone. Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import collections
import glob
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED

EXPANDABLE = "expandable_segments:True"
SETTINGS = ("", EXPANDABLE, "max_split_size_mb:128",
            EXPANDABLE + ",large_segment_size_mb:12")
SHARES = [("", s) for s in (0.995, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7)] + \
         [(EXPANDABLE, s) for s in (0.98, 0.9)]
ENDING = ".pickle.xz"
TABLES = [os.path.join(DATA, name) for name in
          ("dead.csv", "dead_new.csv", "dead_holdout.csv")]
UNITS = {"KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30}
RESTS = "recordings of PyTorch 2.11 on an H200 and an H100"
NUMBERS = ("steps", "serves", "failed_requests", "lived", "of")
COLUMNS = ["death", "program", "kind", "recorded_with", "limit_bytes", "event", "setting",
           "steps", "serves", "need_said_bytes", "enough_said_bytes", "need_true_bytes"]


def results(*command):
    done = subprocess.run([FRAGSIM, *command, "--json", "-"], capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr}")
    return json.loads(done.stdout)["results"]


def replay(path, setting, *options):
    return results("replay", "-q", path, "-p", f"torch:{setting}" if setting else "torch",
                   *options)


def first_oom(path, setting, limits, *options):
    """Where a job with each of these limits dies; None where it lives."""
    rows = replay(path, setting, "--process-limit", ",".join(f"{n}B" for n in limits),
                  "--stop-at-oom", *options)
    return [row["first_oom_event"] for row in rows]


def need_of(path, setting):
    row, = replay(path, setting)
    low, high = row["lower_bound_bytes"], row["peak_reserved_bytes"] + 1
    for _ in range(3):
        limits = sorted({low + (high - low) * i // 13 for i in range(13)})
        fails = [n for n, at in zip(limits, first_oom(path, setting, limits))
                 if at is not None]
        if not fails:
            return limits[0]
        low, high = fails[-1], min([n for n in limits if n > fails[-1]] + [high])
    return high


def said(dead):
    """(complete steps, the spread of what further steps need, or 0 if it is not told)"""
    row, = replay(dead, "")
    notes = " ".join(row["notes"])
    steps = re.search(r"after (\d+) complete step", notes)
    most = re.search(r"follow ask for at most ([\d.]+) (\w+)", notes)
    return (int(steps[1]) if steps else 0,
            float(most[1]) * UNITS[most[2]] / row["peak_requested_bytes"] if most else 0)


def name_of(path):
    return os.path.basename(path)[:-len(ENDING)]


def about(path):
    with open(path[:-len(ENDING)] + ".json", encoding="utf-8") as file:
        return json.load(file)


def complete_runs(folder):
    """The complete runs with PyTorch's default; of batches, every third."""
    paths = [p for f in folder for p in sorted(glob.glob(os.path.join(f, "*" + ENDING)))
             if not re.search("__|frames|kineto|cpp", name_of(p)) and not about(p).get("oom")]
    batches = [p for p in paths if re.search(r"_b\d+$", name_of(p))]
    return [p for p in paths if p not in batches] + batches[1::3]


def cut(snapshot, allocs, target):
    """Writes the recording up to the request after so many, which fails."""
    entries = snapshot["device_traces"][0]
    at = [i for i, e in enumerate(entries) if e["action"] == "alloc"][allocs]
    failed = dict(entries[at], action="oom", device_free=0)
    del failed["addr"]
    marks = [a for a in snapshot.get("external_annotations", [])
             if a["time_us"] <= failed["time_us"]]
    with open(target, "wb") as file:
        pickle.dump(dict(snapshot, segments=[], external_annotations=marks,
                         device_traces=[entries[:at] + [failed]]), file, protocol=4)


def deaths_of(path, true, folder):
    """(death, kind, setting it ran with, limit, event, file) of one complete run."""
    for dead in sorted(glob.glob(path[:-len(ENDING)] + "__*" + ENDING)):
        told = about(dead)
        if told["oom"] and told.get("bound", "process") == "process":
            yield name_of(dead), "recorded", told["conf"], told["cap"], "", dead
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    if sum(map(bool, snapshot["device_traces"])) > 1:
        return
    events = subprocess.run([FRAGSIM, "export", path], check=True, text=True,
                            capture_output=True).stdout.splitlines()[1:]
    for setting, share in SHARES:
        limit = int(share * true[setting])
        first, = first_oom(path, setting, [limit])
        if first is None:
            continue
        dead = os.path.join(folder, f"{name_of(path)}_{first}.pickle")
        if not os.path.exists(dead):
            cut(snapshot, sum(e.startswith("alloc,") for e in events[:first]), dead)
        yield (f"{name_of(path)} at {share:g} of {setting or 'default'}", "cut", setting,
               limit, first, dead)


def measure(path):
    true = {s: need_of(path, s) for s in SETTINGS}
    known, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for death, kind, conf, limit, event, dead in deaths_of(path, true, folder):
            if dead not in known:
                known[dead] = said(dead), {s: need_of(dead, s) for s in SETTINGS}
            (steps, spread), needs = known[dead]
            for setting in SETTINGS:
                serves = first_oom(dead, setting, [limit], "--as-recorded") == [None]
                rows.append(dict(zip(COLUMNS, (
                    death, re.sub(r"_b\d+$", "", name_of(path)), kind, conf, limit, event,
                    setting, steps, int(serves), needs[setting],
                    int(needs[setting] * spread), true[setting]))))
    print(f"{name_of(path)}: {len(rows)} rows", file=sys.stderr, flush=True)
    return rows


def room(row):
    return row["limit_bytes"] / row["need_said_bytes"]


# The first that holds is the state, as in sim/experiments/tune/odds.c.
STATES = [
    ("FAILS", "not enough", lambda r: not r["serves"]),
    ("NEEDS_MORE", "not enough", lambda r: room(r) < 1),
    ("TOLD", "enough", lambda r: 0 < r["enough_said_bytes"] <= r["limit_bytes"]),
    ("LIKELY", "worth trying", lambda r: r["enough_said_bytes"] or
     room(r) >= (1.05 if r["steps"] else 1.1)),
    ("TIGHT", "worth trying", lambda r: True),
]


def state_of(row):
    return next(name for name, _, holds in STATES if holds(row))


def lived(row):
    return row["need_true_bytes"] <= row["limit_bytes"]


def decided(rows):
    """Of each death the setting that a decision takes: one that serves, with most room."""
    deaths = collections.defaultdict(list)
    for row in rows:
        if row["setting"] != row["recorded_with"]:
            deaths[row["program"], row["death"]].append(row)
    return [max(some, key=lambda r: (r["serves"], room(r))) for some in deaths.values()]


def once(rows):
    """Limits at which the same request fails and the same holds are one death."""
    return list({(r["program"], r["event"] or r["death"], state_of(r), lived(r)): r
                 for r in rows}.values())


def share(rows, holds=lived):
    return f"{sum(map(holds, rows))} of {len(rows)}"


def table(sets):
    yield "| state | class | " + " | ".join(sets) + " | programs |"
    yield "|---|---|" + "---|" * (len(sets) + 1)
    for name, kind, _ in STATES:
        some = [[r for r in rows if state_of(r) == name] for rows in sets.values()]
        yield (f"| {name} | {kind} | " + " | ".join(map(share, some)) +
               f" | {len({r['program'] for r in some[0]})} |")
    yield ""


def offs(rows):
    yield "| said / true | answers | 10 % | median | 90 % | least | most |"
    yield "|---|---|---|---|---|---|---|"
    for name in ("need", "enough"):
        found = sorted((r[f"{name}_said_bytes"] / r["need_true_bytes"], r["death"],
                        r["setting"] or "default") for r in rows if r[f"{name}_said_bytes"])
        at = " | ".join(f"{found[int(q * (len(found) - 1))][0]:.3f}" for q in (.1, .5, .9))
        ends = " | ".join(f"{q:.3f}: {death}, `{setting}`"
                          for q, death, setting in (found[0], found[-1]))
        yield f"| {name} | {len(found)} | {at} | {ends} |"
    yield ""


# What is counted of the deaths held out, apart from all.
HELD = {
    "all": lambda r: True,
    "limit above the bytes at the peak": lambda r: r["limit_bytes"] >= r["asked_bytes"],
    "below": lambda r: r["limit_bytes"] < r["asked_bytes"],
    "went on after a failed request": lambda r: r["failed_requests"] > 1,
}


def held(rows):
    said = sorted({(r["odds"], r["lived"], r["of"]) for r in rows},
                  key=lambda k: (-k[1] / (k[2] or 1), -k[2]))
    yield "| the answer | of the jobs above | " + " | ".join(HELD) + " | programs |"
    yield "|---|---|" + "---|" * (len(HELD) + 1)
    for odds, old, of in said:
        some = [r for r in rows if (r["odds"], r["lived"], r["of"]) == (odds, old, of)]
        found = [share([r for r in some if holds(r)], lambda r: r["outcome"] == "survived")
                 for holds in HELD.values()]
        yield (f"| {odds} | {old} of {of} | " + " | ".join(found) +
               f" | {len({r['program'] for r in some})} |")
    yield ""


def page(rows, new, out):
    yield ("# Jobs that died: what is promised, and what is true\n\n" +
           "\n\n".join(__doc__.split("\n\n")[1:4]) + "\n\nOf the settings of a death, "
           "that which serves and has the most room is taken. Each death\nonce: whatever "
           "the limits under which the same request fails. The rule was chosen on\nthe "
           "recorded and the new programs. Made by `paper/tables/calibrate.py`.\n")
    for name, some in (("Recorded", rows), ("New programs", new), ("Both", rows + new)):
        yield f"## {name}: {len(some)} answers\n"
        picked = decided(some)
        yield from table({"lived": picked, "each death once": once(picked), "recorded":
                          [r for r in picked if r["kind"] == "recorded"]})
        yield from offs(some)
    yield (f"## Held out: {len(out)} deaths of {len({r['program'] for r in out})} "
           "programs, which then ran\n")
    yield from held(out)


def read(path):
    rows = read_csv(path)[1]
    for row in rows:
        for name in row:
            if name.endswith("_bytes") or name in NUMBERS:
                row[name] = int(row[name] or 0)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--new", metavar="FOLDER")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    paths = complete_runs([args.new] if args.new else [
        os.path.join(SHARED, "recorded", f) for f in ("dev", "batch", "h100", "causes")])
    if not paths:
        print(f"calibrate: no recordings in {SHARED}: the page is made from the data")
    elif not args.table:
        with ThreadPoolExecutor(args.j) as pool:
            rows = sum(pool.map(measure, paths), [])
        write_csv(TABLES[bool(args.new)], replayed(
            FRAGSIM, "paper/tables/calibrate.py", RESTS), COLUMNS, rows)
    text = "\n".join(page(*map(read, TABLES)))
    with open(os.path.join(PAGES, "dead.md"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
