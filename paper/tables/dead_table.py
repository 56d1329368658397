#!/usr/bin/env python3
"""dead_table.py [-j N] [--table]: what `fragsim tune` promises for jobs that
died, before and after their traces are completed, against the complete runs.

A pair is a recording of a job that died and a recording of the same job that
did not. Some pairs are recorded in ../shared (NAME__cap_* and NAME). More are
cut from the default recordings: PyTorch's default runs out of memory at a share
of its own peak reserved, and the recording is cut at that request, as a dead
job's is. Each dead job is tuned at the capacity at which it died, twice: as it
was recorded, and completed. The setting is then replayed on the complete run. The predicted peaks are those of a completed
trace with as many steps as the complete run has.

Writes data/dead.csv (one row for each pair) and pages/dead.md.
--table makes dead.md from the data alone.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import json
import lzma
import os
import pickle
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, recordings

TABLE = os.path.join(DATA, "dead.csv")
SHARES = (0.98, 0.95, 0.9, 0.8)
TUNE = ["tune", "-q", "-j", "1", "--no-hold-out", "--evaluations", "60",
        "--json", "-"]
COLUMNS = ["pair", "complete", "capacity_bytes", "steps", "finished",
           "predicted_requested_bytes", "requested_bytes",
           "predicted_reserved_bytes", "reserved_bytes",
           "before_promise", "before_ooms", "now_promise", "now_ooms",
           "now_caveat"]
# The sentences of the notes that say why a promise may not hold.
CAVEATS = (("before a step was complete", "no complete step"),
           ("only one step was complete", "one step"),
           ("a later step may ask for more", "steps differ"),
           ("live memory grows", "grows"),
           ("is unlike the complete ones", "unlike"))
IMPOSSIBLE, PREDICTED = "impossible", "predicted impossible"
NOTHING = "nothing survives"
GIB = 2 ** 30


def run(*command):
    done = subprocess.run([FRAGSIM, *command], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr}")
    return json.loads(done.stdout)["results"]


def replay(path, policy, capacity, *options):
    return run("replay", "-q", path, "-p", policy, "-c", capacity, "--json",
               "-", *options)[0]


def policy_of(setting):
    return f"torch:{setting}" if setting else "torch"


# ---- pairs ----

def recorded_pairs():
    """(name, dead, complete, capacity) of the recordings that died."""
    pairs = []
    for path in recordings():
        name = os.path.basename(path)[:-len(".pickle.xz")]
        folder = os.path.dirname(path)
        for file in sorted(os.listdir(folder)):
            if not file.startswith(name + "__cap_") or not file.endswith("json"):
                continue
            with open(os.path.join(folder, file), encoding="utf-8") as text:
                about = json.load(text)
            if about["oom"]:
                dead = os.path.join(folder, file[:-len("json")] + "pickle.xz")
                pairs.append((file[:-len(".json")], dead, path, about["cap"]))
    return pairs


def nth_alloc(entries, n):
    for at, entry in enumerate(entries):
        n -= entry["action"] == "alloc"
        if n < 0:
            return at
    raise ValueError("the recording is shorter than its replay")


def cut(path, capacity, target):
    """Writes the recording up to the first request that PyTorch's default
    cannot meet at this capacity; False if it meets all."""
    first = replay(path, "torch", f"{capacity}B",
                   "--stop-at-oom")["first_oom_event"]
    if first is None:
        return False
    events = subprocess.run([FRAGSIM, "export", path], check=True, text=True,
                            capture_output=True).stdout.splitlines()[1:]
    allocs = sum(row.startswith("alloc,") for row in events[:first])
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    at = nth_alloc(entries, allocs)
    failed = dict(entries[at], action="oom", device_free=0)
    del failed["addr"]
    snapshot["device_traces"][0] = entries[:at] + [failed]
    snapshot["segments"] = []
    snapshot["external_annotations"] = [
        a for a in snapshot.get("external_annotations", [])
        if a["time_us"] <= failed["time_us"]]
    with open(target, "wb") as file:
        pickle.dump(snapshot, file, protocol=2)
    return True


def cut_pairs(folder):
    for path in recordings():
        name = os.path.basename(path)[:-len(".pickle.xz")]
        peak = replay(path, "torch", "inf")["peak_reserved_bytes"]
        for share in SHARES:
            capacity = int(share * peak)
            dead = os.path.join(folder, f"{name}_{100 * share:.0f}.pickle")
            if cut(path, capacity, dead):
                yield f"{name} at {100 * share:.0f} %", dead, path, capacity


# ---- one pair ----

def step_count(path):
    """The number of optimizer steps that began; None without marks."""
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rb") as file:
        marks = pickle.load(file).get("external_annotations", [])
    return sum(m["stage"] == "START" and m["name"].startswith("Optimizer.step")
               for m in marks) or None


def as_long_as(dead, complete):
    """The options that make the completed trace as long as the complete run,
    in steps; none if its steps are not marked."""
    ended, all_steps = step_count(dead), step_count(complete)
    if not ended or not all_steps:
        return []
    return ["--further-steps", str(max(1, all_steps - ended - 1))]


def promise(dead, capacity, *options):
    result = run(*TUNE, dead, "-c", f"{capacity}B", *options)[0]
    if result["impossible"]:
        return PREDICTED if result["impossible"][0]["predicted"] else IMPOSSIBLE
    if not result["chosen"]:
        return NOTHING
    return result["chosen"]["settings"]


def ooms(complete, setting, capacity):
    if setting in (IMPOSSIBLE, PREDICTED, NOTHING):
        return ""
    return replay(complete, policy_of(setting), f"{capacity}B")["num_ooms"]


def measure(pair):
    name, dead, complete, capacity = pair
    before = promise(dead, capacity, "--as-recorded")
    now = promise(dead, capacity)
    told = replay(dead, "torch", "inf", *as_long_as(dead, complete))
    true = replay(complete, "torch", "inf")
    notes = " ".join(told["notes"])
    steps = [n for n in told["notes"] if "complete step" in n]
    return {
        "pair": name,
        "complete": os.path.basename(complete)[:-len(".pickle.xz")],
        "capacity_bytes": capacity,
        "steps": steps[0].split(" complete step")[0].split()[-1]
        if steps and "after" in steps[0] else 0,
        "finished": int("was finished" in notes),
        "predicted_requested_bytes": told["peak_requested_bytes"],
        "requested_bytes": true["peak_requested_bytes"],
        "predicted_reserved_bytes": told["peak_reserved_bytes"],
        "reserved_bytes": true["peak_reserved_bytes"],
        "before_promise": before, "before_ooms": ooms(complete, before, capacity),
        "now_promise": now, "now_ooms": ooms(complete, now, capacity),
        "now_caveat": "; ".join(word for text, word in CAVEATS if text in notes),
    }


# ---- the page ----

def change(row, measure_name):
    return row[f"predicted_{measure_name}_bytes"] / row[
        f"{measure_name}_bytes"] - 1


def within(rows, measure_name, limit=0.02):
    return sum(abs(change(r, measure_name)) <= limit for r in rows)


def says(setting, count):
    if setting == IMPOSSIBLE:
        return "no allocator can help"
    if setting == PREDICTED:
        return "none can help if the job goes on like this"
    if setting == NOTHING:
        return NOTHING
    return f"`{setting or 'default'}`: " + ("survives" if count == 0
                                            else f"**{count} OOMs**")


def is_true(row, side):
    """Whether what was promised holds on the complete run."""
    capacity = row["capacity_bytes"]
    if row[f"{side}_promise"] in (IMPOSSIBLE, PREDICTED):
        return row["requested_bytes"] > capacity
    if row[f"{side}_promise"] == NOTHING:
        return True
    return row[f"{side}_ooms"] == 0


def summary(rows):
    dead = [r for r in rows if r["steps"]]
    seen = [r for r in dead if change(r, "requested") > -0.02]
    refuted = [r for r in rows if not is_true(r, "now")]
    silent = [r for r in refuted if not r["now_caveat"]]
    wrong = sum(not is_true(r, "before") for r in rows)
    yield (f"{len(rows)} pairs; in {len(dead)} of them at least one step was "
           f"complete when the job died.\n")
    yield "| figure | as recorded | completed |"
    yield "|---|---|---|"
    yield (f"| answers that the complete run refutes | {wrong} of {len(rows)} | "
           f"{len(refuted)} of {len(rows)} |")
    yield (f"| of them without a reason in the output | {wrong} | "
           f"{len(silent)} |")
    for word, some in (("with a complete step", dead),
                       ("of them, if no later step asks for more than the "
                        "completed trace", seen)):
        yield (f"| peak requested within 2 % of the complete run's, {word} | | "
               f"{within(some, 'requested')} of {len(some)} |")
        yield (f"| peak reserved (PyTorch's default) within 2 %, {word} | | "
               f"{within(some, 'reserved')} of {len(some)} |")
    yield ""


def table(rows):
    yield ("| pair | capacity, GiB | steps | peak requested: predicted, true, "
           "error | promise as recorded | promise now | caveat |")
    yield "|---|---|---|---|---|---|---|"
    for r in rows:
        yield (f"| {r['pair']} | {r['capacity_bytes'] / GIB:.3f} | {r['steps']} | "
               f"{r['predicted_requested_bytes'] / GIB:.3f}, "
               f"{r['requested_bytes'] / GIB:.3f}, "
               f"{100 * change(r, 'requested'):+.1f} % | "
               f"{says(r['before_promise'], r['before_ooms'])} | "
               f"{says(r['now_promise'], r['now_ooms'])} | "
               f"{r['now_caveat']} |")


def page(rows):
    yield "# Jobs that died: what is promised, and what is true\n"
    yield ("Made by `paper/tables/dead_table.py` from paper/data/dead.csv. A promise is the setting "
           "that `tune`\nchooses for the recording of a job that died, at the "
           "capacity at which it died;\nthe truth is the replay of that setting "
           "on the complete run.\n")
    yield from summary(rows)
    yield from table(rows)


def read():
    _, rows = read_csv(TABLE)
    for row in rows:
        for name in COLUMNS:
            if name.endswith("_bytes") or name == "steps":
                row[name] = int(row[name])
        for side in ("before", "now"):
            count = row[f"{side}_ooms"]
            row[f"{side}_ooms"] = int(count) if count else 0
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        with tempfile.TemporaryDirectory() as folder, \
                ThreadPoolExecutor(args.j) as pool:
            rows = list(pool.map(measure, recorded_pairs() +
                                 list(cut_pairs(folder))))
        write_csv(TABLE, replayed(FRAGSIM, "paper/tables/dead_table.py", RECORDINGS),
                  COLUMNS, rows)
    with open(os.path.join(PAGES, "dead.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page(read())) + "\n")


if __name__ == "__main__":
    main()
