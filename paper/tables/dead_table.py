#!/usr/bin/env python3
"""dead_table.py [-j N] [--new FOLDER | --table]: what `fragsim tune` promises for jobs
that died, against the complete runs.

A pair is a recording of a job that died and a recording of the same job that
did not. Some pairs are recorded in ../shared (NAME__cap_* and NAME). More are
cut from the default recordings: PyTorch's default, or expandable segments, runs
out of memory under a limit of the process, a share of its own peak reserved,
and the recording is cut at that request, as a dead job's is; each death counts
once. --new takes its pairs and cuts from a folder that paper/gpu/truth.py made
(NAME__lim*, NAME__dev*, NAME, with NAME.json), whose programs are not in ../shared.

Each dead job is tuned under the limit at which it died. The setting of the
answer, exported or not, is then judged on the complete run: whether it survives
under that limit, and its need. A prediction sees nothing of the complete run.

Writes data/dead.csv or, with --new, data/dead_new.csv (one row for each death),
and pages/dead.md from both; --table makes the page alone.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import glob
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
NEW_TABLE = os.path.join(DATA, "dead_new.csv")
NEW = "recordings of paper/gpu/truth_programs.py, PyTorch 2.11 on an H200"
SHARES = (0.99, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6)
EXPANDABLE = "expandable_segments:True"
ENDING = ".pickle.xz"
COLUMNS = ["pair", "complete", "kind", "limit_bytes", "exit", "setting", "outcome",
           "predicted_need_bytes", "enough_bytes", "why_not", "true_need_bytes",
           "survives"]
LEVEL = 90
GIB = 2 ** 30


def run(*command):
    done = subprocess.run([FRAGSIM, *command, "--json", "-"], capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)["results"]


def replay(path, setting, *options):
    return run("replay", "-q", path, "-p", policy_of(setting), *options)[1][0]


def policy_of(setting):
    return f"torch:{setting}" if setting else "torch"


# ---- pairs ----

def name_of(path):
    return os.path.basename(path)[:-len(ENDING)]


def about(path):
    with open(path[:-len(ENDING)] + ".json", encoding="utf-8") as file:
        return json.load(file)


def died(told):
    return told.get("outcome") == "died" if "outcome" in told else bool(told["oom"])


def recorded_pairs(paths, pattern):
    """(kind, name, dead, complete, limit) of the recordings that died."""
    for path in paths:
        stem = path[:-len(ENDING)]
        for dead in sorted(glob.glob(stem + pattern + ENDING)):
            told = about(dead)
            if died(told) and told.get("bound", "process") == "process":
                yield "recorded", name_of(dead), dead, path, told["cap"]


def nth_alloc(entries, n):
    for at, entry in enumerate(entries):
        n -= entry["action"] == "alloc"
        if n < 0:
            return at
    raise ValueError("the recording is shorter than its replay")


def cut(snapshot, at, target):
    """Writes the recording up to the request of entry `at`, which fails."""
    entries = snapshot["device_traces"][0]
    failed = dict(entries[at], action="oom", device_free=0)
    del failed["addr"]
    marks = [a for a in snapshot.get("external_annotations", [])
             if a["time_us"] <= failed["time_us"]]
    with open(target, "wb") as file:
        pickle.dump(dict(snapshot, segments=[], external_annotations=marks,
                         device_traces=[entries[:at] + [failed]]), file, protocol=4)


def cuts_of(path, folder):
    """The cuts of one complete recording, each death once."""
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    events = subprocess.run([FRAGSIM, "export", path], check=True, text=True,
                            capture_output=True).stdout.splitlines()[1:]
    found = {}
    for setting in ("", EXPANDABLE):
        peak = replay(path, setting)["peak_reserved_bytes"]
        for limit in (int(share * peak) for share in SHARES):
            first = replay(path, setting, "--process-limit", f"{limit}B",
                           "--stop-at-oom")["first_oom_event"]
            if first is not None:
                found.setdefault(first, limit)
    for first, limit in found.items():
        allocs = sum(row.startswith("alloc,") for row in events[:first])
        dead = os.path.join(folder, f"{name_of(path)}_{first}.pickle")
        cut(snapshot, nth_alloc(snapshot["device_traces"][0], allocs), dead)
        yield "cut", f"{name_of(path)} at event {first}", dead, path, limit


def new_recordings(folder):
    """The complete runs of a folder, with PyTorch's default."""
    return [p for p in sorted(glob.glob(os.path.join(folder, "*" + ENDING)))
            if "__" not in name_of(p) and not died(about(p))]


# ---- one pair ----

def answer(dead, limit):
    """The exit status, the setting, and what is said of it."""
    status, (told,) = run("tune", "-q", "-j", "1", dead,
                          "--process-limit", f"{limit}B")
    word = "nearest" if status else "chosen"
    case, = told["cases"]
    return status, told[word]["settings"], case[word], case["enough_unknown"]


def measure(pair):
    kind, name, dead, complete, limit = pair
    status, setting, said, why = answer(dead, limit)
    bound = ["--process-limit", f"{limit}B"]
    need = run("fit", "-q", "-j", "1", "--process-limit", "inf", complete, "-p",
               policy_of(setting))[1][0]["need_bytes"]
    true = replay(complete, setting, *bound, "--stop-at-oom")
    return {
        "pair": name, "complete": name_of(complete), "kind": kind,
        "limit_bytes": limit, "exit": status, "setting": setting,
        "outcome": said["outcome"], "predicted_need_bytes": said["need_bytes"],
        "enough_bytes": said["enough_bytes"],
        "why_not": why,
        "true_need_bytes": need, "survives": int(true["num_ooms"] == 0),
    }


def measure_all(paths, pattern, threads):
    with tempfile.TemporaryDirectory() as folder, \
            ThreadPoolExecutor(threads) as pool:
        pairs = list(recorded_pairs(paths, pattern))
        for cuts in pool.map(lambda p: list(cuts_of(p, folder)), paths):
            pairs += cuts
        return list(pool.map(measure, pairs))


# ---- the page ----

def holds(row):
    """Whether what is said to be enough is enough."""
    return row["true_need_bytes"] <= row["enough_bytes"]


def told(rows):
    return [r for r in rows if r["enough_bytes"]]


def exports(rows):
    return [r for r in rows if r["exit"] == 0]


def refuted(rows):
    return [r for r in exports(rows) if not r["survives"]]


def of(some, every):
    return f"{len(some)} of {len(every)}"


def figures(rows):
    """(what is said, how often of how many it holds)"""
    said = told(rows)
    fails = [r for r in rows if r["outcome"] == "fails"]
    served = [r for r in rows if r["exit"] and r["outcome"].startswith("serves")]
    yield (f"answers that say {LEVEL} %; the complete run needs no more",
           of([r for r in said if holds(r)], said))
    yield ("settings exported (exit 0); the complete run survives",
           of([r for r in exports(rows) if r["survives"]], exports(rows)))
    yield ("*fails*; the complete run fails",
           of([r for r in fails if not r["survives"]], fails))
    yield ("*serves what was recorded*, not exported; the complete run fails",
           of([r for r in served if not r["survives"]], served))


def groups(rows, new):
    for where, some in (("recorded", rows), ("new programs", new)):
        for kind, word in (("recorded", "deaths"), ("cut", "cuts")):
            yield f"{where}: {word}", [r for r in some if r["kind"] == kind]


def summary(rows, new):
    parts = [(name, some) for name, some in groups(rows, new) if some]
    parts.append(("all", rows + new))
    yield "| what is said; what holds | " + " | ".join(
        f"{name} ({len(some)})" for name, some in parts) + " |"
    yield "|---|" + "---|" * len(parts)
    for lines in zip(*(figures(some) for _, some in parts)):
        yield f"| {lines[0][0]} | " + " | ".join(l[1] for l in lines) + " |"
    yield ""


def programs(rows):
    """For each program whose steps tell, how often what they tell holds."""
    said = told(rows)
    yield f"| program | answers that say {LEVEL} % | hold | said to be enough, of the true need |"
    yield "|---|---|---|---|"
    for name in sorted({r["complete"] for r in said}):
        some = [r for r in said if r["complete"] == name]
        ratio = [r["enough_bytes"] / r["true_need_bytes"] for r in some]
        yield (f"| {name} | {len(some)} | {sum(map(holds, some))} | "
               f"{min(ratio):.2f} to {max(ratio):.2f} |")
    yield ""


def reasons(rows):
    yield "| why a need is not told | deaths |"
    yield "|---|---|"
    words = [r["why_not"] for r in rows if not r["enough_bytes"]]
    for word in sorted(set(words), key=lambda w: (-words.count(w), w)):
        yield f"| {word} | {words.count(word)} |"
    yield ""


def deaths(rows):
    yield "| death | limit, GiB | setting | answer | need predicted, enough, true, GiB | complete run |"
    yield "|---|---|---|---|---|---|"
    for r in rows:
        sizes = ", ".join(f"{r[k] / GIB:.3f}" if r[k] else "-" for k in (
            "predicted_need_bytes", "enough_bytes", "true_need_bytes"))
        yield (f"| {r['pair']} | {r['limit_bytes'] / GIB:.3f} | "
               f"`{r['setting'] or 'default'}` | "
               f"{'exported' if r['exit'] == 0 else r['outcome']} | {sizes} | "
               f"{'survives' if r['survives'] else 'fails'} |")


def page(rows, new):
    yield "# Jobs that died: what is promised, and what is true\n"
    yield ("Made by `paper/tables/dead_table.py` from paper/data/dead.csv and "
           "paper/data/dead_new.csv. A job that\ndied is tuned under the limit of "
           "the process at which it died. The answer names a setting and,\nwhere "
           "the steps tell, a limit that is enough with a probability of "
           f"{LEVEL} %; it is exported only if\nthat is below the limit. The truth "
           "is the complete run. The rule was made on the recordings. The\nnew "
           "programs were recorded on an H200 afterwards: as it was then, 28 of 31 "
           "answers held on them. The\nthree that did not are of one program, whose "
           "steps come in runs of equal peaks; since then a step that\nrepeats the "
           "peak of the one before counts no more. That a need is told only of "
           "marked steps rests\non runs of the new programs without a GPU. The one "
           "setting that fails by the recording and not in\nthe complete run: the job "
           "met 42 OOMs that a library caught, and then asked for more "
           "(`volumes__lim102`).\n")
    yield from summary(rows, new)
    yield from reasons(rows + new)
    yield from programs(rows + new)
    yield from deaths([r for r in rows + new if r["kind"] == "recorded"])


def read(path):
    _, rows = read_csv(path)
    for row in rows:
        for name in COLUMNS:
            if name.endswith("_bytes") or name in ("exit", "survives"):
                row[name] = int(row[name] or 0)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--new", metavar="FOLDER")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    table, paths, pattern, rests_on = (
        (NEW_TABLE, new_recordings(args.new), "__*", NEW) if args.new else
        (TABLE, recordings(), "__cap_*", RECORDINGS))
    if not args.table:
        write_csv(table, replayed(FRAGSIM, "paper/tables/dead_table.py", rests_on),
                  COLUMNS, measure_all(paths, pattern, args.j))
    with open(os.path.join(PAGES, "dead.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page(read(TABLE), read(NEW_TABLE))) + "\n")


if __name__ == "__main__":
    main()
