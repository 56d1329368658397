#!/usr/bin/env python3
"""check_summary.py: compares `fragsim summary` with PyTorch.

The text at the end of a recording must be that of
torch.cuda.memory_summary(), byte for byte, where the recording's JSON has it
(../shared; skipped without it), and the numbers must be those of
torch.cuda.memory_stats() on the bundled recordings and on ../shared. The values
that a final snapshot determines must also be right if the recording began late.
At every tenth of a trace, the numbers must agree with each other and, under the
recorded allocator, with what it had reserved.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, SHARED, need, share

# The ones in which a snapshot does not determine the counter: an empty_cache
# that frees nothing is not recorded.
UNDETERMINED = {"num_sync_all_streams"}
POLICIES = ["torch", "best_fit", "expandable", "remap", "cuda_async", "plan"]

failures = []


def expect(truth, text):
    if not truth:
        failures.append(text)


def run(*args):
    done = subprocess.run([FRAGSIM, "summary", "-q", *args], text=True,
                          capture_output=True, check=False)
    expect(done.returncode == 0, f"{args}: {done.stderr}")
    return done.stdout


def results(*args):
    return json.loads(run(*args, "--json", "-") or '{"results": []}')["results"]


def flat(stats, prefix=""):
    """memory_stats nested at its dots, as torch.cuda.memory_stats() has it."""
    for key, value in stats.items():
        if isinstance(value, dict):
            yield from flat(value, prefix + key + ".")
        else:
            yield prefix + key, value


def check_text(path, recorded):
    text = recorded.get("summary")
    if text is None:
        return 0
    expect(run(path).startswith(text), f"{path}: differs from memory_summary")
    return 1


def check_counters(path, recorded):
    stats = recorded["stats"]
    count = 0
    for row in results(path):
        want = stats.get(str(row["device"]), stats)
        for key, value in flat(row["stats"]):
            if key in want and key not in UNDETERMINED:
                expect(want[key] == value,
                       f"{path}: {key} is {value}, recorded {want[key]}")
                count += 1
    return count


def snapshot_values(segments):
    """What the segments of a final snapshot determine."""
    blocks = [(s, b) for s in segments for b in s["blocks"]]
    split = [b["size"] for s, b in blocks if b["state"] == "inactive"
             and len(s["blocks"]) > 1 and not s.get("is_expandable")]
    live = [b["size"] for _, b in blocks if b["state"] == "active_allocated"]
    active = [b["size"] for _, b in blocks if b["state"] != "inactive"]
    return {"inactive_split": len(split), "inactive_split_bytes": sum(split),
            "allocation": len(live), "allocated_bytes": sum(live),
            "active": len(active), "active_bytes": sum(active),
            "reserved_bytes": sum(s["total_size"] for s in segments)}


def check_end(path):
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    for row in results(path):
        want = snapshot_values([s for s in snapshot["segments"]
                                if s["device"] == row["device"]])
        for key, value in want.items():
            got = row["stats"][key]["all"]["current"]
            expect(got == value, f"{path}: {key} ends as {got}, not {value}")
        largest = row["fragmentation"]["largest_free_bytes"]
        expect(largest == max([b["size"] for s in snapshot["segments"]
                               if s["device"] == row["device"]
                               for b in s["blocks"]
                               if b["state"] == "inactive"], default=0),
               f"{path}: largest free is {largest}")


def rewritten(name, folder, keep):
    """A bundled snapshot with the last part of its history."""
    with lzma.open(os.path.join(BUNDLED, name + ".pickle.xz")) as file:
        snapshot = pickle.load(file)
    snapshot["device_traces"] = [t[len(t) - int(keep * len(t)):]
                                 for t in snapshot["device_traces"]]
    path = os.path.join(folder, f"{name}_{keep}.pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    return path, snapshot


def check_without_history(folder):
    """Without history, the current values are those of the snapshot, and all
    others are unknown."""
    path, snapshot = rewritten("multistream", folder, 0)
    row = results(path)[0]
    for key, value in snapshot_values(snapshot["segments"]).items():
        got = row["stats"][key]["all"]
        expect(got == {"current": value, "peak": None, "allocated": None,
                       "freed": None}, f"{path}: {key} is {got}")
    for key in ("num_ooms", "num_alloc_retries", "num_device_free"):
        expect(row["stats"][key] is None, f"{path}: {key} is known")
    expect(row["fragmentation"]["gap_to_bound"] is None, f"{path}: a gap")
    expect("no event was recorded" in row["cautions"][0], f"{path}: unsaid")
    expect("CUDA OOMs: -  " in run(path), f"{path}: the OOMs are known")


def check_late(folder):
    """A recording that lacks the beginning has lower totals, and says so."""
    path, snapshot = rewritten("multistream", folder, 0.5)
    row = results(path)[0]
    for key, value in snapshot_values(snapshot["segments"]).items():
        got = row["stats"][key]["all"]["current"]
        expect(got == value, f"{path}: {key} ends as {got}, not {value}")
    whole = results(os.path.join(BUNDLED, "multistream.pickle.xz"))[0]
    expect(row["stats"]["allocation"]["all"]["allocated"] <
           whole["stats"]["allocation"]["all"]["allocated"], f"{path}: total")
    expect("the recording began late" in row["cautions"][0], f"{path}: unsaid")
    expect(not whole["cautions"], "multistream: cautions")


def check_adopted(folder):
    """Expandable segments that were held before the first event."""
    for part in (0.5, 0):
        path, _ = rewritten("lstm_varlen__cap_tight_exp", folder, part)
        run(path)
    path, _ = rewritten("lstm_varlen__cap_tight_exp", folder, 0.5)
    expect("began late" in run(path, "-p", "torch@recorded", "-c", "inf"),
           f"{path}: no note")


def check_row(where, row):
    f = row["fragmentation"]
    reserved = row["stats"]["reserved_bytes"]["all"]
    active = row["stats"]["active_bytes"]["all"]
    parts = sum(value for key, value in f.items()
                if key.startswith("reserved_") and key.endswith("_bytes"))
    expect(parts == reserved["current"], f"{where}: the parts sum to {parts}")
    expect(f["free_bytes"] == reserved["current"] - active["current"],
           f"{where}: free is {f['free_bytes']}")
    expect(f["largest_free_bytes"] <= f["free_bytes"],
           f"{where}: the largest free range is larger than all")
    counts = dict(row["stats"])
    counts.update(counts.pop("reserved_bytes_by_private_pools"))
    for key, value in counts.items():
        if not isinstance(value, dict):
            continue
        n = value.get("all", value)
        if None in n.values():
            continue
        expect(n["current"] <= n["peak"] <= n["allocated"] and
               n["current"] == n["allocated"] - n["freed"],
               f"{where}: {key} is {n}")


def check_events(path):
    """At ten events, under each policy; one run of the policy `replay` must
    have the same peaks at the end."""
    events = results(path)[0]["events"]
    for part in range(0, 11):
        at = str(min(events * part // 10, events - 1))
        rows = results(path, "--at", at, "-p", "torch@recorded",
                       *[a for p in POLICIES for a in ("-p", p)])
        expect(len(rows) == 1 + len(POLICIES), f"{path}: rows at {at}")
        for row in rows:
            check_row(f"{path} at {at}, {row['policy']}", row)
            expect(not any("differ" in c for c in row["cautions"]),
                   f"{path} at {at}: {row['cautions']}")
    done = subprocess.run(
        [FRAGSIM, "replay", "-q", path, "--as-recorded", "--json", "-",
         *[a for p in POLICIES for a in ("-p", p)]],
        text=True, capture_output=True, check=True)
    for row, want in zip(rows[1:], json.loads(done.stdout)["results"]):
        for key in ("requested", "allocated", "active", "reserved"):
            name = f"peak_{key}_bytes"
            got = row["stats"][f"{key}_bytes"]["all"]["peak"]
            if name in want and (key != "requested" or row["policy"] != "torch"):
                expect(got == want[name],
                       f"{path}, {row['policy']}: {name} is {got}, replay "
                       f"says {want[name]}")


def main():
    need(FRAGSIM)
    texts = counters = 0
    paths = glob.glob(os.path.join(BUNDLED, "*.json"))
    for folder in ("h100", "causes", "multi"):
        paths += glob.glob(os.path.join(SHARED, "recorded", folder, "*.json"))
    for path in share(sorted(paths), 6):
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
        trace = path[:-5] + ".pickle.xz"
        if "stats" not in recorded or not os.path.exists(trace):
            continue
        texts += check_text(trace, recorded)
        counters += check_counters(trace, recorded)
    for name in ("late_start", "multistream", "cudagraph"):
        check_end(os.path.join(BUNDLED, name + ".pickle.xz"))
    for name in ("multistream", "lstm_varlen__cap_below"):
        check_events(os.path.join(BUNDLED, name + ".pickle.xz"))
    expect(counters > 0, "no counter was compared")
    with tempfile.TemporaryDirectory() as folder:
        check_without_history(folder)
        check_late(folder)
        check_adopted(folder)
    for failure in failures[:20]:
        print(failure)
    print(f"{texts} texts, {counters} counters, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
