#!/usr/bin/env python3
"""tune_table.py: writes pages/tune.md from what `fragsim tune` of fragsim 0.1 chose, and
what its choice saves on steps that it did not see.

Whole recordings: the default recordings of ../shared, without a bound, with at most
1 % more driver calls, and with this bound but without the driver's virtual memory
calls; with the keys of PyTorch 2.11, which recorded them (data/tune.csv).
Halves: these and further recordings of complete runs were cut at the step in their
middle; tune chose on the first half, and its choice, expandable_segments:True
alone, and what the search of still earlier versions found (data/tune_search.csv)
were replayed on the second (data/tune_halves.csv). data/tune_real.csv has the same
events in PyTorch's own allocator on a GPU. Commit 073f8ac0 has the scripts that
made these files.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR, for halves_need.py.
"""
import glob
import json
import math
import os
import re
import subprocess
import sys

from data_header import read_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED, recordings

NO_VMM = "no VMM"
QUESTIONS = ("no bound", "calls +1 %", "calls +1 %, no VMM")
HALVES = ("all settings", NO_VMM)
SWITCH = "expandable_segments:True"
READING = """
On the second halves, expandable segments alone save as much as what a search of up to
{tried} settings found on the first halves: which further sizes help is not a
property of the program, but of the steps that were seen. Where they cannot be
deployed, larger segments (`large_segment_size_mb`, new in PyTorch 2.11) help some
programs; over all recordings, four sizes save as much as the search does. So `tune` of
fragsim 0.1, which these tables are of, tried at most 20 settings, the simplest first;
today it tries four: the default, expandable segments, these with pages of 12 MiB, and
`max_split_size_mb:128`.
"""
TABLE = os.path.join(DATA, "tune.csv")
HALF_TABLE = os.path.join(DATA, "tune_halves.csv")
SEARCH_TABLE = os.path.join(DATA, "tune_search.csv")
REAL = os.path.join(DATA, "tune_real.csv")
GIB = 2 ** 30


def run(tool, *command):
    return subprocess.run([tool, *command], capture_output=True, text=True,
                          check=True).stdout


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
    lines = ["# The settings that `tune` chose", "",
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


def main():
    with open(os.path.join(PAGES, "tune.md"), "w", encoding="utf-8") as out:
        out.write(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
