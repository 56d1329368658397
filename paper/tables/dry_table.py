#!/usr/bin/env python3
"""dry_table.py run [--only TEXT] [-j N] | page: holds `fragsim dry` against recordings of
an H200.

run    runs the programs of ../shared/oracle (record.py, record_multi.py, batch.py) without
       a GPU, with the Python FRAG_DRY_PYTHON, which has PyTorch's CUDA build, and writes
       data/dry_programs.csv: a row for each run, with the same figures of the recording;
       --only replaces the rows of the programs whose names have that text
page   writes pages/dry.md from it and from data/dry_predicted.csv (made before the programs
       ran on a GPU), dry_recorded.csv and dry_confirmed.csv

An entry is equal if its action and its size are those of the recording's entry with the
same number. Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
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

from data_header import read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED

PYTHON = os.environ.get("FRAG_DRY_PYTHON", "")
ORACLE = os.path.join(SHARED, "oracle")
SECONDS = 900
COLUMNS = ["program", "conf", "outcome", "recorded_outcome", "entries",
           "recorded_entries", "equal_entries", "first_difference",
           "peak_allocated_bytes", "recorded_peak_allocated_bytes",
           "peak_reserved_bytes", "recorded_peak_reserved_bytes", "need_bytes",
           "recorded_need_bytes", "seconds", "memory_bytes"]
RESTS_ON = "PyTorch 2.11.0+cu130 without a GPU, against recordings of an H200"


# ---- what is run ----

def singles():
    """(name of the recording, arguments) of the programs of record.py"""
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "dev", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        with open(path, encoding="ascii") as file:
            told = json.load(file)
        if told.get("cap") or told.get("workload", name) not in (name, name[:-len("__exp")]):
            continue
        yield "dev/" + name, ["record.py", told["workload"], "OUT", "--tag", name] + \
            (["--conf", told["conf"]] if told["conf"] else [])


def several():
    """The programs on two GPUs; the launcher of PyTorch starts a process for each."""
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "multi", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        mode = name.split("_")[1]
        yield "multi/" + name, ([] if mode == "dp" else [
            "-m", "torch.distributed.run", "--nproc-per-node", "2"]) + \
            ["record_multi.py", mode, "OUT"]


def batches():
    for path in sorted(glob.glob(os.path.join(SHARED, "recorded", "batch", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        with open(path, encoding="ascii") as file:
            told = json.load(file)
        yield "batch/" + name, ["batch.py", told["workload"], str(told["batch"]), "OUT",
                                "--cap", str(told["cap"] / 2**30)]


def command(arguments, folder):
    put = [folder if a == "OUT" else os.path.join(ORACLE, a)
           if a.endswith(".py") else a for a in arguments]
    gpus = ["--gpus", "2"] if "record_multi.py" in arguments else []
    return [FRAGSIM, "dry", "--gpu", "h200", *gpus, "-q", "-o",
            os.path.join(folder, "own.pickle"), "--", PYTHON, *put]


# ---- what is compared ----

def history(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as stream:
        traces = pickle.load(stream)["device_traces"]
    return [(e["action"], e["size"]) for trace in traces for e in trace]


def need(path):
    done = subprocess.run([FRAGSIM, "fit", "-q", "--bound", "limit", "--json", "-", path],
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
    mine, truth = history(own + ".pickle"), history(other + ".pickle.xz")
    same = [a == b for a, b in zip(mine, truth)]
    row = figures(own + ".pickle", load(own + ".json"))
    row |= {"recorded_" + key: value for key, value in
            figures(other + ".pickle.xz", load(other + ".json")).items()}
    return row | {"entries": len(mine), "recorded_entries": len(truth),
                  "equal_entries": sum(same),
                  "first_difference": "" if all(same) and len(mine) == len(truth)
                  else (same + [False]).index(False)}


def one(job):
    name, arguments = job
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        memory = os.path.join(folder, "memory")
        done = subprocess.run(["/usr/bin/time", "-f", "%M", "-o", memory,
                               *command(arguments, folder)], capture_output=True,
                              text=True, check=False, timeout=SECONDS)
        row = {"program": name, "conf": "expandable_segments:True"
               if name.endswith("__exp") else "default",
               "seconds": round(time.monotonic() - began, 1)}
        try:
            row |= compare(name, folder)
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


# ---- the page ----

HEAD = """# Runs without a GPU, against the GPU

Made by `paper/tables/dry_table.py page`. A program runs on a machine without a GPU, with
PyTorch's own CUDA build on the libraries of `fragsim dry`; the same program was recorded on
an H200. *Equal* counts the entries of the allocator's history whose action and size are the
recording's, at the same place. Peaks are in MiB.
"""
PROGRAMS = """
## The programs of the recordings

| program | settings | entries equal | of | peak allocated | recorded | peak reserved | recorded | error | need, error | seconds | memory |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
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
--bound limit` took the need from the run without a GPU. On the H200 each program ran under
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
    for act in (run, page):
        verb = verbs.add_parser(act.__name__)
        verb.set_defaults(act=act)
        if act is run:
            verb.add_argument("--only", default="")
            verb.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    args.act(args)


if __name__ == "__main__":
    sys.exit(main())
