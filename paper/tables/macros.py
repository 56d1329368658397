#!/usr/bin/env python3
"""macros.py OUT_FOLDER [--list]: computes every number of the paper from data/ and
from constants in the source, and writes OUT_FOLDER/numbers.tex (a macro for each
number) and the .tsv files that figures/*.gp draw.

A number remembers the file it comes from; --list prints name, value and file. A
missing file or column, and a sentence of the text that the data contradict (see
Numbers.says), stop the script.
"""
import json
import math
import os
import re
import statistics
import sys

import dead_table
import in_production_page
import inside_page
import related_table
from data_header import read_csv
from lockstep import median_interval, total_interval
from places import DATA, PAPER, ROOT
from policy_table import PARAMS

MIB, GIB = 1 << 20, 1 << 30
EXP = "torch:expandable_segments:True"


class Row(dict):
    """A row that names the column that it lacks."""

    def __init__(self, values, name):
        super().__init__(values)
        self.name = name

    def __missing__(self, column):
        raise SystemExit(f"macros: data/{self.name} has no column {column}")

    def number(self, column):
        text = self[column]
        try:
            return float(text) if "." in text or "e" in text else int(text)
        except ValueError:
            raise SystemExit(f"macros: data/{self.name}, {column}: expected a "
                             f"number, found {text!r}") from None


class Numbers:
    """The macros: name -> (text, file)."""

    def __init__(self, folder):
        self.folder, self.held, self.file, self.head = folder, {}, "", ""

    def table(self, name):
        """The rows of a CSV file, which is the source of what follows."""
        path = os.path.join(DATA, name)
        if not os.path.exists(path):
            raise SystemExit(f"macros: there is no file data/{name}")
        self.head, rows = read_csv(path)
        self.file = f"data/{name}"
        return [Row(r, name) for r in rows]

    def lines(self, name):
        """The rows of a file of JSON lines, likewise."""
        with open(os.path.join(DATA, name), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.file = f"data/{name}"
        return rows

    def source(self, name):
        """The text of a source file, likewise."""
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = file.read()
        self.file = name
        return text

    def put(self, name, text):
        if name in self.held:
            raise SystemExit(f"macros: {name} is made twice")
        self.held[name] = (str(text), self.file)

    def of(self, name, count, of):
        self.put(name, whole(count))
        self.put(name + ".of", whole(of))

    def says(self, sentence, holds):
        """A sentence of the text that is no number but rests on the data."""
        if not holds:
            raise SystemExit(f"macros: {self.file} contradicts the text: "
                             f"{sentence}")

    def figure(self, name, rows):
        path = os.path.join(self.folder, name + ".tsv")
        with open(path, "w", encoding="utf-8") as out:
            for row in rows:
                out.write("\t".join(map(str, row)) + "\n")

    def write(self):
        path = os.path.join(self.folder, "numbers.tex")
        with open(path, "w", encoding="utf-8") as out:
            for name, (text, file) in sorted(self.held.items()):
                out.write(f"\\fragnumber{{{name}}}{{{text}}}% {file}\n")


# ---- forms of a number ----

def whole(value):
    return f"{int(value):,}".replace(",", "{,}")


def size(count):
    if count >= GIB:
        return f"{count / GIB:.2f}~GiB"
    return f"{count / MIB:.0f}~MiB" if count >= MIB else f"{count}~B"


def ratio(value, digits=2):
    return f"{value:.{digits}f}"


def percent(value, digits=0):
    """A share as percent; a negative one with a minus of TeX."""
    text = f"{100 * value:.{digits}f}"
    return text.replace("-", "$-$") + r"\,\%"


def signed(value, digits=2):
    text = f"{100 * value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", "$-$").replace("+", "$+$")


def interval(found, digits=1):
    """A ratio and its interval, as percent above one."""
    middle, ends = found
    text = signed(middle - 1, digits) + r"\,\%"
    return text if not ends else \
        f"{text} ({signed(ends[0] - 1, digits)} to {signed(ends[1] - 1, digits)})"


def name(text):
    return rf"\p{{{text}}}"


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def by(rows, *columns):
    found = {}
    for r in rows:
        key = tuple(r[c] for c in columns)
        found.setdefault(key if len(columns) > 1 else key[0], []).append(r)
    return found


# ---- the method and the machines ----

def about(n):
    arena = n.source("sim/arena/arena_driver.c")
    n.put("rule.chunk", re.search(r"#define CHUNK +\((\d+) \* FRAG_MIB\)",
                                  arena)[1] + "~MiB")
    n.put("rule.unit", re.search(r"#define UNIT +\((\d+) \* FRAG_MIB\)",
                                 arena)[1] + "~MiB")
    n.put("about.granule", n.held["rule.unit"][0])
    method = n.source("paper/tables/lockstep.py")
    share = float(re.search(r"def median_interval\(values, confidence=([\d.]+)",
                            method)[1])
    n.put("method.confidence", f"{100 * share:.0f}")
    n.source("paper/tables/inside_page.py")
    n.put("method.aim", percent(inside_page.AIM - 1))
    n.put("about.page", re.search(
        r"#define TORCH_LARGE_SEGMENT \((\d+) \* FRAG_MIB\)",
        n.source("traces/torch_sizes.h"))[1] + "~MiB")
    rows = n.table("tune_real.csv")
    torch, = {r["torch"].split("+")[0] for r in rows}
    n.put("about.torch", torch.rsplit(".", 1)[0])
    n.put("about.driver", rows[0]["driver"])
    n.put("about.h200", rows[0]["device"].split()[-1])
    n.table("run_ahead.csv")
    n.put("about.h100", re.search(r"NVIDIA (\w+)", n.head)[1])


# ---- truth ----

def truth(n):
    rows = {r["key"]: r for r in n.table("truth.csv")}

    def both(key):
        return rows[key].number("count"), rows[key].number("of")

    names = {"recordings": "recordings", "predicted_peak": "predicted_peak",
             "foreign": "foreign", "cuts": "cuts", "late_expandable": "late_expandable",
             "late_ordinary": "late_ordinary", "late_by_age": "late_by_age",
             "what_if": "what_if_peak_reserved",
             "what_if_first": "what_if_first_oom_index", "hostile": "hostile"}
    for ours, key in names.items():
        n.of(f"truth.{ours}", *both(key))
    for ours, key in (("predicted", "predicted"),
                      ("what_if_segments", "what_if_segments_allocated"),
                      ("what_if_retries", "what_if_retries"),
                      ("events", "events")):
        n.put(f"truth.{ours}", whole(both(key)[0]))
    variants(n, both)
    for key in ("recordings", "foreign", "what_if_peak_reserved",
                "what_if_first_oom_index", "what_if_segments_allocated",
                "what_if_retries", "late_expandable"):
        n.says(f"all of {key} are equal", len(set(both(key))) == 1)

    def total(*keys):
        return [sum(both(k)[i] for k in keys) for i in (0, 1)]

    rmm = total("rmm_pool", "rmm_pool_max", "rmm_pool_initial", "rmm_arena",
                "rmm_binning")
    cupy = total("cupy", "cupy_limit")
    pool = total("async", "async_keep", "async_keep_sync")
    n.of("alloc.rmm", *rmm)
    n.put("alloc.rmm.missed", whole(rmm[1] - rmm[0]))
    n.says("one run of RMM differs", rmm[1] - rmm[0] == 1)
    n.of("alloc.jax", *both("jax"))
    n.of("alloc.async", *pool)
    n.of("alloc.cupy", *cupy)
    spread = both("spread_cupy")[0] + both("spread_cupy_limit")[0]
    n.put("alloc.cupy.spread", whole(spread))
    n.says("all other runs of CuPy lie within the spread",
           cupy[0] + spread == cupy[1])
    for key in ("work8", "work64"):
        n.put(f"ahead.{key}", whole(both(f"ahead_{key}")[0]))
    n.put("ahead.of", whole(both("ahead_sync")[1]))
    return rows, both, {"rmm": rmm, "cupy": cupy, "pool": pool}


def variants(n, both):
    """Recorded runs that are predicted from the default run of their program."""
    n.of("var.peaks", *both("variant_peaks_limit"))
    n.of("var.deaths", *both("variant_deaths_limit"))
    n.put("var.peaks.device", whole(both("variant_peaks_capacity")[0]))
    n.put("var.deaths.device", whole(both("variant_deaths_capacity")[0]))
    n.put("var.wrong", whole(both("variant_addresses")[1]))
    reasons = [both(f"variant_{why}")[0]
               for why in ("caught", "requests", "addresses")]
    for why, count in zip(("caught", "requests", "addresses"), reasons):
        n.put(f"var.{why}", whole(count))
    n.says("each wrong prediction has a reason",
           sum(reasons) == both("variant_addresses")[1])
    n.put("truth.what_if_device", whole(both("what_if_device")[0]))


def table_truth(n, both, sums, device, real, explain):
    """The rows of the table of truth, from several files."""
    def line(what, pair):
        return rf"{what} & \mbox{{{whole(pair[0])} of {whole(pair[1])}}} \\"

    text = "\n".join([
        line(r"PyTorch, recordings", both("recordings")),
        line(r"\quad segment addresses predicted", both("predicted")),
        line("PyTorch, public snapshots of others", both("foreign")),
        line("PyTorch, recordings cut at a segment event", both("cuts")),
        r"\midrule",
        line("PyTorch, what-if runs: peak, first OOM, segments, retries",
             both("what_if_peak_reserved")),
        line(r"\quad if no address is used twice: peak", both("hostile")),
        line("PyTorch, runs under a limit, predicted from the default: peak",
             both("variant_peaks_limit")),
        line("PyTorch, settings found by search: peak", real),
        line("PyTorch, changes proposed for dead jobs: served or not", explain),
        r"\midrule",
        line("RMM: peak, segments, first refusal", sums["rmm"]),
        line("JAX (BFC): peak, segments", both("jax")),
        line("CuPy: peak, segments; one seed", sums["cupy"]),
        line("driver's pool, idle device: peak", sums["pool"]),
        r"\midrule",
        line("policies on two kinds of GPU: each count", device)])
    n.file = "data/truth.csv"
    n.put("table.truth", text.removesuffix(r"\\"))
    n.held["table.truth"] = (text, n.file)


def device(n):
    runs = same = leaked = checked = 0
    policies, traces = set(), set()
    for file in ("device_contents.csv", "device_contents_h100.csv",
                 "device_limits.csv", "device_times.csv",
                 "device_times_h100.csv"):
        for r in n.table(file):
            runs += 1
            same += r["same"] == "1"
            leaked += r.number("leaked_bytes")
            checked += "contents" in file
            policies.add(r["policy"])
            traces.add(r["trace"])
    n.put("device.runs", whole(runs))
    n.put("device.same", whole(same))
    n.put("device.checked", whole(checked))
    n.put("device.policies", len({p.split(":")[0] for p in policies}))
    n.put("device.recordings", len(traces))
    n.says("each count is equal", same == runs)
    n.says("no run leaves memory", leaked == 0)
    limit = 0.2
    for key, file in (("time", "device_times.csv"),
                      ("time.h100", "device_times_h100.csv")):
        rows = n.table(file)
        near = [abs(r.number("paced_ratio") - 1) <= limit for r in rows]
        n.of(f"{key}.runs", sum(near), len(near))
        if key != "time":
            continue
        n.put("time.limit", percent(limit))
        sums = []
        for some in by(rows, "trace").values():
            modelled = sum(r.number("modelled_seconds") for r in some)
            measured = sum(r.number("measured_seconds") / r.number("pace")
                           for r in some)
            sums.append(abs(modelled / measured - 1) <= limit)
        n.of("time.recordings", sum(sums), len(sums))
        n.says("all recordings are near", all(sums))
    total = re.search(r"#define FRAG_H200_TOTAL \(\(frag_size\)(\d+)\)",
                      n.source("sim/arena/arena.h"))[1]
    ends = [r.number("real_peak_reserved_bytes")
            for r in n.table("device_end.csv")]
    n.put("end.missing", size(int(total) - min(ends)))
    return same, runs


def oracle(n):
    rows = n.table("settings.csv")
    n.put("oracle.ooms", whole(sum(r["first_oom_event"] != "" for r in rows)))
    free = by([r for r in rows if not r["process_limit_bytes"]], "settings")
    base = {r["trace"]: r.number("peak_reserved_bytes") for r in free["default"]}
    n.put("set.of", whole(len(base)))
    # The limit at which all settings ran.
    limits = by([r for r in rows if r["process_limit_bytes"]], "trace",
                "process_limit_bytes")
    full = [some for some in limits.values() if len(some) > 2]
    n.says("one limit of each program was run with all settings",
           len(full) == len(base))
    lines, found = [], {}
    for conf, some in free.items():
        ratios = [r.number("peak_reserved_bytes") / base[r["trace"]]
                  for r in some]
        lives = sum(r["first_oom_event"] == "" for group in full for r in group
                    if r["settings"] == conf)
        found[conf] = (sum(x > 1 for x in ratios), geometric(ratios),
                       max(ratios), lives)
    for conf, (worse, mean, most, lives) in sorted(
            found.items(), key=lambda item: item[1][1]):
        parts = re.split(r",(?![^[]*\])", conf)
        label = "default" if conf == "default" else ", ".join(
            "a rounding list" if "[" in part else name(part)
            for part in parts)
        lines.append(f"{label} & {worse} & {mean:.2f} & {most:.2f} & {lives} "
                     r"\\")
    n.put("table.settings", "\n".join(lines))
    for key, conf in (("split64", "max_split_size_mb:64"),
                      ("default", "default"),
                      ("exp", "expandable_segments:True")):
        n.put(f"set.{key}.limit", found[conf][3])
    worse, _, most, _ = found["max_split_size_mb:64"]
    n.put("set.split64.worse", worse)
    n.put("set.split64.most", ratio(most, 1))
    n.put("set.exp.worse", found["expandable_segments:True"][0])
    n.says("the small split size helps at the limit",
           found["max_split_size_mb:64"][3] > found["default"][3])


# ---- cost ----

KEYS = {"torch": "torch", EXP: "exp", "remap": "remap", "best_fit": "best_fit",
        "cupy": "cupy", "first_fit": "first_fit", "worst_fit": "worst_fit",
        "slab": "slab", "size_class": "size_class", "plan": "plan",
        "vma": "vma", "expandable": "expandable", "direct": "direct"}
KINDS = {  # of the figure of cost
    "plan": "future", "compact": "moves",
    **dict.fromkeys(("remap", "plan_online", "expandable", EXP, "stitch",
                     "paged", "cuda_async"), "maps")}
CALLED = {"torch": "torch (default)", EXP: "torch (expandable)"}
# Where the name of a policy stands: above or below its point, as a share of the
# overhead, and on the left.
LABELS = {"tlsf": 0.035, "best_fit": -0.03, "torch": -0.03, "cupy": 0.01,
          "buddy": 0.02, "rmm_pool": -0.03, "bfc": 0.02, "remap": -0.015,
          "plan_online": 0.025, "expandable": 0.01, "paged": 0.01,
          "compact": 0.01, "first_fit": -0.02, "vma": 0.025,
          EXP: -0.015}
LEFT = {"tlsf", "best_fit", "half_fit", "next_fit", "expandable", "compact",
        "worst_fit", EXP}
FITS = ("best_fit", "torch", "tlsf", "cupy")
OVER_SEGMENTS = ("first_fit", "next_fit", "worst_fit", "half_fit", "buddy",
                 "tlsf", "torch", "cupy", "bfc", "rmm_pool", "rmm_binning",
                 "slab", "size_class")


def policies(n):
    rows = n.table("policies.csv")
    calls = {p: sum(r.number("num_calls") for r in some)
             for p, some in by(n.table("device_times.csv"), "policy").items()}
    rows = n.table("policies.csv")
    traces = sorted({r["trace"] for r in rows})
    n.put("pol.recordings", len(traces))
    n.put("pol.count", len({r["policy"].split(":")[0] for r in rows}))
    facts = {}
    for policy, some in by(rows, "policy").items():
        free = {r["trace"]: r for r in some if r["capacity"] == "inf"}
        over = {t: r.number("peak_reserved_bytes") /
                r.number("lower_bound_bytes") for t, r in free.items()}
        facts[policy] = {
            "over": over, "mean": geometric(list(over.values())),
            "worst": max(over.values()),
            "mid": sum(r["num_ooms"] == "0" for r in some
                       if r["capacity"] == "midpoint"),
            "seconds": sum(r.number("modelled_device_seconds")
                           for r in free.values()),
            "calls": calls.get(policy)}
    means = {p: f["mean"] for p, f in facts.items()}
    for policy in ("torch", "remap", "best_fit", "cupy", "first_fit",
                   "worst_fit", "slab", "size_class", "plan", "vma",
                   "expandable", "direct", EXP):
        digits = 3 if means[policy] < 1.1 else 2
        n.put(f"pol.{KEYS[policy]}.mean", ratio(means[policy], digits))
    n.put("pol.expandable.torch.mean", ratio(means[EXP]))
    n.put("pol.torch.worst", ratio(facts["torch"]["worst"]))
    n.put("pol.torch.least", ratio(min(facts["torch"]["over"].values())))
    n.put("pol.exp.worst", ratio(facts[EXP]["worst"]))
    n.says("expandable segments are worst on multistream",
           max(facts[EXP]["over"], key=facts[EXP]["over"].get) == "multistream")
    n.put("pol.remap.worst.percent", percent(facts["remap"]["worst"] - 1, 1))
    n.put("pol.best_fit.loss", percent(means["best_fit"] - 1))
    n.put("pol.fits.spread",
          percent(max(means[p] for p in FITS) / min(means[p] for p in FITS) - 1))
    n.says("no other fit over segments is better than best fit",
           all(means[p] >= means["best_fit"] for p in OVER_SEGMENTS))
    n.put("pol.direct.calls.ratio",
          whole(round(calls["direct"] / calls["torch"])))
    n.says("remap reserves least", min(means, key=means.get) == "remap")
    loss = means["best_fit"] - 1
    n.put("split.segments", percent((means["best_fit"] - means["expandable"])
                                    / loss))
    n.put("split.pages", percent((means["expandable"] - means["remap"]) / loss))
    n.put("split.rest", percent((means["remap"] - 1) / loss, 1))
    lines, future = [], []
    for policy, f in sorted(facts.items(), key=lambda item: item[1]["mean"]):
        shown = "torch, expandable" if policy == EXP else policy
        count = "--" if f["calls"] is None else \
            ratio(f["calls"] / 1000, 1 if f["calls"] >= 1000 else 2)
        line = (f"{name(shown)} & {f['mean']:.3f} & {f['worst']:.2f} & "
                f"{f['mid']} & {f['seconds']:.3f} & {count} " r"\\")
        (future if policy in PARAMS else lines).append(line)
    n.put("table.policies", "\n".join(lines + [r"\midrule"] + future))
    n.figure("cost", [[CALLED.get(p, p), f["seconds"], f["mean"],
                       KINDS.get(p, "places"),
                       f["mean"] * (1 + LABELS.get(p, 0)), int(p in LEFT)]
                      for p, f in facts.items()])
    order = sorted(traces, key=lambda t: -facts["torch"]["over"][t])
    n.figure("peaks", [[t, *(facts[p]["over"][t] for p in ("torch", EXP,
                                                           "remap"))]
                       for t in order])


def table_programs(n):
    """One row for each program, from several files."""
    rows = [r for r in n.table("policies.csv") if r["capacity"] == "inf"]
    over = {(r["trace"], r["policy"]): r.number("peak_reserved_bytes") /
            r.number("lower_bound_bytes") for r in rows}
    bound = {r["trace"]: r.number("lower_bound_bytes") for r in rows
             if r["policy"] == "torch"}
    saving = {r["trace"]: r.number("saving_ratio") for r in
              n.table("tune.csv") if r["question"] == "no bound"}
    safe = {}
    for r in n.table("frontier.csv"):
        if r["survives"] == "1":
            safe[r["trace"]] = r.number("from_bytes")
    n.says("every program has a frontier", set(safe) == set(bound))
    n.file = "data/policies.csv, data/tune.csv, data/frontier.csv"
    shown = ("torch", EXP, "best_fit", "cuda_async", "remap")
    n.put("table.programs", "\n".join(
        " & ".join([name(t), f"{bound[t] / GIB:.2f}",
                    *(f"{over[t, p]:.2f}" for p in shown),
                    f"{safe[t] / bound[t]:.2f}", f"{100 * saving[t]:.0f}"])
        + r" \\" for t in sorted(bound, key=lambda t: -over[t, "torch"])))


SURVIVORS = ["remap", "remap:pack=full", "expandable", EXP, "direct", "torch",
             "best_fit", "cuda_async"]


def survival(n):
    rows = n.table("survival.csv")
    held = {(r["policy"], r["capacity"]): r.number("survives") for r in rows}
    of = rows[0].number("recordings")
    capacities = list(dict.fromkeys(r["capacity"] for r in rows))
    low, high = "1.02x", "1.1x"
    n.put("surv.of", of)
    n.put("surv.low", low[:-1])
    n.put("surv.high", high[:-1])
    for key, policy in (("torch", "torch"), ("exp", EXP), ("remap", "remap"),
                        ("async", "cuda_async")):
        n.put(f"surv.{key}.low", held[policy, low])
    n.put("surv.torch.high", held["torch", high])
    n.put("surv.exp.high", held[EXP, high])
    n.put("surv.torch.high.fail", of - held["torch", high])
    names = [p.replace(EXP, "torch, expandable") for p in SURVIVORS]
    n.figure("survival", [["capacity", *names]] + [
        [c[:-1], *(held[p, c] for p in SURVIVORS)] for c in capacities])
    return low


def frontier(n):
    rows = n.table("frontier.csv")
    n.put("front.of", len(by(rows, "trace")))
    bars, widest, distance, which = [], 0, 0, ""
    hurt = []
    for trace, spans in by(rows, "trace").items():
        alive = [i for i, r in enumerate(spans) if r["survives"] == "1"]
        after = [r for r in spans[alive[0]:] if r["survives"] == "0"]
        if not after:
            continue
        hurt.append(trace)
        last = spans[alive[-1]].number("from_bytes")
        first = spans[alive[0]].number("from_bytes")
        distance = max(distance, last / first - 1)
        for r in after:
            width = r.number("to_bytes") - r.number("from_bytes")
            if width > widest:
                widest, which = width, trace
        for r in spans[max(0, alive[0] - 1):]:
            start = max(r.number("from_bytes"), first - (last - first) // 4)
            stop = r.number("to_bytes") if r["to_bytes"] else \
                last + (last - first) // 4
            bars.append([trace, len(hurt), start / last, stop / last,
                         r["survives"]])
    n.put("front.nonmonotone", len(hurt))
    n.put("front.widest", size(widest))
    n.put("front.widest.name", name(which))
    n.put("front.distance.percent", percent(distance, 1))
    n.figure("frontier", bars)


# ---- today ----

def tune(n):
    rows = n.table("tune.csv")
    found = by(rows, "question")
    free = found["no bound"]
    n.put("tune.of", len(free))
    n.put("tune.tried", whole(max(r.number("settings_tried") for r in rows)))
    n.put("tune.bound", percent(0.01))
    n.says("the bound is that of the question", "calls +1 %" in found)

    def saving(some):
        return 1 - geometric([1 - r.number("saving_ratio") for r in some])

    n.put("tune.free.mean", percent(saving(free), 1))
    n.put("tune.calls.mean", percent(saving(found["calls +1 %"]), 1))
    n.put("tune.novmm.mean", percent(saving(found["calls +1 %, no VMM"]), 1))
    each = {r["trace"]: r.number("saving_ratio") for r in free}
    n.put("tune.free.least", percent(min(each.values()), 1))
    n.put("tune.free.most", percent(max(each.values()), 1))

    def times(r, column):
        return r.number(column) / r.number("default_" + column)

    n.put("tune.free.dear", sum(times(r, "modelled_device_seconds") >= 2
                                for r in free))
    n.put("tune.calls.cheaper", sum(times(r, "modelled_device_seconds") < 1
                                    for r in found["calls +1 %"]))
    n.put("tune.calls.fewer", sum(times(r, "driver_calls") < 1
                                  for r in found["calls +1 %"]))
    plain = {r["trace"]: r.number("saving_ratio")
             for r in found["calls +1 %, no VMM"]}
    held = halves(n, max(each, key=each.get))
    n.figure("tune", [[t, 100 * each[t], 100 * plain[t], 100 * held[t]]
                      for t in sorted(each, key=lambda t: -each[t])])
    n.table("tune_search.csv")
    n.put("half.tried", whole(max(r.number("settings_tried")
                                  for r in n.table("tune_search.csv"))))
    real = n.table("tune_real.csv")
    equal = sum(r["predicted"] == r["real"] for r in real)
    n.put("real.of", len(real))
    n.put("real.equal", equal)
    return equal, len(real)


def halves(n, largest):
    """Second halves; returns the saving of each default recording there."""
    rows = n.table("tune_halves.csv")
    some = [r for r in rows if r["settings"] == "all settings"]
    plain = [r for r in rows if r["settings"] == "no VMM"]

    def ratio(r, kind):
        return r.number(kind + "_bytes") / r.number("default_bytes")

    def mean(rows, kind):
        return 1 - geometric([ratio(r, kind) for r in rows])

    n.put("half.of", len(some))
    for kind in "ladder", "switch", "search":
        n.put(f"half.{kind}", percent(mean(some, kind), 1))
    n.put("half.plain.ladder", percent(mean(plain, "ladder"), 1))
    n.put("half.plain.search", percent(mean(plain, "search"), 1))
    n.says("on steps it did not see, a search saves as much as one switch",
           abs(mean(some, "search") - mean(some, "switch")) < 0.002 and
           mean(some, "search") <= mean(some, "ladder"))
    n.says("nor than four sizes without it",
           mean(plain, "search") <= mean(plain, "ladder"))
    n.put("half.worse", sum(ratio(r, "ladder") > 1 for r in some))
    n.put("half.plain.worse", sum(ratio(r, "ladder") > 1 for r in plain))
    held = {r["trace"]: 1 - ratio(r, "ladder") for r in some
            if r["group"] == "default"}
    n.put("half.largest", percent(held[largest], 1))
    return held


def explain(n):
    rows = n.table("explain_real.csv")
    same = sum(r["served"] == r["served_by_pytorch"] for r in rows)
    n.put("explain.dev", len(by(rows, "recording")))
    n.put("explain.same", same)
    n.put("explain.of", len(rows))
    n.put("explain.differ", len(rows) - same)
    n.says("they differ in one direction",
           all(r["served"] == "1" for r in rows
               if r["served"] != r["served_by_pytorch"]))
    return same, len(rows)


def dead(n):
    n.table("dead.csv")
    n.table("dead_new.csv")
    new = dead_table.read(dead_table.NEW_TABLE)
    rows = dead_table.read(dead_table.TABLE) + new
    n.put("dead.pairs", len(rows))
    n.put("dead.level", dead_table.LEVEL)
    for key, some in (("", rows), (".new", new)):
        told = dead_table.told(some)
        n.of("dead.held" + key, sum(map(dead_table.holds, told)), len(told))
    exports = dead_table.exports(rows)
    n.of("dead.exports", len(exports) - len(dead_table.refuted(rows)),
         len(exports))
    fails = [r for r in rows if r["outcome"] == "fails"]
    n.of("dead.fails", sum(not r["survives"] for r in fails), len(fails))


def empty(n):
    found = by(n.table("empty_cache.csv"), "trace")
    n.put("empty.of", len(found))
    ratios, calls = {}, {}
    for some in found.values():
        period = {r["period"]: r for r in some}
        never = period["never"]
        for p, r in period.items():
            if p in ("never", "recorded") or r.number("calls") == 0:
                continue
            ratios.setdefault(p, []).append(r.number("peak_reserved_bytes") /
                                            never.number("peak_reserved_bytes"))
            calls[p] = calls.get(p, 0) + r.number("driver_calls") \
                - never.number("driver_calls")
    for key, p in (("one", "1"), ("ten", "10"), ("hundred", "100")):
        n.put(f"empty.{key}.mean", ratio(geometric(ratios[p]), 3))
    n.put("empty.lower", sum(x < 1 for x in ratios["1"]))
    n.put("empty.one.most", ratio(max(ratios["1"])))
    n.put("empty.one.calls", whole(calls["1"]))


def ahead(n):
    rows = n.table("run_ahead.csv")
    policies_of = by(n.table("pool_programs.csv"), "library")
    names = [c for c in policies_of["torch"][0] if c.startswith(("sync_",
                                                                "run_ahead_"))]
    programs = sum(policies_of.values(), [])
    within = sum(min(r.number(c) for c in names) <=
                 r.number("reserved_high_bytes") <=
                 max(r.number(c) for c in names) for r in programs)
    n.put("programs.of", len(programs))
    n.put("programs.within", within)
    n.file = "data/run_ahead.csv"
    held = {(r["kind"], r["trace"]): r for r in rows}
    used = {t: held["sync", t].number("reserved_high_bytes")
            for k, t in held if k == "sync"}
    wide = [held["keep", t].number("reserved_high_bytes") / used[t]
            for t in used]
    n.put("ahead.widest", ratio(max(wide)))
    for key in ("sync", "keep"):
        over = [held[key, t].number("reserved_high_bytes") /
                held[key, t].number("used_high_bytes") for t in used]
        n.put(f"ahead.{key}.mean", ratio(geometric(over)))


def story(n):
    """The job of the first page, from its row in explain.md."""
    text = n.source("paper/pages/explain.md")
    row = next(l for l in text.splitlines()
               if l.startswith("| llama_varlen__cap_tight |"))
    cells = [c.strip().replace(",", "{,}").replace(" ", "~")
             for c in row.strip("|").split("|")]
    for key, cell in zip(("request", "limit", "live", "cached", "hole"),
                         cells[1:6]):
        n.put(f"story.{key}", cell)
    request, _, _, cached, hole = (int(c.split("~")[0].replace("{,}", ""))
                                   for c in cells[1:6])
    n.says("the cache holds more than the request, the hole less",
           hole < request < cached)


def claims(n):
    """The numbers of the section on claims, which claims.py makes, if it is there."""
    path = os.path.join(PAPER, "text", "claims.tex")
    if not os.path.exists(path):
        return
    import claims as made
    with open(path, encoding="utf-8") as file:
        text = file.read()
    n.table("claims.csv")
    for key, value in made.macros():
        if f"{{{key}}}" in text:
            n.put(key, value)


def related(n):
    """The numbers of the section on related work, ours and published ones."""
    rows = n.table("related.csv")
    for r in rows:
        if r["macro"]:
            n.put(r["macro"], r["text"])
    for key, text in [*related_table.of_instances(
            [r for r in rows if r["instance"]]), *related_table.of_recordings()]:
        n.says(f"{key} is {text}", n.held[key][0] == str(text))


# ---- inside ----

def pressure(n, low):
    rows = n.table("pressure.csv")
    labels = {"torch": "torch", EXP: "exp", "remap": "remap",
              "remap:pack=full": "full"}
    found = by(rows, "policy", "capacity")
    capacities = list(dict.fromkeys(r["capacity"] for r in rows))

    def seconds(policy, capacity):
        return sum(r.number("modelled_device_seconds")
                   for r in found[policy, capacity])

    def runs(policy, capacity):
        return sum(r["num_ooms"] == "0" for r in found[policy, capacity])

    of = len(by(rows, "trace"))
    n.put("press.of", of)
    for policy in ("torch", "remap", "remap:pack=full"):
        n.put(f"press.{labels[policy]}.inf", ratio(seconds(policy, "inf"), 3))
    n.put("press.full.low.run", runs("remap:pack=full", low))
    n.says("pack=full costs least without a limit",
           seconds("remap:pack=full", "inf") < seconds("torch", "inf"))
    n.says("in between it is dearer than the default",
           seconds("remap:pack=full", "1.5x") > seconds("torch", "1.5x"))
    n.figure("pressure", [["capacity", *labels.values()]] + [
        [c.replace("inf", "no limit").replace("x", ""),
         *(f"{seconds(p, c)}\t{int(runs(p, c) == of)}" for p in labels)]
        for c in capacities])


# The sides of the figure of step times: those of inside_torch.jsonl, which run
# through PyTorch's pluggable allocator, then those of in_production.jsonl.
LONG = {"again": "default again (long series)",
        "expandable": "expandable segments", "remap": "remap",
        "page8": "remap:page=8MiB"}
WHOLE = {"again": "default again", "full": "remap:pack=full",
         "full110": "pack=full, 1.1 times the peak",
         "full102": "pack=full, 1.02 times the peak"}
OURS = ("full", "full110", "full102")


def sides_of(rows, workload, sides):
    """{side: (reserved over allocated after the same steps, median and interval)}"""
    rounds = inside_page.rounds_of(rows, workload)
    peaks = inside_page.peaks_of(rows, workload)
    for side in ("default", *sides):
        if side not in peaks:
            continue
        made = peaks[side][inside_page.step_of_all(peaks)]
        pairs = inside_page.pairs_of(rounds, side)
        yield side, (max(p / q for p, q in made),
                     median_interval([a / b for a, b in pairs])
                     if pairs and side != "default" else None)


def production(n, rows, long_rows):
    dates = sorted({r["date"] for r in rows if r["kind"] == "about"})
    n.put("about.production", "measured on " + " and ".join(dates))
    blocks, times, over = [], {}, {}
    verdicts = {"yes": 0, "no": 0, "open": 0}
    count = 0
    for workload in inside_page.workloads(rows, "round"):
        for side, (most, found) in sides_of(long_rows, workload, LONG):
            if found:
                blocks.append((workload, LONG[side], found, most))
        for side, (most, found) in sides_of(rows, workload, WHOLE):
            over.setdefault(side, []).append(most)
            if not found:
                continue
            times.setdefault(side, []).append(found)
            blocks.append((workload, WHOLE[side], found, most))
            if side in OURS:
                verdicts[inside_page.verdict(found[1])] += 1
        count += len(inside_page.pairs_of(
            inside_page.rounds_of(rows, workload), "again"))
    for side in ("default", "again", "full", "full110"):
        n.says(f"{side} ran in each program",
               len(over.get(side, [])) == len(over["default"]))
    refused(n, rows, over)
    n.put("prod.workloads", len(over["default"]))
    n.put("prod.rounds", whole(count))
    for side in ("default", "full", "full102"):
        n.put(f"prod.{side}.least", ratio(min(over[side]), 3))
        n.put(f"prod.{side}.most", ratio(max(over[side]), 3))
    for side in ("full", "full102"):
        middles = [m for m, _ in times[side]]
        n.put(f"prod.{side}.time.least", signed(min(middles) - 1, 1) + r"\,\%")
        n.put(f"prod.{side}.time.most", signed(max(middles) - 1, 1) + r"\,\%")
    n.put("prod.rows", sum(verdicts.values()))
    n.put("prod.within", verdicts["yes"])
    n.put("prod.beyond", verdicts["no"])
    n.put("prod.open", verdicts["open"])
    n.put("prod.resolution", percent(max(
        abs(e - 1) for _, ends in times["again"] for e in ends or (2,)), 1))
    blocks += ranks(n, rows)
    order = list(dict.fromkeys(block[0] for block in blocks))
    n.figure("inside", [
        [w, label, *(100 * (x - 1) for x in (m, *(e or (m, m)))), f"{o:.3f}",
         row + 0.7 * order.index(w)]
        for row, (w, label, (m, e), o) in enumerate(blocks)])
    programs(n, rows)


def refused(n, rows, over):
    """The one program in which a request was refused at the least capacity."""
    found = [r for r in rows if r["kind"] == "failed" and r["what"] == "turns"]
    n.says("one request was refused, at the least capacity", len(found) == 1 and
           found[0]["side"] == "full102" and "OutOfMemory" in found[0]["words"])
    [r] = found
    rounds = inside_page.rounds_of(rows, r["workload"])
    n.put("prod.full102.ran", len(over["full102"]))
    n.put("prod.refused", r"\p{" + r["workload"] + "}")
    n.put("prod.refused.steps", sum("full102" in a for a in rounds))
    n.put("prod.refused.of", len(rounds))


def ranks(n, rows):
    blocks, over, times, steps, firsts = [], {}, {}, {}, {}
    counts = []
    for mode in in_production_page.MODES:
        rounds = [r["sides"] for r in rows
                  if r["kind"] == "ranks" and r["mode"] == mode]
        counts.append(len(rounds))
        for r in rows:
            if r["kind"] == "ranks end" and r["mode"] == mode:
                firsts[mode, r["side"]] = r["firsts"]
        for side in ("default", *WHOLE):
            mine = [r[side] for r in rounds if side in r]
            both = [p["peak_reserved"] / p["peak_allocated"]
                    for p in (mine[-1], mine[-1]["rank 1"])]
            over.setdefault(side, []).extend(both)
            steps[mode, side] = len(mine)
            if side == "default":
                continue
            pairs = inside_page.pairs_of(rounds[in_production_page.WARM:], side)
            found = median_interval([a / b for a, b in pairs])
            times.setdefault(side, []).append(total_interval(pairs))
            blocks.append((mode.upper() + ", two GPUs", WHOLE[side], found,
                           max(both)))
    for side in ("default", "full", "full102"):
        n.put(f"ranks.{side}.least", f"{min(over[side]):.2f}")
        n.put(f"ranks.{side}.most", f"{max(over[side]):.2f}")
    of_ours = [t for side in OURS for t in times[side]]
    n.put("ranks.time.least", signed(min(m for m, _ in of_ours) - 1, 1) + r"\,\%")
    n.put("ranks.time.most", signed(max(m for m, _ in of_ours) - 1, 1) + r"\,\%")
    n.put("ranks.time.bound", signed(max(e[1] for _, e in of_ours) - 1, 1) + r"\,\%")
    n.put("ranks.resolution", percent(max(
        abs(e - 1) for _, ends in times["again"] for e in ends), 1))
    short = [(m, s) for m, s in steps if steps[m, s] < steps[m, "default"]]
    n.says("one of two trainings ended early, at the least capacity",
           short == [("fsdp", "full102")])
    n.put("ranks.refused.steps", steps[short[0]])
    n.put("ranks.refused.of", steps["fsdp", "default"])
    others = [(m, s) for m, s in firsts if s != "default"]
    n.of("ranks.equal", sum(firsts[m, s] == firsts[m, "default"]
                            for m, s in others), len(others))
    n.says("loss and gradients are equal on both ranks",
           all(firsts[m, s] == firsts[m, "default"] for m, s in others))
    n.put("ranks.rounds", min(counts))
    return blocks


def programs(n, rows):
    lines = [r for r in rows if r["kind"] == "line"]
    checks = [(r, c) for r in lines for c in r["checks"]
              if not r["side"].startswith("PyTorch")]
    failed = [r for r, c in checks if not c[1]]
    n.put("prod.checks", whole(len(checks)))
    n.put("prod.checks.hold", whole(len(checks) - len(failed)))
    n.put("prod.checks.text", "" if not failed else "The others fail: " +
          ", ".join(sorted({f"{name(r['line'])} under "
                            + name(r["side"].removesuffix(" pluggable"))
                            for r in failed})) + ".")
    results = {}
    for r in rows:
        if r["kind"] == "upstream" and r["test"] != "load":
            results.setdefault(r["side"], {})[r["test"]] = r["state"]
    own = results.pop("PyTorch")
    passed = in_production_page.PASSED
    worse = sorted({(side, t) for side, tests in results.items()
                    for t, state in tests.items()
                    if state not in (*passed, "skipped")
                    and own.get(t) in passed})
    n.put("prod.upstream.policies", len(results))
    n.put("prod.upstream.worse", max(sum(s == side for s, _ in worse)
                                     for side in results))
    soaks = [r["counts"] for r in in_production_page.soaked(rows)
             if not r["side"].startswith("PyTorch")]
    n.says("a soak ran under a policy of fragsim", soaks)
    n.put("prod.soak.threads", re.search(
        r"(\d+) threads", in_production_page.PROGRAMS["soak"])[1])
    for key in ("blocks", "checked", "wrong"):
        n.put(f"prod.soak.{key}", whole(sum(c[key] for c in soaks)))


def mean_calls(rows, workload, side):
    return statistics.mean(r[side]["calls"] for r in
                           inside_page.rounds_of(rows, workload) if side in r)


def inside(n):
    rows = n.lines("inside_torch.jsonl")
    most, default, rounds_total = 0, 0, 0
    quiet, page8 = [], []
    for workload, key in (("llama_varlen", "llama"), ("rcnn_train", "rcnn"),
                          ("generate", "generate")):
        rounds = inside_page.rounds_of(rows, workload)
        peaks = inside_page.peaks_of(rows, workload)
        most = max(most, inside_page.worst_ratio(peaks, "remap"))
        default = max(default, inside_page.worst_ratio(peaks, "default"))
        pairs = inside_page.pairs_of(rounds, "remap")
        n.put(f"inside.{key}",
              interval(median_interval([a / b for a, b in pairs]), 2))
        rounds_total += len(inside_page.pairs_of(rounds, "again"))
        quiet.append(inside_page.quiet_share(rounds, "remap") / 100)
        if workload != "generate":
            page8.append(inside_page.worst_ratio(peaks, "page8") - 1)
    n.put("inside.remap.most", ratio(most, 3))
    n.put("inside.default.most", ratio(default))
    n.put("inside.rounds", whole(rounds_total))
    n.put("inside.quiet.least", percent(min(quiet)))
    n.put("inside.quiet.most", percent(max(quiet)))
    n.put("inside.page8", percent(max(page8), 1))
    equal = total = 0
    for workload in inside_page.workloads(rows, "losses"):
        values = {r["side"]: r["values"] for r in
                  inside_page.of(rows, "losses", workload) if r.get("values")}
        for side in values:
            if side != "default":
                total += 1
                equal += inside_page.difference(
                    values[side], values["default"]).startswith("equal in") \
                    and "then" not in inside_page.difference(
                        values[side], values["default"])
    n.of("inside.losses", equal, total)
    n.says("all losses are equal", equal == total)
    n.says("larger pages make less than half of the calls", all(
        mean_calls(rows, w, "page8") < mean_calls(rows, w, "remap") / 2
        for w in ("llama_varlen", "rcnn_train")))
    rounds = inside_page.rounds_of(rows, "llama_varlen")
    pairs = inside_page.pairs_of(rounds, "recorded")
    middle, ends = median_interval([a / b for a, b in pairs])
    n.put("recorder.step", f"{1e3 * statistics.median(s for s, _ in pairs):.0f}")
    n.put("recorder.cost", signed(middle - 1))
    n.put("recorder.low", signed(ends[0] - 1))
    n.put("recorder.high", signed(ends[1] - 1))
    found = n.table("recorder.csv")
    n.of("recorder", sum(r["same"] == "1" for r in found), len(found))
    return rows


def compute(folder):
    n = Numbers(folder)
    about(n)
    _, both, sums = truth(n)
    on_device = device(n)
    oracle(n)
    policies(n)
    low = survival(n)
    frontier(n)
    table_programs(n)
    real = tune(n)
    explained = explain(n)
    dead(n)
    empty(n)
    ahead(n)
    story(n)
    claims(n)
    related(n)
    pressure(n, low)
    long_rows = inside(n)
    production(n, n.lines("in_production.jsonl"), long_rows)
    table_truth(n, both, sums, on_device, real, explained)
    return n


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    n = compute(folder)
    n.write()
    if "--list" in sys.argv:
        for key, (text, file) in sorted(n.held.items()):
            print(f"{key}\t{text}\t{file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
