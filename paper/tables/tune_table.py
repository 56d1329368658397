#!/usr/bin/env python3
"""tune_table.py [-j N] [--jobs FOLDER | --search OLD | --table]: what `fragsim tune`
chooses, and what its choice saves on steps that it did not see.

Whole recordings: the default recordings of ../shared, without a bound, with at most
1 % more driver calls, and with this bound but without the driver's virtual memory
calls; with the keys of PyTorch 2.11, which recorded them (data/tune.csv).
Halves: these and further recordings of complete runs are cut at the step in their
middle; tune chooses on the first half, and its choice, expandable_segments:True
alone, and what the search of earlier versions found are replayed on the second
(data/tune_halves.csv). --search OLD runs that search, with a build OLD of commit
e0ca3b40, the last one that has it, and writes data/tune_search.csv.

Makes pages/tune.md. --jobs FOLDER also writes FOLDER/jobs.jsonl and the event
streams, with which PyTorch's own allocator can confirm the figures on a device
(gpu/tune_confirm.py; data/tune_real.csv). --table makes tune.md from the data alone.
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
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED, recordings

NO_VMM = "no VMM"
QUESTIONS = {
    "no bound": [],
    "calls +1 %": ["--max-calls-ratio", "0.01"],
    "calls +1 %, no VMM": ["--max-calls-ratio", "0.01", "--no-vmm"],
}
HALVES = {"all settings": [], NO_VMM: ["--no-vmm"]}
COLUMNS = ["trace", "question", "default_peak_reserved_bytes",
           "peak_reserved_bytes", "saving_ratio", "default_driver_calls",
           "driver_calls", "default_modelled_device_seconds",
           "modelled_device_seconds", "settings_tried", "settings"]
HALF_COLUMNS = ["trace", "group", "settings", "steps", "default_bytes",
                "ladder", "ladder_bytes", "switch_bytes", "search",
                "search_bytes"]
SEARCH_COLUMNS = ["trace", "settings", "search", "settings_tried"]
SWITCH = "expandable_segments:True"
READING = """
On the second halves, expandable segments alone save as much as what a search of up to
{tried} settings found on the first halves: which further sizes help is not a
property of the program, but of the steps that were seen. Where they cannot be
deployed, larger segments (`large_segment_size_mb`, new in PyTorch 2.11) help some
programs; over all recordings, four sizes save as much as the search does. So `tune`
tries at most 20 settings, the simplest first.
"""
TABLE = os.path.join(DATA, "tune.csv")
HALF_TABLE = os.path.join(DATA, "tune_halves.csv")
SEARCH_TABLE = os.path.join(DATA, "tune_search.csv")
REAL = os.path.join(DATA, "tune_real.csv")
GIB = 2 ** 30


def run(tool, *command):
    return subprocess.run([tool, *command], capture_output=True, text=True,
                          check=True).stdout


def answer(tool, path, *options):
    text = run(tool, "tune", "-q", "-j", "1", path, "--no-hold-out", "--json",
               "-", *options)
    return json.loads(text)["results"][0]


# ---- whole recordings ----

def tune(path, options, jobs):
    """The choice. Also writes the jobs, except for a trace with private pools."""
    options = ["--torch-version", "2.11", *options]
    if jobs:
        try:
            return answer(FRAGSIM, path, *options, "-f", "--verify-with", jobs)
        except subprocess.CalledProcessError as error:
            if "private pools" not in error.stderr:
                raise SystemExit(error.stderr) from None
    return answer(FRAGSIM, path, *options)


def row_of(question, found):
    case = found["cases"][0]
    base, best = case["recorded"], case["chosen"]
    row = {"trace": case["trace"], "question": question,
           "saving_ratio": 1 - best["peak_reserved_bytes"] /
           base["peak_reserved_bytes"],
           "settings_tried": found["settings_tried"],
           "settings": found["chosen"]["settings"]}
    for key in ("peak_reserved_bytes", "driver_calls",
                "modelled_device_seconds"):
        row["default_" + key] = base[key]
        row[key] = best[key]
    return row


def measure(path, folder):
    name = os.path.basename(path).split(".")[0]
    return [row_of(question, tune(path, options, folder and os.path.join(
        folder, f"{name}.{i}.jobs")))
        for i, (question, options) in enumerate(QUESTIONS.items())]


def gather_jobs(folder):
    """Writes all jobs to one file, each setting of a trace once."""
    seen = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jobs"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as lines:
            for job in map(json.loads, lines):
                stream = os.path.basename(job["events"])
                trace = stream.split(".")[0]
                if os.path.exists(job["events"]):
                    os.replace(job["events"],
                               os.path.join(folder, f"{trace}.events"))
                job["events"] = f"{trace}.events"
                seen[trace, job["conf"]] = job
        os.remove(os.path.join(folder, name))
    with open(os.path.join(folder, "jobs.jsonl"), "w",
              encoding="utf-8") as out:
        out.writelines(json.dumps(job) + "\n" for job in seen.values())


# ---- halves ----

def complete_runs():
    """(group, path): the default recordings, and others of whole runs on one
    device; of a batch, three sizes that all programs survive."""
    yield from (("default", path) for path in recordings())
    for folder, names in (("h100", "*"), ("causes", "[ln]_*"),
                          ("multi", "multi_*_rank*"), ("batch", "*_b0*")):
        for path in sorted(glob.glob(os.path.join(
                SHARED, "recorded", folder, names + ".pickle.xz"))):
            with open(path.replace(".pickle.xz", ".json"),
                      encoding="utf-8") as file:
                oom = json.load(file).get("oom")
            if not oom and (folder != "batch" or
                            re.search("_b0(04|08|16)", path)):
                yield "others", path


def halves(path, folder):
    """The files of the first and the second half, and the number of steps."""
    name = os.path.basename(path).split(".")[0]
    steps = json.loads(run(FRAGSIM, "steps", "-q", "--json", "-", path))
    starts = [part["from_event"] for part in steps["results"][0]["parts"]
              if part["part"] == "step"]
    cut = starts[len(starts) // 2]
    files = [os.path.join(folder, f"{name}.{half}.h5") for half in "12"]
    for file, events in zip(files, (f"0..{cut - 1}", f"{cut}..")):
        run(FRAGSIM, "edit", "-q", path, "-e", f"slice:events={events}", "-o",
            file)
    return *files, len(starts)


def peak(path, settings):
    text = run(FRAGSIM, "replay", "-q", path, "-p",
               f"torch:{settings}" if settings else "torch", "--json", "-")
    return json.loads(text)["results"][0]["peak_reserved_bytes"]


def judge(group, path, found):
    """The rows of one recording; `found` has what the search found."""
    name = os.path.basename(path).split(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        first, second, steps = halves(path, folder)
        for settings, options in HALVES.items():
            ladder = answer(FRAGSIM, first, "--torch-version", "2.11",
                            *options)["chosen"]["settings"]
            row = {"trace": name, "group": group, "settings": settings,
                   "steps": steps, "default_bytes": peak(second, ""),
                   "ladder": ladder, "ladder_bytes": peak(second, ladder),
                   "switch_bytes": "" if options else peak(second, SWITCH),
                   "search": found[name, settings]}
            row["search_bytes"] = peak(second, row["search"])
            yield row


def search(old, path):
    """What the search of an older build finds on the first half."""
    name = os.path.basename(path).split(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        first, _, _ = halves(path, folder)
        for settings, options in HALVES.items():
            found = answer(old, first, *options)
            yield {"trace": name, "settings": settings,
                   "search": found["chosen"]["settings"],
                   "settings_tried": found["settings_tried"]}


# ---- the page ----

def percent(x):
    return f"{100 * float(x):.1f} %"


def mean_saving(ratios):
    """The saving of the geometric mean of the ratios."""
    logs = [math.log(r) for r in ratios]
    return 1 - math.exp(sum(logs) / len(logs))


def more(row, key):
    base = float(row["default_" + key])
    return f"{100 * (float(row[key]) / base - 1):+.0f} %"


def ratios_of(rows, kind):
    return [int(r[kind + "_bytes"]) / int(r["default_bytes"]) for r in rows]


def half_row(title, rows, kind):
    ratios = ratios_of(rows, kind)
    return (f"| {title} | {percent(mean_saving(ratios))} | "
            f"{sum(r > 1 for r in ratios)} |")


def half_tables(rows):
    lines = ["## Second halves", "",
             "Chosen on the first half of a recording, measured on the second, "
             "beside PyTorch's default there.", "",
             "| recordings | chosen | mean saving | worse than the default |",
             "|---|---|---:|---:|"]
    for settings in HALVES:
        for groups, title in ((("default",), "default"),
                              (("others",), "others"),
                              (("default", "others"), "all")):
            some = [r for r in rows
                    if r["group"] in groups and r["settings"] == settings]
            for kind, words in (("ladder", "`tune`"),
                                ("switch", f"`{SWITCH}`, always"),
                                ("search", "search of earlier versions")):
                if some[0][kind + "_bytes"] != "":
                    lines.append(half_row(
                        f"{len(some)} {title}{', no VMM' if settings == NO_VMM else ''}"
                        f" | {words}", some, kind))
    lines += ["", "| recording | steps | `tune` | switch | search | chosen by `tune` | "
              "found by the search |", "|---|---:|---:|---:|---:|---|---|"]
    for r in rows:
        if r["settings"] == NO_VMM:
            continue
        savings = (percent(1 - int(r[k + "_bytes"]) / int(r["default_bytes"]))
                   for k in ("ladder", "switch", "search"))
        lines.append(f"| {r['trace']} | {r['steps']} | {' | '.join(savings)} | "
                     f"`{r['ladder'] or 'default'}` | "
                     f"`{r['search'] or 'default'}` |")
    return lines + [""]


def whole_table(question, rows):
    rows = [r for r in rows if r["question"] == question]
    lines = [f"## {question[0].upper()}{question[1:]}", "",
             "Mean saving of peak reserved (geometric): "
             f"{percent(mean_saving(1 - float(r['saving_ratio']) for r in rows))}.",
             "",
             "| recording | default, GiB | chosen, GiB | saving | driver calls | "
             "modelled time | settings |",
             "|---|---:|---:|---:|---:|---:|---|"]
    for r in rows:
        lines.append(
            f"| {r['trace']} | "
            f"{int(r['default_peak_reserved_bytes']) / GIB:.3f} | "
            f"{int(r['peak_reserved_bytes']) / GIB:.3f} | "
            f"{percent(r['saving_ratio'])} | {more(r, 'driver_calls')} | "
            f"{more(r, 'modelled_device_seconds')} | "
            f"`{r['settings'] or 'default'}` |")
    return lines + [""]


def confirmed(rows, real):
    """How many pairs of recording and setting were run on a GPU, and the number of
    these pairs."""
    pairs = {(r["trace"], r["settings"]) for r in rows}
    return len(pairs & {(r["trace"], r["settings"]) for r in real}), len(pairs)


def real_table(rows, found):
    equal = [r for r in rows if r["predicted"] == r["real"]]
    now, of = confirmed(found, rows)
    lines = ["## Confirmed on a device", "",
             f"The same events in PyTorch's own allocator: {len(equal)} "
             f"of {len(rows)} peaks are equal to the byte "
             f"({rows[0]['device']}, driver {rows[0]['driver']}, PyTorch "
             f"{rows[0]['torch']}, {rows[0]['date']}). The settings are those "
             f"that the search of earlier versions found; {now} of the {of} pairs "
             "of recording and setting above are among them.", "",
             "| recording | settings | predicted, bytes | real, bytes |",
             "|---|---|---:|---:|"]
    for r in rows:
        lines.append(f"| {r['trace']} | `{r['settings'] or 'default'}` | "
                     f"{r['predicted']} | {r['real']} |")
    return lines + [""]


def markdown():
    rows, half = read_csv(TABLE)[1], read_csv(HALF_TABLE)[1]
    tried = max(int(r["settings_tried"]) for r in read_csv(SEARCH_TABLE)[1])
    lines = ["# The settings that `tune` chooses", "",
             "Made by `paper/tables/tune_table.py` from `paper/data/tune.csv`, "
             "`tune_halves.csv` and `tune_search.csv`.", "Peak reserved, driver "
             "calls and modelled time in the driver, at unlimited capacity.",
             "", READING.strip().format(tried=f"{tried:,}"), ""]
    lines += half_tables(half)
    for question in QUESTIONS:
        lines += whole_table(question, rows)
    if os.path.exists(REAL):
        lines += real_table(read_csv(REAL)[1], rows)
    return "\n".join(lines).rstrip() + "\n"


def tune_all(pool, folder):
    if folder:
        os.makedirs(folder, exist_ok=True)
    rows = sum(pool.map(lambda p: measure(p, folder), recordings()), [])
    rows.sort(key=lambda r: (list(QUESTIONS).index(r["question"]), r["trace"]))
    if folder:
        gather_jobs(folder)
    return rows


def write(path, tool, option, columns, rows):
    write_csv(path, replayed(tool, "paper/tables/tune_table.py" + option,
                             RECORDINGS if path == TABLE else "../shared/recorded"),
              columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--jobs")
    parser.add_argument("--search")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table and not recordings():
        print("tune_table: there are no recordings")
        return 77
    with ThreadPoolExecutor(arguments.j) as pool:
        if arguments.search:
            rows = sum(pool.map(lambda r: list(search(arguments.search, r[1])),
                                complete_runs()), [])
            write(SEARCH_TABLE, arguments.search, " --search", SEARCH_COLUMNS,
                  rows)
        if not arguments.table:
            found = {(r["trace"], r["settings"]): r["search"]
                     for r in read_csv(SEARCH_TABLE)[1]}
            write(TABLE, FRAGSIM, "", COLUMNS, tune_all(pool, arguments.jobs))
            write(HALF_TABLE, FRAGSIM, "", HALF_COLUMNS, sum(pool.map(
                lambda r: list(judge(*r, found)), complete_runs()), []))
    text = markdown()
    with open(os.path.join(PAGES, "tune.md"), "w", encoding="utf-8") as out:
        out.write(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
