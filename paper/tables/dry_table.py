#!/usr/bin/env python3
"""dry_table.py run [--only TEXT] [-j N] | without FOLDER | people FOLDER | page: holds `fragsim dry` against recordings of
an H200.

run    runs the programs of ../shared/oracle (record.py, record_multi.py, batch.py) without
       a GPU, with the Python FRAG_DRY_PYTHON, which has PyTorch's CUDA build, and writes
       data/dry_programs.csv: a row for each run, with the same figures of the recording;
       --only replaces the rows of the programs whose names have that text. Each row names
       the cause of its first difference (dry_causes.py)
without  holds programs without a part of PyTorch, or with values of a GPU, against the
       same on a GPU, and writes data/dry_without.csv. FOLDER/PART/NAME has the snapshot of
       the program NAME that `paper/gpu/dry_values.py without PART` recorded; PART is
       values for those of `dry_values.py record FOLDER/values/NAME/values`
people   the same as run for the programs of paper/gpu/dry_programs.py, whose entries on a GPU
       are in FOLDER/NAME.events.xz as pairs of action and size: data/dry_people.csv
page   writes pages/dry.md from it and from data/dry_predicted.csv (made before the programs
       ran on a GPU), dry_recorded.csv and dry_confirmed.csv

An entry is equal if its action and its size are those of the recording's entry with the
same number. Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import collections
import glob
import json
import lzma
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import dry_causes
from data_header import read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED

PYTHON = os.environ.get("FRAG_DRY_PYTHON", "")
ORACLE = os.path.join(SHARED, "oracle")
SECONDS = 900
COLUMNS = ["program", "conf", "outcome", "recorded_outcome", "entries",
           "recorded_entries", "equal_entries", "first_difference", "dry_entry",
           "recorded_entry", "cause", "differences", "exact", "busy_peak_reserved_bytes",
           "peak_allocated_bytes", "recorded_peak_allocated_bytes",
           "peak_reserved_bytes", "recorded_peak_reserved_bytes", "need_bytes",
           "recorded_need_bytes", "seconds", "memory_bytes"]
RESTS_WITHOUT = "PyTorch 2.11.0+cu130 without a GPU, against the same on an H200, driver " \
    "580.159.04, 2026-11-23"
RESTS_ON = "PyTorch 2.11.0+cu130 without a GPU, against recordings of an H200"


# ---- what is run ----

# Recordings that end after fewer rounds than the program runs by itself; the entries up
# to the end of that round are equal, and the next round is not in the recording.
STEPS = {"generate": 3, "rlhf": 3}

def singles():
    """(name of the recording, arguments) of the programs of record.py"""
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "dev", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        with open(path, encoding="ascii") as file:
            told = json.load(file)
        if told.get("cap") or told.get("workload", name) not in (name, name[:-len("__exp")]):
            continue
        yield "dev/" + name, ["record.py", told["workload"], "OUT", "--tag", name] + \
            (["--conf", told["conf"]] if told["conf"] else []) + \
            (["--steps", str(STEPS[name])] if name in STEPS else [])


def several():
    """The programs on two GPUs; the launcher of PyTorch starts a process for each."""
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "multi", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        mode = name.split("_")[1]
        yield "multi/" + name, ([] if mode == "dp" else [
            "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]) + \
            ["record_multi.py", mode, "OUT"]


def batches():
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "batch", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        with open(path, encoding="ascii") as file:
            told = json.load(file)
        yield "batch/" + name, ["batch.py", told["workload"], str(told["batch"]), "OUT",
                                "--cap", str(told["cap"] / 2**30)]


def gpu_of(name):
    """The GPU of the recording."""
    if not name:
        return "h200"
    with open(os.path.join(SHARED, "recorded", name + ".json"), encoding="ascii") as file:
        return "h100" if "H100" in json.load(file).get("device", "") else "h200"


def command(name, arguments, folder, *options):
    put = [folder if a == "OUT" else os.path.join(ORACLE, a)
           if a.endswith(".py") else a for a in arguments]
    gpus = ["--gpus", "2"] if "record_multi.py" in arguments else []
    return [FRAGSIM, "dry", "--gpu", gpu_of(name), *gpus, *options, "-q",
            "-o", os.path.join(folder, "own.pickle"), "--json",
            os.path.join(folder, "answer.json"), "--", PYTHON, *put]


# ---- what is compared ----

def traces(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as stream:
        return pickle.load(stream)["device_traces"]


def pairs(devices):
    return [(e["action"], e["size"]) for trace in devices for e in trace]


def exact(*paths):
    """Whether the allocator's model finds every entry of both from the requests, the ends
    of blocks and the addresses."""
    return all(subprocess.run([FRAGSIM, "validate", "-q", path], capture_output=True,
                              check=False).returncode == 0 for path in paths)


def facts(name, folder):
    """What decides between causes beside the entries."""
    told = load(os.path.join(folder, "answer.json"))
    return {"threads": name.startswith(("multi/", "ddp_")), "reads": any(
        note["kind"] == "read" for row in told["results"] for note in row["notes"])}


def busy_peak(name, arguments):
    """The peak reserved if work of the device ends as late as it can."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command(name, arguments, folder, "--busy"), capture_output=True,
                       check=False, timeout=SECONDS)
        return figures(os.path.join(folder, os.path.basename(name) + ".pickle"), load(
            os.path.join(folder, os.path.basename(name) + ".json")))["peak_reserved_bytes"]


def need(path):
    done = subprocess.run([FRAGSIM, "fit", "-q", "--process-limit", "inf", "--json", "-", path],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return ""
    return max(row["need_bytes"] for row in json.loads(done.stdout)["results"])


def figures(path, told):
    stats = told["stats"]
    stats = stats if "allocated_bytes.all.peak" in stats else max(
        stats.values(), key=lambda one: one["reserved_bytes.all.peak"])
    return {"outcome": "died" if told.get("oom") else "survived",
            "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
            "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
            "need_bytes": need(path)}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def compare(name, folder):
    """The figures of the run that left its files in folder, beside the recording's."""
    own, other = os.path.join(folder, os.path.basename(name)), \
        os.path.join(SHARED, "recorded", name)
    devices = traces(own + ".pickle"), traces(other + ".pickle.xz")
    mine, truth = map(pairs, devices)
    same = [a == b for a, b in zip(mine, truth)]
    row = figures(own + ".pickle", load(own + ".json"))
    row |= {"recorded_" + key: value for key, value in
            figures(other + ".pickle.xz", load(other + ".json")).items()}
    return row | {"entries": len(mine), "recorded_entries": len(truth),
                  "equal_entries": sum(same),
                  "exact": "yes" if exact(own + ".pickle", other + ".pickle.xz") else "no"
                  } | dry_causes.compare(*devices, facts(name, folder))


def one(job):
    name, arguments = job
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        memory = os.path.join(folder, "memory")
        done = subprocess.run(["/usr/bin/time", "-f", "%M", "-o", memory,
                               *command(name, arguments, folder)], capture_output=True,
                              text=True, check=False, timeout=SECONDS)
        row = {"program": name, "conf": "expandable_segments:True"
               if name.endswith("__exp") else "default",
               "seconds": round(time.monotonic() - began, 1)}
        try:
            row |= compare(name, folder)
            if row.get("cause") == "streams":
                row["busy_peak_reserved_bytes"] = busy_peak(name, arguments)
            with open(memory, encoding="ascii") as file:
                row["memory_bytes"] = int(file.read().split()[-1]) * 1024
        except (OSError, ValueError):
            row["outcome"] = "failed: " + (done.stderr.strip().splitlines() or [""])[-1]
    print(name, row["outcome"], row.get("equal_entries"), row.get("recorded_entries"),
          row.get("peak_reserved_bytes"), row.get("recorded_peak_reserved_bytes"),
          row["seconds"], flush=True)
    return row


def run(args):
    jobs = [job for jobs in (singles(), several(), batches()) for job in jobs
            if args.only in job[0]]
    with ThreadPoolExecutor(args.j) as pool:
        rows = list(pool.map(one, jobs))
    path = os.path.join(DATA, "dry_programs.csv")
    ran = {row["program"] for row in rows}
    others = [r for r in read_csv(path)[1] if r["program"] not in ran] \
        if os.path.exists(path) else []
    write_csv(path, replayed(FRAGSIM, "paper/tables/dry_table.py run", RESTS_ON),
              COLUMNS, sorted(others + rows, key=lambda row: row["program"]))


# ---- causes that are removed on both sides ----

VALUES = os.path.join(os.path.dirname(PAGES), "gpu", "dry_values.py")
WITHOUT = ["program", "without", "requests", "gpu_requests", "different", "left",
           "peak_reserved_bytes", "gpu_peak_reserved_bytes"]


def compare_without(job):
    """A row of WITHOUT for the program below `folder`, of which a GPU's snapshot and
    figures lie there."""
    folder, part, name, arguments = job
    gpu = os.path.join(folder, part, name)
    what = ["force", os.path.join(gpu, "values")] if part == "values" else \
        ["without", part]
    base = os.path.basename(name)
    with tempfile.TemporaryDirectory() as own:
        line = command(name, arguments, own)
        at = line.index(PYTHON) + 1
        subprocess.run(line[:at] + [VALUES, *what] + line[at:], capture_output=True,
                       check=False, timeout=SECONDS)
        sides = traces(os.path.join(own, base + ".pickle")), \
            traces(os.path.join(gpu, base + ".pickle"))
        mine, true = (figures(path + ".pickle", load(path + ".json"))
                      for path in (os.path.join(own, base), os.path.join(gpu, base)))
    texts = [[t for trace in side for t in dry_causes.History(trace).texts]
             for side in sides]
    left = dry_causes.compare(*sides, {"threads": False, "reads": False})
    print(name, part, left.get("differences"), flush=True)
    return {"program": name, "without": part, "requests": len(texts[0]),
            "gpu_requests": len(texts[1]),
            "different": len(dry_causes.differences(*texts)),
            "left": left.get("differences", ""),
            "peak_reserved_bytes": mine["peak_reserved_bytes"],
            "gpu_peak_reserved_bytes": true["peak_reserved_bytes"]}


def without(args):
    known = dict(job for jobs in (singles(), several(), batches()) for job in jobs)
    jobs = [(args.folder, *os.path.relpath(path, args.folder).split(os.sep, 1))
            for path in sorted(glob.glob(os.path.join(args.folder, "*", "*", "*")))]
    with ThreadPoolExecutor(args.j) as pool:
        rows = list(pool.map(compare_without, [(*job, known[job[2]]) for job in jobs]))
    write_csv(os.path.join(DATA, "dry_without.csv"),
              replayed(FRAGSIM, "paper/tables/dry_table.py without", RESTS_WITHOUT),
              WITHOUT, rows)


# ---- programs as people write them ----

PEOPLE = ["program", "entries", "recorded_entries", "equal_entries", "first_difference",
          "dry_entry", "recorded_entry", "cause", "differences", "peak_reserved_bytes"]


def person(path):
    name = os.path.basename(path)[:-len(".events.xz")]
    with lzma.open(path, "rt") as file:
        truth = [tuple(pair) for pair in json.load(file)]
    with tempfile.TemporaryDirectory() as folder:
        line = command("", [], folder)
        env = {**os.environ, "DRY_RECORD": os.path.join(folder, name)}
        subprocess.run([*line, "-W", "ignore", os.path.join(os.path.dirname(VALUES),
                        "dry_programs.py"), name], capture_output=True, env=env,
                       check=False, timeout=SECONDS)
        mine = next(t for t in traces(os.path.join(folder, name + ".pickle")) if t)
        told = load(os.path.join(folder, name + ".json"))
        known = facts(name, folder) | {"places": False}
    row = dry_causes.compare([mine], [dry_causes.placed(truth)], known)
    print(name, row, flush=True)
    return row | {"program": name, "entries": len(mine), "recorded_entries": len(truth),
                  "equal_entries": sum(map(tuple.__eq__, pairs([mine]), truth)),
                  "recorded_entry": row.get("recorded_entry", "").partition(" #")[0],
                  "peak_reserved_bytes": told["peak_reserved_bytes"]}


def people(args):
    paths = sorted(glob.glob(os.path.join(args.folder, "*.events.xz")))
    with ThreadPoolExecutor(args.j) as pool:
        rows = list(pool.map(person, paths))
    write_csv(os.path.join(DATA, "dry_people.csv"), replayed(
        FRAGSIM, "paper/tables/dry_table.py people", RESTS_WITHOUT), PEOPLE, rows)


# ---- the page ----

HEAD = """# Runs without a GPU, against the GPU

Made by `paper/tables/dry_table.py page`. A program runs on a machine without a GPU, with
PyTorch's own CUDA build on the libraries of `fragsim dry`; the same program was recorded on
an H200 (`batch/`: an H100). *Equal* counts the entries of the allocator's history whose
action and size are the recording's, at the same place. Peaks are in MiB.
"""
PROGRAMS = """
## The programs of the recordings

| program | settings | entries equal | of | peak allocated | recorded | peak reserved | recorded | error | need, error | seconds | memory |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
DIFFERENCES = """
## Why entries differ

The first entry that differs, without a GPU and recorded; of a request, where its block is:
#2+512 is 512 bytes into the third segment. The cause is decided by rule from both
histories (`paper/tables/dry_causes.py`). *All* counts the places with a cause of each kind;
if the first kind is excused, the others are left. From the requests, the ends of blocks on
other streams, and the addresses, the allocator's model finds every entry of both histories
(`fragsim validate`) where *exact* says so, so nothing else made a difference.

| program | entry | dry | recorded | cause | all | exact | shown by |
|---|---:|---|---|---|---|---|---|
"""
EXPERIMENTS = """
## The same without the cause

Both sides without cuDNN, or without the cache in which autocast keeps casts; or the run
without a GPU with each value that the program read on the GPU (`paper/gpu/dry_values.py`).
*Different* counts the places where requests differ; *left* has the causes of entries that
still differ.

| program | without | requests | on the H200 | different | left | peak reserved | on the H200 |
|---|---|---:|---:|---:|---|---:|---:|
"""
CAUSES = {
    "autocast": "the order in which autocast frees its cache, by host addresses",
    "frees": "the order in which Python frees objects",
    "workspace": "workspace of cuDNN",
    "threads": "two threads of the process race, of the program or of NCCL",
    "values": "values read from the device",
    "streams": "the moment when another stream is done",
    "tie": "free blocks of equal size: the address decides",
    "unexplained": "not explained"}
SHOWN = {"autocast": "casts", "workspace": "cudnn", "values": "values"}
FOR_PEOPLE = """
The same for the programs as people write them (below), as they run now; their recordings
have actions and sizes only, so ties and moments cannot be told apart.

| program | entries equal | of | entry | dry | recorded | cause | all | peak reserved | recorded | error |
|---|---:|---:|---:|---|---|---|---|---:|---:|---:|
"""
HELD_OUT = """
## Programs that ran on a GPU after they were predicted

The predictions (`paper/data/{file}`) were committed before any of these programs ran on a
GPU. {caveat}

| program | settings | bound | predicted | on the H200 | peak allocated | recorded | peak reserved | recorded | error |
|---|---|---:|---|---|---:|---:|---:|---:|---:|
"""
CONFIRMED = """
## Limits that were predicted

For {programs} programs, each with the default and with expandable segments, `fragsim fit
--process-limit inf` took the need from the run without a GPU. On the H200 each program ran under
this limit and under one byte less: {right} of {count} runs ended as predicted ({rest}).
"""


def mib(text):
    return f"{int(text) / 2**20:,.0f}" if text else ""


def error(row, what, true):
    """Relative error in per cent; None where one of the two is missing"""
    if not row.get(what) or not true:
        return None
    return 100 * (int(row[what]) / int(true) - 1)


def percent(value):
    return "" if value is None else "0" if value == 0 else f"{value:+.2f} %"


def programs_table(lines):
    rows = read_csv(os.path.join(DATA, "dry_programs.csv"))[1]
    errors = []
    lines.append(PROGRAMS.rstrip("\n"))
    for r in rows:
        e = error(r, "peak_reserved_bytes", r["recorded_peak_reserved_bytes"])
        errors += [] if e is None else [abs(e)]
        lines.append("| " + " | ".join([
            r["program"], r["conf"], r["equal_entries"] or r["outcome"],
            r["recorded_entries"], mib(r["peak_allocated_bytes"]),
            mib(r["recorded_peak_allocated_bytes"]), mib(r["peak_reserved_bytes"]),
            mib(r["recorded_peak_reserved_bytes"]), percent(e),
            percent(error(r, "need_bytes", r["recorded_need_bytes"])), r["seconds"],
            mib(r["memory_bytes"])]) + " |")
    if errors:
        lines.append(f"\n{len(errors)} of {len(rows)} runs have both peaks; the error of peak "
                     f"reserved is 0 in {errors.count(0)}, its median "
                     f"{statistics.median(errors):.3f} %, its largest {max(errors):.2f} %.")


def spread(row):
    """A row whose requests are equal, and blocks are free at other moments."""
    ends = int(row["peak_reserved_bytes"]), int(row["busy_peak_reserved_bytes"])
    true = [int(row["recorded_peak_reserved_bytes"])] + [
        int(r["peak_reserved_bytes"]) for r in read_csv(os.path.join(
            DATA, "dry_repeats.csv"))[1] if r["program"] == row["program"]]
    between = all(min(ends) <= peak <= max(ends) for peak in true)
    return (f"{'proved' if between else 'not explained'}: all requests are equal; peak "
            f"reserved is {mib(ends[0])} MiB, with `--busy` {mib(ends[1])}; on an H200 "
            f"{', '.join(map(mib, true))} in {len(true)} runs")


def shown(row, experiments):
    """How the cause of a row was shown, or that it was inferred only."""
    part = SHOWN.get(row["cause"])
    # Settings of the allocator change no request.
    done = [e for e in experiments if e["program"] == row["program"].split("__")[0]
            and part in e["without"].split(",")]
    if part and done:
        left = done[0]["different"]
        return "proved: without it, " + (
            "all requests are equal" if left == "0" else f"{left} places differ: "
            + ", ".join(CAUSES[k.split(":")[0]] for k in done[0]["left"].split()))
    if row["cause"] == "tie" and row["exact"] == "yes":
        return "proved: states equal before, rooms equal, histories exact"
    if row["cause"] == "streams":
        return spread(row)
    if row["cause"] == "threads":
        return "proved: two runs without a GPU differ in the same way"
    return "inferred"


def differences_table(lines):
    rows = [r for r in read_csv(os.path.join(DATA, "dry_programs.csv"))[1] if r["cause"]]
    experiments = read_csv(os.path.join(DATA, "dry_without.csv"))[1]
    lines.append(DIFFERENCES.rstrip("\n"))
    proofs = collections.Counter()
    for r in rows:
        how = shown(r, experiments)
        proofs[how.split(":")[0]] += 1
        lines.append("| " + " | ".join([
            r["program"], r["first_difference"], r["dry_entry"], r["recorded_entry"],
            CAUSES[r["cause"]], r["differences"].replace(" ", ", "), r["exact"], how])
                     + " |")
    lines.append("\n" + ", ".join(f"{n} {how}" for how, n in sorted(proofs.items())) + ".")
    lines.append(EXPERIMENTS.rstrip("\n"))
    for e in experiments:
        lines.append("| " + " | ".join([
            e["program"], e["without"], e["requests"], e["gpu_requests"], e["different"],
            e["left"], mib(e["peak_reserved_bytes"]), mib(e["gpu_peak_reserved_bytes"])])
                     + " |")


def people_table(lines):
    lines.append(FOR_PEOPLE.rstrip("\n"))
    truth = {r["program"]: r["peak_reserved_bytes"] for r in read_csv(os.path.join(
        DATA, "dry_recorded_people.csv"))[1] if r["conf"] == "default"}
    for r in read_csv(os.path.join(DATA, "dry_people.csv"))[1]:
        true = truth[r["program"]]
        lines.append("| " + " | ".join([
            r["program"], r["equal_entries"], r["recorded_entries"],
            r["first_difference"], r["dry_entry"], r["recorded_entry"],
            CAUSES.get(r["cause"], ""), r["differences"].replace(" ", ", "),
            mib(r["peak_reserved_bytes"]), mib(true),
            percent(error(r, "peak_reserved_bytes", true))]) + " |")


def key(row):
    return row["program"], row["conf"], row["bound"], row["bound_bytes"]


def held_out(lines, predicted, recorded, caveat):
    """Each prediction beside the recording under the same bound. A bound is a multiple
    of the peak, so one whose peak was predicted wrongly has no partner."""
    rows = read_csv(os.path.join(DATA, predicted))[1]
    truth = {key(r): r for r in read_csv(os.path.join(DATA, recorded))[1]}
    lines.append(HELD_OUT.format(file=predicted, caveat=caveat).rstrip("\n"))
    errors, right, pairs = [], 0, 0
    for r in rows:
        true = truth.get(key(r))
        if true is None:
            continue
        e = error(r, "peak_reserved_bytes", true["peak_reserved_bytes"])
        pairs, right = pairs + 1, right + (r["outcome"] == true["outcome"])
        errors += [] if e is None else [abs(e)]
        lines.append("| " + " | ".join([
            r["program"], r["conf"], mib(r["bound_bytes"]), r["outcome"], true["outcome"],
            *(mib(x[f"peak_{what}_bytes"]) for what in ("allocated", "reserved")
              for x in (r, true)), percent(e)]) + " |")
    lines.append(f"\n{pairs} of {len(rows)} predictions have a run under the same bound; "
                 f"{right} ended as predicted; the error of peak reserved is 0 in "
                 f"{errors.count(0)}, its median {statistics.median(errors):.3f} %, its "
                 f"largest {max(errors):.1f} %.")


def confirmed(lines):
    rows = read_csv(os.path.join(DATA, "dry_confirmed.csv"))[1]
    wrong = [r for r in rows if r["predicted"] != r["outcome"]]
    lines.append(CONFIRMED.format(
        programs=len({r["program"] for r in rows}), count=len(rows),
        right=len(rows) - len(wrong), rest="; ".join(
            f"`{r['program']}`, {r['conf']}: {r['outcome']}" for r in wrong)))


def page(_):
    lines = [HEAD]
    programs_table(lines)
    differences_table(lines)
    people_table(lines)
    for prediction in PREDICTIONS:
        held_out(lines, *prediction)
    confirmed(lines)
    with open(os.path.join(PAGES, "dry.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(lines))


PREDICTIONS = (
    ("dry_predicted.csv", "dry_recorded.csv",
     "They were made before there was a stand-in for cuDNN: cuDNN was off, and "
     "`F.embedding` was replaced by `index_select`; on the GPU the programs ran unchanged."),
    ("dry_predicted_people.csv", "dry_recorded_people.csv",
     "The programs are those of `paper/gpu/dry_programs.py`, with `fragsim dry` as it is."))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    verbs = parser.add_subparsers(required=True)
    for act in (run, without, people, page):
        verb = verbs.add_parser(act.__name__)
        verb.set_defaults(act=act)
        if act is run:
            verb.add_argument("--only", default="")
        if act in (without, people):
            verb.add_argument("folder")
        if act is not page:
            verb.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    args.act(args)


if __name__ == "__main__":
    sys.exit(main())
