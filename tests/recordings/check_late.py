#!/usr/bin/env python3
"""check_late.py [bundled|recorded] [CUTS]: cuts recordings off as an
overflowing history does, and runs `fragsim validate` on each cut.

A cut keeps the final segments and drops the first K entries of the history. K
is spread over the recording. Each cut that is not exact is printed with its
first divergence. Counted apart: ordinary segments, ordinary segments with
garbage collection (it releases by age, and the ages of the blocks that were
free before the recording are not recorded), and expandable segments.

Cuts are also replayed under max_split_size_mb and finite capacities: the
recorded segments were split without the setting, and every run must have a
result. What `fit` states by bound is compared with replays at about 100 ends of its spans.

Recordings with expandable segments are also moved: their reservations are
placed as another device or process has them, and all must be exact.

bundled: traces/bundled, 9 cuts each. recorded: recorded/dev, 4 cuts each, of which the
last is replayed. Exit 1 if fewer are exact than LEAST states, 77 if the recordings or the
tool are absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR;
FRAG_ONLY: a part of the names of the recordings to read.
"""
import collections
import concurrent.futures
import csv
import glob
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SANITIZED, SHARED


# kind: files, cuts of each file, how many of them are replayed, too
KINDS = {
    "bundled": (os.path.join(ROOT, "traces/bundled/*.pickle.xz"), 9, 9),
    "recorded": (os.path.join(SHARED, "recorded/dev/*.pickle.xz"), 4, 1),
}
# (kind, segments): how many cuts must be exact, at the default number of cuts
LEAST = {
    ("bundled", "expandable"): 9,
    ("bundled", "ordinary"): 63,
    ("bundled", "moved"): 3,
    ("recorded", "expandable"): 116,
    ("recorded", "ordinary"): 222,
    ("recorded", "ordinary, by age"): 24,
    ("recorded", "moved"): 87,
}
GIB = 1 << 30
BOUNDS = {"capacity": "-c", "process limit": "--process-limit"}  # of fit
# The bases to which the k-th reservation is moved: another device of a process,
# another process, and a smaller device, which has smaller reservations.
PLACES = {
    "device": lambda k: 0x602000000 + k * 0x5000000000,
    "process": lambda k: 0x3288000000 + k * 0x2C00000000,
    "small": lambda k: 0x5f0e000000 + k * 24 * GIB,
}


def kind_of(snapshot):
    if any(e["action"] == "segment_map"
           for trace in snapshot["device_traces"] for e in trace):
        return "expandable"
    settings = snapshot.get("allocator_settings", {})
    return ("ordinary, by age"
            if settings.get("garbage_collection_threshold") else "ordinary")


def read(path):
    with lzma.open(path) as stream:
        snapshot = pickle.load(stream)
    for trace in snapshot["device_traces"]:
        for entry in trace:
            entry.pop("frames", None)
    return snapshot


def limit_of(path):
    stats = path.replace(".pickle.xz", ".json")
    if not os.path.exists(stats):
        return []
    with open(stats, encoding="utf-8") as stream:
        limit = json.load(stream).get("cap")
    return ["--recorded-limit", str(limit)] if limit else []


def validate(path, options):
    """What the first row that is not exact states; None if all are exact."""
    done = subprocess.run([FRAGSIM, "validate", path, "-q", "--json", "-",
                           *options], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}: {done.stderr.strip()}"
    for row in json.loads(done.stdout)["results"]:
        if not row["exact"]:
            return json.dumps(row["first_divergence"])
    return None if done.returncode == 0 else "exit 1 with exact rows"


def replay(path, options):
    """What is wrong with replays under max_split_size_mb; None: nothing."""
    split = "torch:max_split_size_mb:64"
    replayed = subprocess.run(
        [FRAGSIM, "replay", path, "-q", "--json", "-", "-p", split, "-p",
         "torch", "-c", "0.8x,1x,1.1x", *options], capture_output=True,
        text=True, check=False)
    if replayed.returncode:
        return replayed.stderr.strip()
    rows = json.loads(replayed.stdout)["results"]
    if not rows or len(rows) % 6 or any(r["num_ooms"] is None for r in rows):
        return f"{split}: {len(rows)} rows, or no number in one"
    return misfit(path, split, options)


MOST_BOUNDS = 100  # and one: replayed of one cut, with the least and the largest


def misfit(path, policy, options):
    """What is wrong with the outcomes by bound that `fit` states, compared with
    replays at the ends of their bounds; None: nothing."""
    fitted = subprocess.run(
        [FRAGSIM, "fit", path, "-q", "-p", policy, "--device", "0",
         "--frontier", "-", "--json", path + ".json", "-f", *options],
        capture_output=True, text=True, check=False)
    if fitted.returncode not in (0, 1):
        return fitted.stderr.strip()
    with open(path + ".json", encoding="utf-8") as stream:
        bound = json.load(stream)["results"][0]["bound"]
    spans = list(csv.DictReader(io.StringIO(fitted.stdout)))
    ends = sorted({int(s[key]) - less for s in spans if s["to_bytes"]
                   for key, less in (("from_bytes", 0), ("to_bytes", 1))})
    if not ends:
        return f"{policy}: fit states no span with an end"
    ends = sorted({ends[i * (len(ends) - 1) // MOST_BOUNDS]
                   for i in range(MOST_BOUNDS + 1)})
    replayed = subprocess.run(
        [FRAGSIM, "replay", path, "-q", "--stop-at-oom", "--csv", "-", "-p",
         policy, "--device", "0", BOUNDS[bound], ",".join(f"{e}B" for e in ends),
         *options], capture_output=True, text=True, check=False)
    rows = {int(r["capacity_bytes"] or r["process_limit_bytes"]): r
            for r in csv.DictReader(io.StringIO(replayed.stdout))}
    for at in ends:
        span = next(s for s in spans if int(s["from_bytes"]) <= at and
                    (not s["to_bytes"] or at < int(s["to_bytes"])))
        for key in ("start", "first_oom_event", "peak_reserved_bytes"):
            if rows[at][key] != span[key]:
                return (f"{policy} at {at} bytes: {key} is {rows[at][key]}, by "
                        f"fit {span[key]}")
    return None


def judge(snapshot, options, folder, name, kind=None):
    cut = os.path.join(folder, name + ".pickle")
    with open(cut, "wb") as stream:
        pickle.dump(snapshot, stream)
    divergence = validate(cut, options)
    fault = replay(cut, options) if kind == "ordinary" else None
    os.unlink(cut)
    if fault:
        raise SystemExit(f"check_late: {name}: {fault}")
    return divergence


def cut_all(path, cuts, replays, folder):
    """(kind, what was done, divergence) of each cut of a recording."""
    snapshot = read(path)
    kind, options = kind_of(snapshot), limit_of(path)
    traces = snapshot["device_traces"]
    name = os.path.basename(path).removesuffix(".pickle.xz")
    rows = []
    for part in range(1, cuts + 1):
        dropped = [len(trace) * part // (cuts + 1) for trace in traces]
        snapshot["device_traces"] = [
            trace[k:] for trace, k in zip(traces, dropped)]
        rows.append((kind, f"{name} without {dropped}",
                     judge(snapshot, options, folder, name,
                           kind if part > cuts - replays else None)))
    snapshot["device_traces"] = traces
    if kind == "expandable":
        rows += move_all(snapshot, path, name, folder)
    return rows


def mover(snapshot, place):
    """Maps an address of a reservation of an H200 to its new place."""
    spans = sorted(e["addr"] for trace in snapshot["device_traces"]
                   for e in trace if e["action"] == "segment_map")
    bases = []
    for addr in spans:
        if not bases or addr - bases[-1] >= 150 * GIB:
            bases.append(addr)

    def move(addr):
        for k in reversed(range(len(bases))):
            if bases[k] <= addr < bases[k] + 160 * GIB:
                return addr - bases[k] + place(k)
        return addr
    return move


def move_all(snapshot, path, name, folder):
    rows = []
    for words, place in PLACES.items():
        move = mover(snapshot, place)
        moved = dict(
            snapshot,
            segments=[dict(s, address=move(s["address"]), blocks=[
                {k: v for k, v in b.items() if k != "address"}
                for b in s["blocks"]]) for s in snapshot["segments"]],
            device_traces=[[
                dict(e, addr=move(e["addr"])) if "addr" in e else e
                for e in trace] for trace in snapshot["device_traces"]])
        rows.append(("moved", f"{name} moved to another {words}",
                     judge(moved, limit_of(path), folder, name)))
    return rows


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "bundled"
    pattern, cuts, replays = KINDS[kind]
    if len(sys.argv) > 2:
        cuts = int(sys.argv[2])
    cuts = max(2, cuts // 4) if SANITIZED else cuts
    paths = sorted(p for p in glob.glob(pattern)
                   if not p.endswith((".cpp.pickle.xz", "late_start.pickle.xz"))
                   and os.environ.get("FRAG_ONLY", "") in p)
    if not paths or not os.access(FRAGSIM, os.X_OK):
        print("check_late: no recordings or no tool; skipped")
        return 77
    exact, total, crashed = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        for rows in pool.map(lambda p: cut_all(p, cuts, replays, folder), paths):
            for segments, what, divergence in rows:
                total[segments] += 1
                exact[segments] += divergence is None
                crashed += "exit" in (divergence or "") and \
                    "exit 1" not in divergence
                if divergence is not None:
                    print(f"{what}: {divergence}", flush=True)
    missed = crashed
    for segments in sorted(total):
        print(f"{kind}, {segments}: {exact[segments]} of {total[segments]} "
              "exact")
        missed += (len(sys.argv) < 3 and not SANITIZED and
                   exact[segments] < LEAST.get((kind, segments), 0))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
