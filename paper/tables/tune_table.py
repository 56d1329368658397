#!/usr/bin/env python3
"""tune_table.py [-j N] [--jobs FOLDER | --table]: runs `fragsim tune` on every
default recording of ../shared: without a bound, with at most 1 % more driver
calls than the default, and with this bound but without the driver's virtual
memory calls. --tolerance 0 makes it choose the best setting, not a simpler one.

Writes data/tune.csv (one row for each recording and search) and
pages/tune.md. --jobs FOLDER also writes FOLDER/jobs.jsonl and the event streams,
with which PyTorch's own allocator can confirm the figures on a device.
tune_confirm.py does so and writes data/tune_real.csv, which tune.md shows.
--table makes tune.md from the data alone.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, read_csv, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, recordings

SEARCHES = {
    "no bound": [],
    "calls +1 %": ["--max-calls-ratio", "0.01", "--no-hold-out"],
    "calls +1 %, no VMM": ["--max-calls-ratio", "0.01", "--no-vmm",
                           "--no-hold-out"],
}
COLUMNS = ["trace", "search", "default_peak_reserved_bytes",
           "peak_reserved_bytes", "saving_ratio", "default_driver_calls",
           "driver_calls", "default_modelled_device_seconds",
           "modelled_device_seconds", "held_out_saving_ratio",
           "settings_tried", "settings"]
READING = """
Except on a few recordings, expandable segments are the best setting where they
can be deployed. With pages larger than 20 MiB (`large_segment_size_mb`, new in
PyTorch 2.11) they need fewer driver calls than the default, so the saving is
nearly the same with and without a bound on calls. Where they cannot be deployed,
larger segments and rounding reach about two thirds of the saving. A setting that
is tuned on the first steps can be worse on later steps with other sizes
(`generate`): check the held-out figure before you export a list.
"""
TABLE = os.path.join(DATA, "tune.csv")
REAL = os.path.join(DATA, "tune_real.csv")
GIB = 2 ** 30


def tune(path, options, jobs):
    """The result of one search. Also writes the jobs, except for a trace with
    private pools."""
    command = [FRAGSIM, "tune", "-q", "-j", "1", path, "--tolerance", "0",
               "--json", "-", *options]
    if jobs:
        done = subprocess.run(command + ["-f", "--verify-with", jobs],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)["results"][0]
        if "private pools" not in done.stderr:
            raise SystemExit(done.stderr)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["results"][0]


def saving(found, base):
    return 1 - found["peak_reserved_bytes"] / base["peak_reserved_bytes"]


def row_of(search, answer):
    case = answer["cases"][0]
    base, best = case["default"], case["chosen"]
    row = {"trace": case["trace"], "search": search,
           "saving_ratio": saving(best, base), "held_out_saving_ratio": "",
           "settings_tried": answer["settings_tried"],
           "settings": answer["chosen"]["settings"]}
    for held_out in answer["held_out"]:
        row["held_out_saving_ratio"] = saving(held_out["found"],
                                              held_out["default"])
    for key in ("peak_reserved_bytes", "driver_calls",
                "modelled_device_seconds"):
        row["default_" + key] = base[key]
        row[key] = best[key]
    return row


def measure(path, folder):
    name = os.path.basename(path).split(".")[0]
    return [row_of(search, tune(path, options, folder and os.path.join(
        folder, f"{name}.{i}.jobs")))
        for i, (search, options) in enumerate(SEARCHES.items())]


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


def percent(x):
    return f"{100 * float(x):.1f} %" if x != "" else ""


def mean_saving(rows):
    """The saving of the geometric mean of the ratios."""
    logs = [math.log(1 - float(r["saving_ratio"])) for r in rows]
    return 1 - math.exp(sum(logs) / len(logs))


def more(row, key):
    base = float(row["default_" + key])
    return f"{100 * (float(row[key]) / base - 1):+.0f} %"


def search_table(search, rows):
    rows = [r for r in rows if r["search"] == search]
    held = [r for r in rows if r["held_out_saving_ratio"] != ""]
    lines = [f"## {search[0].upper()}{search[1:]}", "",
             "Mean saving of peak reserved (geometric): "
             f"{percent(mean_saving(rows))}.", ""]
    if held:
        logs = [math.log(1 - float(r["held_out_saving_ratio"])) for r in held]
        lines[2] += (" Tuned on the first half of each recording, measured on "
                     "the second half: "
                     f"{percent(1 - math.exp(sum(logs) / len(logs)))}.")
    lines += [
        "| recording | default, GiB | found, GiB | saving | driver calls | "
        "modelled time |" + (" held out |" if held else "") + " settings |",
        "|---|---:|---:|---:|---:|---:|" + ("---:|" if held else "") + "---|"]
    for r in rows:
        lines.append(
            f"| {r['trace']} | "
            f"{int(r['default_peak_reserved_bytes']) / GIB:.3f} | "
            f"{int(r['peak_reserved_bytes']) / GIB:.3f} | "
            f"{percent(r['saving_ratio'])} | {more(r, 'driver_calls')} | "
            f"{more(r, 'modelled_device_seconds')} | "
            + (f"{percent(r['held_out_saving_ratio'])} | " if held else "")
            + f"`{r['settings'] or 'default'}` |")
    return lines + [""]


def confirmed(rows, real):
    """How many pairs of recording and setting of the searches were run on a GPU, and
    the number of these pairs."""
    pairs = {(r["trace"], r["settings"]) for r in rows}
    return len(pairs & {(r["trace"], r["settings"]) for r in real}), len(pairs)


def not_run(rows, real):
    """The recordings of which no pair was run, in words."""
    left = {r["trace"] for r in rows} - {r["trace"] for r in real}
    return ("; " + ", ".join(f"`{name}`" for name in sorted(left)) +
            " has private pools, which such a run cannot make" if left else "")


def real_table(rows, found):
    equal = [r for r in rows if r["predicted"] == r["real"]]
    now, of = confirmed(found, rows)
    lines = ["## Confirmed on a device", "",
             f"The same events in PyTorch's own allocator: {len(equal)} "
             f"of {len(rows)} peaks are equal to the byte "
             f"({rows[0]['device']}, driver {rows[0]['driver']}, PyTorch "
             f"{rows[0]['torch']}, {rows[0]['date']}). The settings are the "
             "default and those that the search reports: of the "
             f"{of} pairs of recording and setting above, {now} are among "
             f"them{not_run(found, rows)}.", "",
             "| recording | settings | predicted, bytes | real, bytes |",
             "|---|---|---:|---:|"]
    for r in rows:
        lines.append(f"| {r['trace']} | `{r['settings'] or 'default'}` | "
                     f"{r['predicted']} | {r['real']} |")
    return lines + [""]


def markdown(rows, real):
    lines = ["# The best settings for the default recordings", "",
             f"{len({r['trace'] for r in rows})} recordings of PyTorch 2.11 on "
             "an H200; made by `paper/tables/tune_table.py`, from",
             "`paper/data/tune.csv`. The tables compare the settings found by "
             "`fragsim tune` with PyTorch's default:", "peak reserved, driver "
             "calls and modelled time in the driver, at unlimited capacity.",
             ""]
    lines += [READING.strip(), ""]
    for search in SEARCHES:
        lines += search_table(search, rows)
    return "\n".join(lines + (real_table(real, rows) if real else [])).rstrip() + "\n"


def search_all(jobs, folder):
    paths = recordings()
    if folder:
        os.makedirs(folder, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        rows = sum(pool.map(lambda p: measure(p, folder), paths), [])
    rows.sort(key=lambda r: (list(SEARCHES).index(r["search"]), r["trace"]))
    if folder:
        gather_jobs(folder)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--jobs")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        if not recordings():
            print("tune_table: there are no recordings")
            return 77
        rows = search_all(arguments.j, arguments.jobs)
        write_csv(TABLE, replayed(FRAGSIM, "paper/tables/tune_table.py", RECORDINGS),
                  COLUMNS, rows)
    real = read_csv(REAL)[1] if os.path.exists(REAL) else []
    text = markdown(read_csv(TABLE)[1], real)
    with open(os.path.join(PAGES, "tune.md"), "w", encoding="utf-8") as out:
        out.write(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
