#!/usr/bin/env python3
"""open_prs_table.py [-j N]: what four pull requests to PyTorch change in what
recorded jobs need, and in the price.

For each pull request and kind of bound, one sweep replays the recordings of
../shared/recorded that it can concern with the rules of PyTorch 2.15, without and
with it, at unlimited memory and at 1.01, 1.02 and 1.05 times the peak of the
requested bytes; `--need` adds the least bound from which on nothing fails. Then each
need under a limit is set as a memory fraction, as the rules of PyTorch 2.12 read it,
without and with the fourth.
Writes data/open_prs.csv (a row with a pull request stands there only if its numbers
differ from those without it) and pages/open_prs.md.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

from data_header import replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED, geometric_mean

FOLDERS = ("dev", "batch", "causes", "h100", "multi", "large")
RELEASE, CUTS = "torch@2.15", "torch@2.12"
EXPANDABLE = "expandable_segments:True"
SPLIT = EXPANDABLE + ",max_split_size_mb:128"  # that of the pull request
# {pull request: (the settings under which it is tried, whether it can concern a device
# of `fragsim info`)}
TRIED = {
    "pr191302": (["", EXPANDABLE], lambda d: d["requests"]["free_requested"]),
    "pr186232": ([""], lambda d: d["num_streams"] > 1),
    "pr193400": ([SPLIT], lambda d: True),
}
SHARES = ["inf", "1.01x", "1.02x", "1.05x"]  # of the peak of requested bytes
BOUNDS = {"capacity": "-c", "limit": "--process-limit"}
TOTAL = 150109880320  # bytes of an H200, as it reports them
TOTALS = {"an H200": TOTAL, "an H100": 85017493504, "an L4": 23583784960}
CALLS = ["num_segment_alloc", "num_segment_free", "num_map", "num_unmap"]
NUMBERS = ["need_bytes", "peak_reserved_bytes", "num_ooms",
           "num_alloc_retries", "driver_calls", "modelled_device_seconds"]
COLUMNS = ["trace", "device", "settings", "experiment", "bound", "share",
           "bound_bytes", "lower_bound_bytes", *NUMBERS]
MIB = 2 ** 20


def policy(settings, experiment, release=RELEASE):
    parts = [settings, experiment and f"experiment:{experiment}"]
    return ":".join([release, ",".join(p for p in parts if p)]).rstrip(":")


def recordings():
    return sorted(path for folder in FOLDERS for path in glob.glob(
        os.path.join(SHARED, "recorded", folder, "*.pickle.xz")))


def concerned(paths):
    """{pull request: the recordings with a device that it can concern}"""
    done = subprocess.run([FRAGSIM, "info", "-q", *paths, "--json", "-"],
                          check=True, capture_output=True, text=True)
    files = json.loads(done.stdout)["results"]
    return {name: [f["path"] for f in files if any(map(can, f["devices"]))]
            for name, (_, can) in TRIED.items()}


def sweep(paths, tried, bound, jobs):
    """The rows of all cells of one pull request under one kind of bound."""
    named = {policy(s, e): (s, e) for s in TRIED[tried][0]
             for e in ("", tried)}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "rows.json")
        command = [FRAGSIM, "sweep", "-q", "-j", str(jobs), *paths, "-o",
                   os.path.join(folder, "rows.h5"), "--json", out,
                   BOUNDS[bound], ",".join(SHARES), "--need", bound]
        for name in named:
            command += ["-p", name]
        done = subprocess.run(command, check=False, capture_output=True,
                              text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        with open(out, encoding="utf-8") as file:
            rows = json.load(file)["results"]
    cells = {}
    for row in rows:
        row["settings"], row["experiment"] = named[row["policy"]]
        row["tried"], row["bound"] = tried, bound
        row["bound_bytes"] = row["capacity_bytes"] or row["process_limit_bytes"]
        row["driver_calls"] = sum(row[name] for name in CALLS)
        cells.setdefault((row["trace"], row["device"], row["policy"]),
                         []).append(row)
    for cell in cells.values():
        cell.sort(key=lambda r: r["bound_bytes"] or 0)
        for share, row in zip(SHARES, cell, strict=True):
            row["share"] = share
    return rows


# The tables

def pairs_of(rows, settings, experiment, bound):
    """[{share: (row without, row with)}] for each recorded device."""
    found = {}
    for row in rows:
        if (row["settings"], row["bound"], row["tried"]) == (settings, bound,
                                                             experiment):
            both = found.setdefault((row["trace"], row["device"]), {})
            both.setdefault(row["share"], {})[row["experiment"]] = row
    return [{share: (two[""], two[experiment]) for share, two in both.items()}
            for _, both in sorted(found.items())]


def differ(before, after):
    return any(before[n] != after[n] for n in NUMBERS)


def both(texts):
    before, after = texts
    return before if before == after else f"{before} → {after}"


def need_cells(pairs):
    """The rows of the table about the need, of the devices whose need changes."""
    two = [p["inf"] for p in pairs]
    two = [(b, a) for b, a in two if b["need_bytes"] != a["need_bytes"]]
    names = ["median", "mean", "worst", "best"]
    if not two:
        return {"with another need": "0"} | {f"their need, {n}": "-"
                                             for n in names} | {
            "largest fall of a need": "-", "largest rise": "-"}
    sides = [[pair[k]["need_bytes"] / pair[0]["lower_bound_bytes"]
              for pair in two] for k in (0, 1)]
    makers = [statistics.median, geometric_mean, max, min]
    change = [(a["need_bytes"] / b["need_bytes"] - 1, b["trace"])
              for b, a in two]
    low, high = min(change), max(change)
    return {"with another need": str(len(two))} | {
        f"their need, {n}": both([f"{make(side):.3f}" for side in sides])
        for n, make in zip(names, makers)} | {
        "largest fall of a need":
            f"{low[0]:.1%}, {low[1]}" if low[0] < 0 else "-",
        "largest rise": f"{high[0]:+.1%}, {high[1]}" if high[0] > 0 else "-"}


def price_cells(pairs):
    """Sums over the devices that nothing fails on, without and with."""
    cells = {}
    for share, words in (("inf", "without a bound"), ("1.05x", "at 1.05")):
        two = [p[share] for p in pairs
               if not p[share][0]["num_ooms"] and not p[share][1]["num_ooms"]]
        for column, name, form in (("driver_calls", "driver calls", "d"),
                                   ("num_alloc_retries", "retries", "d"),
                                   ("modelled_device_seconds",
                                    "device seconds", ".3f")):
            cells[f"{name} {words}"] = both(
                [format(sum(pair[k][column] for pair in two), form)
                 for k in (0, 1)])
    return cells


def death_cells(pairs):
    cells = {}
    for share in SHARES[1:]:
        died = [[bool(row["num_ooms"]) for row in p[share]] for p in pairs]
        avoided = sum(before and not after for before, after in died)
        added = sum(after and not before for before, after in died)
        cells[f"deaths at {share[:-1]}, avoided, added"] = (
            f"{sum(before for before, _ in died)}, {avoided}, {added}")
        cells[f"failed requests at {share[:-1]}"] = both(
            [str(sum(p[share][k]["num_ooms"] for p in pairs))
             for k in (0, 1)])
    return cells


def column(rows, settings, experiment, bound):
    pairs = pairs_of(rows, settings, experiment, bound)
    changed = sum(any(differ(*two) for two in p.values()) for p in pairs)
    return ({"recorded devices": str(len(pairs)),
             "with any other number": str(changed)} | need_cells(pairs) |
            price_cells(pairs) | death_cells(pairs))


def table(rows, experiment):
    columns = {(s, b): column(rows, s, experiment, b)
               for s in TRIED[experiment][0] for b in BOUNDS}
    words = {"capacity": "device", "limit": "limit"}
    lines = ["| | " + " | ".join(f"`{s or 'default'}`, {words[b]}"
                                 for s, b in columns) + " |",
             "|---|" + "---:|" * len(columns)]
    for name in next(iter(columns.values())):
        lines.append(f"| {name} | " +
                     " | ".join(c[name] for c in columns.values()) + " |")
    return "\n".join(lines)


def percent(share):
    return f"{share:+.1%}" if abs(share) >= 0.0005 else "0 %"


def facts(rows, experiment):
    """What the sentence about a pull request says."""
    pairs = [p for s in TRIED[experiment][0] for b in BOUNDS
             for p in pairs_of(rows, s, experiment, b)]
    free = [p["inf"] for p in pairs]
    failed = [[r["num_ooms"] for r in p[s]] for p in pairs for s in SHARES[1:]]
    died = [[bool(ooms) for ooms in two] for two in failed]
    change = sorted((a["need_bytes"] / b["need_bytes"] - 1, b["trace"])
                    for b, a in free)
    moved = {(b["trace"], b["device"]) for b, a in free
             if b["need_bytes"] != a["need_bytes"]}
    calls = [sum(two[k]["driver_calls"] for two in free) for k in (0, 1)]
    return {"calls": f"{calls[1] / calls[0] - 1:+.0%}", "names": ", ".join(f"`{t}`" for t in
                               sorted({b["trace"] for b, _ in free})),
            "devices": len({(b["trace"], b["device"]) for b, _ in free}),
            "moved": len(moved), "low": percent(change[0][0]),
            "where": change[0][1], "middle": percent(statistics.median(
                share for share, _ in change)),
            "high": percent(change[-1][0]), "there": change[-1][1],
            "failed": sum(b for b, _ in failed),
            "fail": sum(a for _, a in failed),
            "died": sum(b for b, _ in died),
            "avoided": sum(b and not a for b, a in died),
            "added": sum(a and not b for b, a in died)}


# The program of pull request 193400

def reproduce():
    """[(cycles, reserved MiB without, with)]: 64 MiB that stay, then in each cycle
    91 and 45.5 MiB, 2 MiB that stay, and the frees of the first two."""
    found = []
    for cycles in range(0, 101, 20):
        lines, count = ["op,id,bytes", f"alloc,0,{64 * MIB}"], 0
        for _ in range(cycles + 1):
            lines += [f"alloc,{count + k + 1},{size}" for k, size in
                      enumerate((91 * MIB, 91 * MIB // 2, 2 * MIB))]
            lines += [f"free,{count + 1},", f"free,{count + 2},"]
            count += 3
        command = [FRAGSIM, "replay", "-q", "-", "--json", "-"]
        for experiment in ("", "pr193400"):
            command += ["-p", policy(SPLIT, experiment)]
        done = subprocess.run(command, check=True, capture_output=True,
                              text=True, input="\n".join(lines) + "\n")
        found.append((cycles, *(r["end_reserved_bytes"] // MIB for r in
                                json.loads(done.stdout)["results"])))
    return found


# Pull request 179444

def key(row):
    return tuple(row[n] for n in ("trace", "device", "settings", "bound",
                                  "share"))


def is_cut(size, total):
    return int(size / total * total) < size


def fractions(rows, paths):
    """The devices whose need, as a fraction of the total, is cut: [(trace, settings,
    need, OOMs of 2.12, OOMs with the pull request)], and the number of all."""
    files = {os.path.basename(p).split(".")[0]: p for p in paths}
    needs = {key(r): r for r in rows if r["bound"] == "limit" and
             r["share"] == "inf" and not r["experiment"]}
    found = []
    for row in needs.values():
        if not is_cut(row["need_bytes"], TOTAL):
            continue
        settings = ",".join(filter(None, [
            row["settings"], "per_process_memory_fraction:"
            f"{row['need_bytes'] / TOTAL!r}"]))
        command = [FRAGSIM, "replay", "-q", files[row["trace"]], "--device",
                   str(row["device"]), "--total", str(TOTAL), "--json", "-"]
        for experiment in ("", "pr179444"):
            command += ["-p", policy(settings, experiment, CUTS)]
        done = subprocess.run(command, check=True, capture_output=True,
                              text=True)
        found.append((row["trace"], row["settings"] or "default",
                      row["need_bytes"],
                      *(r["num_ooms"] for r in
                        json.loads(done.stdout)["results"])))
    return found, len(needs)


def shares_cut():
    """The shares of all multiples of 2 MiB that are cut, in words."""
    words = []
    for name, total in TOTALS.items():
        sizes = range(2 * MIB, total, 2 * MIB)
        share = sum(is_cut(size, total) for size in sizes) / len(sizes)
        words.append(f"{share:.1%} on {name}")
    return ", ".join(words[:-1]) + " and " + words[-1]


HEAD = """# Four pull requests to PyTorch, on recorded jobs

{files} recordings with {devices} devices, replayed with the rules of PyTorch 2.15 by
`paper/tables/open_prs_table.py` into `paper/data/open_prs.csv`. The setting `experiment` of the
policy `torch` adds the change of a pull request to the rules of a release. What of each
was read, and what was not clear, is stated in `policies/torch/torch_conf.h`.

The *need* is the least bound from which on nothing fails, divided here by the lower bound
(the peak of live requests). A *device* refuses because it is full; a *limit* is that of the
process (`set_per_process_memory_fraction`). The rows about needs are about the devices whose
need changes: median, geometric mean, worst and best. Calls, retries and seconds are sums
over the devices on which nothing fails, without the change and with it; the seconds are
modelled times of the driver calls. Deaths are the devices with a failed request at such a
multiple of the peak of requested bytes: all without the change, those that it avoids, and
those that it adds.
"""
AGAIN = """## 191302: search the pool again after the release

{table}

The change concerns only frees that wait for the device (`record_stream`), which {devices} of
the {all} recorded devices have: {names}.

For its author: by default and with expandable segments, it moves the need of {moved} of these
{devices} devices ({low} to {high}) and the driver calls without a bound by {calls}; below the
needs it avoids {avoided} and adds {added} of {died} deaths, and {fail} requests fail instead of
{failed}.
"""
OVERSIZE = """## 193400: the rules of max_split_size off in expandable segments

{table}

The program of the pull request: MiB reserved after the cycle, under the same settings.

| cycle | {cycles} |
|---|{dashes}
| without | {without} |
| with | {with_it} |

The row without the change equals that of the pull request.

For its author: on {devices} recorded devices it moves the driver calls without a bound by
{calls}, and the need of {moved} devices by {low} (`{where}`) to {high} (`{there}`), {middle} in the
median; it avoids {avoided} and adds {added} of {died} deaths, and {fail} requests fail instead of
{failed}.
"""
RECLAIM = """## 186232: reclaim an idle segment of another stream

{table}

The change concerns only programs that allocate on several streams, and no blocks of
expandable segments, which stay with their stream. {devices} of the {all} recorded devices have
several streams: {names}.
The pull request is closed, and in no release up to 2.15. A free segment counts as idle here,
so the calls are the most that it can save.

For its author: it moves the driver calls without a bound by {calls}, and the need of {moved}
devices by {low} (`{where}`) to {high} (`{there}`); it avoids {avoided} and adds {added} of {died}
deaths, and {fail} requests fail instead of {failed}.
"""
ROUNDED = """## 179444: the memory fraction rounded

PyTorch has this change since 2.13: on the stand-in driver with 48000 MiB, 2.12.1 refuses a
request of 54 MiB under the fraction 54 / 48000, and 2.13.0 serves it. Before, the limit of a
fraction that is computed as bytes / total can be one byte too small: that is so for
{shares}
of all multiples of 2 MiB. Each need above as a limit of the process, given as such a
fraction of the memory of an H200 to the rules of 2.12; those that are cut:

| recording | settings | need, bytes | failed requests without | with |
|---|---|---:|---:|---:|
{lines}

For its author: {cut} of {of} needs are cut, and the job then fails {without} times without the
change and {with_it} times with it; for all others the two limits are equal.
"""


def page(rows, paths, cut, cut_of):
    devices = {(r["trace"], r["device"]) for r in rows}
    cycles = reproduce()
    parts = [HEAD.format(files=len(paths), devices=len(devices))]
    for text, tried in ((AGAIN, "pr191302"), (OVERSIZE, "pr193400"),
                        (RECLAIM, "pr186232")):
        parts.append(text.format(
            table=table(rows, tried), all=len(devices), **facts(rows, tried),
            dashes="---:|" * len(cycles),
            **{name: " | ".join(str(c[k]) for c in cycles) for k, name in
               enumerate(("cycles", "without", "with_it"))}))
    parts.append(ROUNDED.format(
        shares=shares_cut(), cut=len(cut), of=cut_of, lines="\n".join(
            f"| {t} | `{s}` | {n} | {o} | {w} |" for t, s, n, o, w in cut),
        without=sum(bool(row[3]) for row in cut),
        with_it=sum(bool(row[4]) for row in cut)))
    return "\n".join(parts)


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    paths = recordings()
    some = concerned(paths) if paths else {}
    if not paths:
        print("open_prs_table: there are no recordings in", SHARED)
        return 77
    rows = sum((sweep(some[tried], tried, bound, jobs) for tried in TRIED
                for bound in BOUNDS), [])
    rows.sort(key=lambda r: (r["tried"], r["trace"], r["device"],
                             r["settings"], r["experiment"], r["bound"],
                             SHARES.index(r["share"])))
    text = page(rows, paths, *fractions(rows, paths))
    base = {key(r): r for r in rows if not r["experiment"]}
    write_csv(os.path.join(DATA, "open_prs.csv"),
              replayed(FRAGSIM, "paper/tables/open_prs_table.py",
                       f"{len(paths)} recordings of PyTorch on an H200 and an "
                       "H100; a row with an experiment only if its numbers "
                       "differ"), COLUMNS,
              [r for r in rows if differ(base[key(r)], r)
               or base[key(r)] is r])
    with open(os.path.join(PAGES, "open_prs.md"), "w",
              encoding="utf-8") as out:
        out.write(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
