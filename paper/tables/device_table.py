#!/usr/bin/env python3
"""device_table.py [FILE [DATA]]: makes a page of the results of paper/gpu/device.sh.

Reads paper/data/device_*.csv, or those of the folder DATA; the first line of
each file states where and how it was made. The results of a further device are
in device_contents_NAME.csv and device_times_NAME.csv (device.sh writes them
without _NAME), and real/data/nvidia-NAME-costs.csv has its costs. Writes
paper/pages/device.md, or FILE.
"""
import csv
import glob
import os
import statistics
import sys

from places import DATA, PAGES, ROOT


POOL = ("The rows of `cuda_async`, here and below, were measured with the rules that it "
        "had then: the device was synchronized after every free, as with today's "
        "`cuda_async:sync=1`, and some holes were chosen otherwise. Both sides of a "
        "row ran the same rule, so the rows compare devices, not rules; today's "
        "default reserves other amounts (`policies.md`, `allocators.md`). So do "
        "`expandable`, `remap`, `plan` and `plan_online`, which were rewritten since.")


def further(kind):
    """The names of the further devices with results of that kind."""
    start = len(f"device_{kind}_")
    return sorted(os.path.basename(path)[start:-len(".csv")] for path in
                  glob.glob(os.path.join(DATA, f"device_{kind}_*.csv")))


def rows(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        about = file.readline().strip("# \n")
        return about, list(csv.DictReader(file))


def limits(lines):
    """Runs at limits: those with contents checked, and those of the other
    recordings."""
    lines += ["## The same numbers", "",
              "Every policy runs with 1.02 and 0.9 times the memory that each recording "
              "requests. A run is `the same` if each of its counts equals the count "
              "of the simulated run (peak reserved, OOMs and the event of the first "
              "one, calls, segments).", "",
              "| recordings | policies | runs | the same | bytes left on the device | "
              "contents | made by |", "|---|---:|---:|---:|---:|---|---|"]
    lines[-3:-3] = [POOL, ""]
    differ = []
    for name, checked in (("device_contents.csv", "checked: no byte wrong"),
                          ("device_limits.csv", "not checked"),
                          *((f"device_contents_{other}.csv",
                             "checked: no byte wrong")
                            for other in further("contents"))):
        about, found = rows(name)
        traces = list(dict.fromkeys(r["trace"] for r in found))
        lines.append(
            f"| {', '.join(traces)} | {len({r['policy'] for r in found})} | "
            f"{len(found)} | **{sum(r['same'] == '1' for r in found)}** | "
            f"{sum(int(r['leaked_bytes']) for r in found)} | {checked} | "
            f"{about} |")
        differ += [f"- `{r['policy']}` on {r['trace']} at {r['capacity_bytes']}: "
                   f"{r['difference']}" for r in found if r["same"] != "1"]
    lines += ["", *differ]
    lines += [""] if differ else []


def near(ratios):
    return f"{sum(0.8 <= x <= 1.2 for x in ratios)} of {len(ratios)}"


def shares(found, pace=True):
    """Modelled and measured seconds of each recording and of each policy, at the
    pace of the machine."""
    sums = {}
    for r in found:
        paced = float(r["modelled_seconds"]) * float(r["pace"] if pace else 1)
        for key in ("trace", r["trace"]), ("policy", r["policy"]):
            one = sums.setdefault(key, [0, 0, []])
            one[0] += paced
            one[1] += float(r["measured_seconds"])
            one[2].append(float(r["paced_ratio"]))
    return sums


def share_rows(kind, sums):
    for (what, name), (modelled, measured, ratios) in sums.items():
        if what == kind:
            name = f"`{name}`" if kind == "policy" else name
            yield (f"| {name} | {modelled / measured:.2f} | {min(ratios):.2f} "
                   f"to {max(ratios):.2f} | {near(ratios)} |")


def times(lines):
    about, found = rows("device_times.csv")
    sums = shares(found)
    together = [modelled / measured for (what, _), (modelled, measured, _)
                in sums.items() if what == "trace"]
    same = sum(r["same"] == "1" for r in found)
    paces = sorted(float(r["pace"]) for r in found)
    lines += [
        "## Modelled over measured seconds", "",
        f"{about}.", "",
        f"The table compares the time of the driver's calls of {len(found)} runs "
        f"({len({r['policy'] for r in found})} policies, "
        f"{len({r['trace'] for r in found})} recordings, no limit). It includes "
        "the release of all memory at the end; each run is the faster of two. "
        f"In {same} runs every count equals that of the simulated run. The "
        "machine is shared: a fixed series of calls, timed before and after "
        f"each run, took {paces[0]:.2f} to {paces[-1]:.2f} times (median "
        f"{statistics.median(paces):.2f}) the modelled time. The ratios here "
        "are corrected by this pace. The modelled time is within 20 % for "
        f"**{near(together)} recordings**, all policies together, and for "
        f"{near([float(r['paced_ratio']) for r in found])} single runs "
        f"({near([float(r['modelled_ratio']) for r in found])} without the "
        "correction).", "",
        "| recording | all policies | of single runs | within 20 % |",
        "|---|---:|---:|---:|", *share_rows("trace", sums), "",
        "| policy | all recordings | of single runs | within 20 % |",
        "|---|---:|---:|---:|", *share_rows("policy", sums), ""]
    lines += ["- `" + r["policy"] + f"` on {r['trace']}: "
              f"{float(r['paced_ratio']):.2f} at pace "
              f"{float(r['pace']):.2f}, {float(r['modelled_ratio']):.2f} "
              "without the correction" for r in found
              if not 0.8 <= float(r["paced_ratio"]) <= 1.2]
    lines += [""] if lines[-1] else []
    again(lines)
    other_devices(lines)


def other_devices(lines):
    """The modelled time on further devices, each by its own costs."""
    names = further("times")
    if not names:
        return
    lines += ["### On other devices", "",
              "The recordings without a limit, as above. The costs of the calls "
              "are those that `fragsim compare --calibrate` measured on that device.", "",
              "| device | recordings | runs | the same | all policies of a "
              "recording, at pace | single runs within 20 % | without the "
              "correction | pace | made by |",
              "|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for name in names:
        about, found = rows(f"device_times_{name}.csv")
        together = [m / s for (what, _), (m, s, _) in shares(found).items()
                    if what == "trace"]
        paces = sorted(float(r["pace"]) for r in found)
        lines.append(
            f"| {about.removeprefix('device ').partition(',')[0]} | "
            f"{len(together)} | {len(found)} | "
            f"{sum(r['same'] == '1' for r in found)} | "
            f"{min(together):.2f} to {max(together):.2f} | "
            f"{near([float(r['paced_ratio']) for r in found])} | "
            f"{near([float(r['modelled_ratio']) for r in found])} | "
            f"{paces[0]:.2f} to {paces[-1]:.2f} | {about} |")
    lines += [""]
    compare_costs(lines, names)


def costs_of(name):
    path = os.path.join(ROOT, "real", "data", f"nvidia-{name}-costs.csv")
    with open(path, encoding="utf-8") as file:
        file.readline()
        return {r["call"]: (float(r["fixed_ns"]), float(r["ns_per_mib"]))
                for r in csv.DictReader(file)}


def compare_costs(lines, names):
    """The costs of each call beside those of the H200."""
    every = ["h200", *names]
    known = {name: costs_of(name) for name in every}
    lines += ["The cost of a call, us, and us for each MiB:", "",
              "| call | " + " | ".join(n.upper() for n in every) + " |",
              "|---|" + "---:|" * len(every)]
    for call in known["h200"]:
        lines.append(f"| {call} | " + " | ".join(
            f"{known[n][call][0] / 1e3:.2f} + {known[n][call][1] / 1e3:.4f}"
            for n in every) + " |")
    lines += [""]


def again(lines):
    """The runs at limits have seconds too: another series, each run once."""
    about, found = rows("device_limits.csv")
    paced, raw = ([m / s for (what, _), (m, s, _) in shares(found, pace).items()
                   if what == "trace"] for pace in (True, False))
    lines += [f"The runs at limits above, each made once ({about}), within 20 %: "
              f"{near(paced)} recordings, {min(paced):.2f} to {max(paced):.2f}, and "
              f"{near([float(r['paced_ratio']) for r in found])} single runs; without "
              f"the correction {near(raw)}, {min(raw):.2f} to {max(raw):.2f}.", ""]


def cell(values, digits=0):
    """Their median and range."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


class Allocators:
    """Rows of paper/gpu/allocators.py."""

    def __init__(self):
        self.about, found = rows("device_pytorch.csv")
        self.traces = list(dict.fromkeys(r["trace"] for r in found))
        self.peak = {}
        self.ns = {}
        for r in found:
            key = r["trace"], r["allocator"]
            self.peak.setdefault(key, set()).add(r["peak_reserved_bytes"])
            self.ns.setdefault(key, {})[r["round"]] = float(r["ns_per_event"])

    def times(self, trace, allocator):
        return cell(list(self.ns.get((trace, allocator), {}).values()))

    def peaks(self, trace, allocator):
        return ", ".join(f"{int(p):,}" for p in self.peak[trace, allocator])

    def ratio(self, trace, one, other, digits):
        """The ratios of the two, round by round."""
        first = self.ns.get((trace, one), {})
        second = self.ns.get((trace, other), {})
        return cell([first[k] / second[k] for k in first if k in second],
                    digits)


def pytorch(lines, found):
    lines += ["## Compared with PyTorch's own allocator", "", f"{found.about}.", "",
              "A time is the fastest of three passes through the events in one "
              "process. The table shows the median of the rounds and their "
              "range; ratios are computed within a round.", "",
              "| recording | settings | peak reserved, PyTorch | ours | "
              "ns an event, PyTorch | ours | ours / PyTorch |",
              "|---|---|---:|---:|---:|---:|---:|"]
    for trace, name in found.ns:
        own = name.replace("PyTorch", "torch")
        if own == name or (trace, own) not in found.ns:
            continue
        lines.append(f"| {trace} | {name.partition(':')[2] or 'default'} | "
                     f"{found.peaks(trace, name)} | {found.peaks(trace, own)} | "
                     f"{found.times(trace, name)} | {found.times(trace, own)} | "
                     f"{found.ratio(trace, own, name, 2)} |")
    lines.append("")


def direct(lines, found):
    lines += ["## The cost without a cache", "",
              "Each request is a device allocation: `direct`, and PyTorch under "
              "PYTORCH_NO_CUDA_MEMORY_CACHING=1. The table shows ns per event, "
              "and the ratio to the same allocator with its cache.", "",
              "| recording | PyTorch without cache | / with | `direct` | "
              "/ `torch` | `direct` / PyTorch without cache |",
              "|---|---:|---:|---:|---:|---:|"]
    bare = "PyTorch without cache"
    for t in found.traces:
        if (t, "direct") in found.ns:
            lines.append(f"| {t} | {found.times(t, bare)} | "
                         f"{found.ratio(t, bare, 'PyTorch', 0)} | "
                         f"{found.times(t, 'direct')} | "
                         f"{found.ratio(t, 'direct', 'torch', 0)} | "
                         f"{found.ratio(t, 'direct', bare, 2)} |")
    lines += ["", "A claim without a source is that caching has \"up to 40 % less "
              "allocation overhead than naive cudaMalloc\". The measured "
              "difference is a factor, not a percentage.", ""]


def end(lines):
    about, found = rows("device_end.csv")
    lines += ["## The true end of memory", "", f"{about}.", "",
              "Without a limit, the simulated device serves all requests. The real "
              "device refuses a request when its memory is used up. It has less "
              "memory than it reports (150,109,880,320 B), since the context "
              "holds some of it.", "",
              "| policy | peak reserved | first OOM |", "|---|---:|---:|"]
    for r in found:
        lines.append(f"| `{r['policy']}` | "
                     f"{int(r['real_peak_reserved_bytes']):,} | "
                     f"event {r['real_first_oom_event']} |")
    lines.append("")


def main():
    global DATA
    if len(sys.argv) > 2:
        DATA = sys.argv[2]
    lines = ["# On the device", "",
             "Made by `paper/tables/device_table.py` from `paper/data/device_*.csv`; "
             "`paper/gpu/device.sh` and `paper/gpu/allocators.py` measure the data on a "
             "machine with the GPU, unattended.", ""]
    limits(lines)
    times(lines)
    allocators = Allocators()
    pytorch(lines, allocators)
    direct(lines, allocators)
    end(lines)
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(PAGES, "device.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
