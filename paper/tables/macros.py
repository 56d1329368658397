#!/usr/bin/env python3
"""macros.py OUT_FOLDER [--list]: computes every number of the paper from data/ and
from constants in the source, and writes OUT_FOLDER/numbers.tex (a macro for each
number) and the .tsv files that figures/*.gp draw.

A number remembers the file it comes from; --list prints name, value, file, and the
command that made the file, where its first line says it. A missing file or column, and
a sentence of the text that the data contradict (see Numbers.says), stop the script.
"""
import json
import math
import os
import random
import re
import statistics
import sys

import calibrate
import dry_table
import frontier_table
import related_table
import pressure_table
import steps_table
from data_header import read_csv
import live_table
from live_table import CONVOLVE
from lockstep import total_interval
from places import DATA, PAPER, ROOT

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
        self.said = []  # (sentence, file) of what was checked

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
        self.said.append((sentence, self.file))

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
    share = float(re.search(r"def total_interval\(.*?confidence=([\d.]+)", method, re.S)[1])
    n.put("method.confidence", f"{100 * share:.0f}")
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
             "cuts": "cuts", "late_expandable": "late_expandable",
             "late_ordinary": "late_ordinary", "late_by_age": "late_by_age",
             "hostile": "hostile"}
    for ours, key in names.items():
        n.of(f"truth.{ours}", *both(key))
    n.put("truth.events", whole(both("events")[0]))
    n.put("truth.what_if.of", whole(both("what_if_peak_reserved")[1]))
    peaks = variants(n)
    n.table("truth.csv")
    for key in ("recordings", "what_if_peak_reserved",
                "what_if_first_oom_index", "what_if_segments_allocated",
                "what_if_retries", "late_expandable"):
        n.says(f"all of {key} are equal", len(set(both(key))) == 1)

    def total(*keys):
        return [sum(both(k)[i] for k in keys) for i in (0, 1)]

    rmm = total("rmm_pool", "rmm_pool_max", "rmm_pool_initial", "rmm_arena",
                "rmm_binning")
    cupy = total("cupy", "cupy_limit")
    pool = total("async", "async_keep", "async_keep_sync")
    spread = both("spread_cupy")[0] + both("spread_cupy_limit")[0]
    n.says("all other runs of CuPy lie within the spread of its seeds",
           cupy[0] + spread == cupy[1])
    return rows, both, {"rmm": rmm, "cupy": cupy, "pool": pool, "variants": peaks}


# Why a prediction is wrong, in words of the table.
REASONS = {"an OOM that the program survived": "cuDNN tried again", "other requests":
           "other requests", "addresses": "addresses"}


def naive_rate(n):
    """(the mean need of the default, {program: the peak that its default run allocates})"""
    rows = [r for r in n.table("needs.csv")
            if (r["policy"], r["bound"]) == ("torch", "capacity")]
    return (geometric(list(over_bound(rows, "torch", "need_bytes").values())),
            {r["trace"]: r.number("peak_allocated_bytes") for r in rows})


def variants(n):
    """Recorded runs that are predicted from the default run of their program."""
    rows = n.table("variants.csv")
    limited = [r for r in rows if r["limit_bytes"]]
    dead = [r for r in limited if r["died"] == "1"]
    alive = [r for r in limited if r["died"] == "0"]

    def equal(some, what, suffix=""):
        return sum(r[what] == r[f"predicted_{what}{suffix}"] for r in some)

    n.put("var.programs", len({r["variant"].split("__")[0] for r in rows}))
    peaks = equal(limited, "peak_reserved_bytes"), len(limited)
    n.of("var.peaks", *peaks)
    n.of("var.deaths", equal(dead, "died"), len(dead))
    n.of("var.alive", equal(alive, "died"), len(alive))
    free = [r for r in rows if not r["limit_bytes"]]
    n.of("var.free", equal(free, "peak_reserved_bytes"), len(free))
    # A predictor that knows no allocator: what the default run allocates, times what the
    # default needs on average.
    rate, allocated = naive_rate(n)
    n.file = "data/variants.csv, data/needs.csv"
    n.of("var.naive", sum((rate * allocated[r["variant"].split("__")[0]]
                           >= r.number("limit_bytes")) == (r["died"] == "1")
                          for r in limited), len(limited))
    n.file = "data/variants.csv"
    n.put("var.outcomes", equal(limited, "died"))
    n.says("a constant factor predicts survival as often as the replay",
           int(n.held["var.naive"][0]) >= equal(limited, "died"))
    same = [r for r in dead if r["death_event"]]  # of the same requests
    n.says("each death after the same requests is at the predicted one",
           equal(same, "death_event") == len(same) > 0)
    n.put("var.events", len(same))
    n.put("var.peaks.device", whole(equal(limited, "peak_reserved_bytes", "_capacity")))
    n.put("var.deaths.device", whole(equal(dead, "died", "_capacity")))
    wrong = [r for r in rows if r["right"] == "0"]
    n.put("var.wrong", len(wrong))
    for key, why in (("caught", "an OOM that the program survived"),
                     ("requests", "other requests"), ("addresses", "addresses")):
        n.put(f"var.{key}", sum(r["why"] == why for r in wrong))
    n.says("each wrong prediction has a reason", all(r["why"] for r in wrong))
    n.put("table.wrong", "\n".join(
        f"{name(r['variant'])} & {r.number('peak_reserved_bytes') / GIB:.3f} & "
        + signed(r.number("predicted_peak_reserved_bytes")
                 / r.number("peak_reserved_bytes") - 1, 1)
        + f" & {REASONS[r['why']]} " r"\\" for r in wrong))
    false = [r for r in alive if r["predicted_died"] == "1"]
    n.says("one death is predicted that did not happen, as an OOM was caught",
           len(false) == 1 and false[0]["why"].startswith("an OOM"))
    n.says("it is that of the text", false[0]["variant"] == "rcnn_train__cap_tight_exp")
    return peaks


def table_truth(n, both, sums, device, real, explain):
    """The rows of the table of truth, from several files."""
    def line(what, pair):
        return rf"{what} & \mbox{{{whole(pair[0])} of {whole(pair[1])}}} \\"

    text = "\n".join([
        line(r"PyTorch, recordings", both("recordings")),
        line("PyTorch, public snapshots of others", sums["public"]),
        line("PyTorch, recordings cut at a segment event", both("cuts")),
        r"\midrule",
        line("PyTorch, what-if runs: peak, first OOM, segments, retries",
             both("what_if_peak_reserved")),
        line(r"\quad if no address is used twice: peak", both("hostile")),
        line("PyTorch, runs under a limit, predicted from the default: peak",
             sums["variants"]),
        line("PyTorch, settings found by search: peak", real),
        line("PyTorch, changes proposed for dead jobs: served or not", explain),
        r"\midrule",
        line("RMM: peak, segments, first refusal", sums["rmm"]),
        line("JAX (BFC): peak, segments", both("jax")),
        line("CuPy: peak, segments; one seed", sums["cupy"]),
        line("driver's pool, idle device: peak", sums["pool"]),
        r"\midrule",
        line("unchanged policies on two kinds of GPU: each count", device)])
    n.file = "data/truth.csv"
    n.put("table.truth", text.removesuffix(r"\\"))
    n.held["table.truth"] = (text, n.file)


# Policies whose code changed after the runs on a device.
REWRITTEN = ("expandable", "remap", "plan", "plan_online", "cuda_async")


def unchanged(rows):
    return [r for r in rows if r["policy"].split(":")[0] not in REWRITTEN]


def device(n):
    runs = same = leaked = without = 0
    policies = set()
    for file in ("device_contents.csv", "device_contents_h100.csv",
                 "device_limits.csv", "device_times.csv",
                 "device_times_h100.csv"):
        rows = n.table(file)
        without += len(rows) - len(unchanged(rows))
        for r in unchanged(rows):
            runs += 1
            same += r["same"] == "1"
            leaked += r.number("leaked_bytes")
            policies.add(r["policy"])
    n.put("device.runs", whole(runs))
    n.put("device.without", whole(without))
    n.put("device.policies", len({p.split(":")[0] for p in policies}))
    n.says("each count is equal", same == runs)
    n.says("no run leaves memory", leaked == 0)
    limit = 0.2
    for key, file in (("time", "device_times.csv"),
                      ("time.h100", "device_times_h100.csv")):
        rows = unchanged(n.table(file))
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
    found = {}
    for conf, some in free.items():
        ratios = [r.number("peak_reserved_bytes") / base[r["trace"]] for r in some]
        lives = sum(r["first_oom_event"] == "" for group in full for r in group
                    if r["settings"] == conf)
        found[conf] = sum(x > 1 for x in ratios), max(ratios), lives
    for key, conf in (("split64", "max_split_size_mb:64"),
                      ("default", "default"),
                      ("exp", "expandable_segments:True")):
        n.put(f"set.{key}.limit", found[conf][2])
    worse, most, _ = found["max_split_size_mb:64"]
    n.put("set.split64.worse", worse)
    n.put("set.split64.most", ratio(most, 1))
    n.says("the small split size helps at the limit",
           found["max_split_size_mb:64"][2] > found["default"][2])


# ---- need ----

KEYS = {"torch": "torch", EXP: "exp", "remap": "remap", "best_fit": "best_fit",
        "vma": "vma"}
# The rows of the table of needs; all policies are on pages/policies.md.
SHOWN = ("remap", "expandable", "remap:pack=full", "stitch", EXP, "direct", "vma", "slab",
         "torch", "cupy", "rmm_pool", "best_fit", "bfc", "cuda_async")
FUTURE = ("plan_online", "plan")
CALLED = {EXP: "torch, switch"}


def over_bound(rows, policy, column, **where):
    """{trace: the column over the lower bound} of a policy."""
    return {r["trace"]: r.number(column) / r.number("lower_bound_bytes") for r in rows
            if r["policy"] == policy and all(r[k] == v for k, v in where.items())}


def needs(n):
    """What each policy needs, and, beside it, reserves without a bound."""
    free = [r for r in n.table("policies.csv") if r["capacity"] == "inf"]
    rows = n.table("needs.csv")
    names = list(dict.fromkeys(r["policy"] for r in rows))
    n.put("pol.count", len({p.split(":")[0] for p in names}))
    facts = {}
    for policy in names:
        need = over_bound(rows, policy, "need_bytes", bound="capacity")
        held = over_bound(free, policy, "peak_reserved_bytes")
        facts[policy] = {
            "need": need, "mean": geometric(list(need.values())), "worst": max(need.values()),
            "held": held, "held_mean": geometric(list(held.values())),
            "held_worst": max(held.values()),
            "above": sum(r.number("fit_bytes") < r.number("need_bytes") for r in rows
                         if (r["policy"], r["bound"]) == (policy, "capacity"))}
    torch = facts["torch"]
    n.put("pol.recordings", len(torch["need"]))
    n.put("need.exp.worse", sum(facts[EXP]["need"][t] > torch["need"][t] for t in torch["need"]))
    for policy in KEYS:
        n.put(f"need.{KEYS[policy]}", ratio(facts[policy]["mean"], 3))
    for policy in ("torch", EXP):
        n.put(f"need.{KEYS[policy]}.worst", ratio(facts[policy]["worst"]))
    n.put("need.exp.worst.on", name(max(facts[EXP]["need"], key=facts[EXP]["need"].get)))
    n.put("hurt.full", facts["remap:pack=full"]["above"])
    bands(n, rows)
    big = [r for r in rows if r["bound"] == "capacity"
           and r.number("lower_bound_bytes") >= GIB]
    n.put("need.big.of", len({r["trace"] for r in big}))
    for key, policy in (("torch", "torch"), ("exp", EXP), ("remap", "remap")):
        n.put(f"need.big.{key}", ratio(geometric(
            list(over_bound(big, policy, "need_bytes").values())), 3))
    n.put("held.torch", ratio(torch["held_mean"]))
    n.put("held.torch.worst", ratio(torch["held_worst"]))
    correlate(n, [torch["need"][t] for t in torch["need"]],
              [torch["held"][t] for t in torch["need"]])
    online = [p for p in names if not p.startswith(("plan", "compact", "remap", "expandable"))
              and p != "torch_host"]
    n.says("no policy that moves no page needs less than those that map small ones",
           min(facts[p]["mean"] for p in online) >
           max(facts[p]["mean"] for p in ("remap", "expandable")))
    n.says("a policy without a cache needs less than best fit",
           facts["direct"]["mean"] < facts["best_fit"]["mean"])
    n.says("by need, stitch is better than the default",
           facts["stitch"]["mean"] < torch["mean"])
    n.says("remap needs about as much as with a plan",
           abs(facts["remap"]["mean"] - facts["plan_online"]["mean"]) < 0.005)
    order = sorted(SHOWN, key=lambda p: facts[p]["mean"])

    def line(policy):
        f = facts[policy]
        return (f"{name(CALLED.get(policy, policy))} & {f['mean']:.3f} & {f['worst']:.2f} & "
                f"{f['above']} & {f['held_mean']:.3f} & {f['held_worst']:.2f} " r"\\")

    n.put("table.needs", "\n".join([*map(line, order), r"\midrule", *map(line, FUTURE)]))
    n.figure("needs", [[t, *(facts[p]["need"][t] for p in ("torch", EXP, "remap")),
                        torch["held"][t]]
                       for t in sorted(torch["need"], key=lambda t: -torch["need"][t])])
    return facts


def bands(n, rows):
    """How much more than the least capacity that serves a program its need is."""
    def band(policy):
        return [(r.number("need_bytes") - r.number("fit_bytes"), r.number("fit_bytes"))
                for r in rows if r["policy"] == policy and r["bound"] == "capacity"]

    for key, policy in (("full", "remap:pack=full"), ("own", "expandable")):
        n.put(f"band.{key}", size(max(width for width, _ in band(policy))))
        n.put(f"band.{key}.share", percent(max(w / fit for w, fit in band(policy)), 1))
    n.says("the band of a policy that maps pages is narrower than the default's",
           3 * max(w / fit for w, fit in band("remap:pack=full"))
           < max(w / fit for w, fit in band("torch")))
    n.put("hurt.own", sum(w > 0 for w, _ in band("expandable")))
    n.says("expandable is hurt on one program", n.held["hurt.own"][0] == "1")
    n.put("fit.torch", ratio(geometric(
        list(over_bound(rows, "torch", "fit_bytes", bound="capacity").values())), 3))


def ranks(values):
    """The rank of each value; equal ones share the mean of theirs."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def correlate(n, a, b):
    """Pearson's correlation with Fisher's interval, and Spearman's."""
    found = statistics.correlation(a, b)
    middle, half = math.atanh(found), 1.96 / math.sqrt(len(a) - 3)
    ends = [math.tanh(middle + x) for x in (-half, half)]
    n.put("held.correlation", ratio(found))
    n.put("held.correlation.ends", f"${ends[0]:.2f}$ to ${ends[1]:.2f}$")
    n.put("held.spearman", ratio(statistics.correlation(ranks(a), ranks(b))))


def touched(n):
    """The pages that live blocks touch, by placement, where no free waits for work."""
    rows = [r for r in n.table("touched.csv") if r["waiting"] == "0"]
    found = {}
    for r in rows:
        found.setdefault(r["placement"].split(":")[0], []).append(
            r.number("need_bytes") / r.number("lower_bound_bytes"))
    needs = {r["trace"]: r["need_bytes"] for r in n.table("law.csv")
             if r["policy"] == PAGED[2]}
    n.says("expandable with small pages needs exactly the pages that blocks touch",
           all(needs[r["trace"]] == r["need_bytes"] for r in rows
               if r["placement"].startswith("expandable")))
    n.put("touched.of", len(found["expandable"]))
    n.put("touched.mean", ratio(geometric(found["expandable"]), 3))
    n.put("touched.worst", ratio(max(found["expandable"]), 3))
    for fit in ("best_fit", "first_fit", "next_fit", "worst_fit"):
        n.put(f"touched.{fit}", ratio(geometric(found[fit]), 3))
    n.put("touched.worst_fit.worst", ratio(max(found["worst_fit"]), 2))
    n.says("where no free waits, the policies that return pages need about what blocks touch",
           geometric(found["expandable"]) < 1.02)


def table_programs(n, facts):
    """One row for each program."""
    rows = {r["trace"]: r for r in n.table("needs.csv")
            if r["policy"] == "torch" and r["bound"] == "capacity"}
    bound = {t: r.number("lower_bound_bytes") for t, r in rows.items()}
    fits = {t: r.number("fit_bytes") for t, r in rows.items()}

    def least(t):
        alone = fits[t] < rows[t].number("need_bytes")
        return f"{fits[t] / bound[t]:.2f}" if alone else ""

    shown = ("torch", EXP, "expandable", "remap")
    n.put("table.programs", "\n".join(
        " & ".join([name(t), f"{bound[t] / GIB:.2f}", least(t),
                    *(f"{facts[p]['need'][t]:.2f}" for p in shown),
                    f"{facts['torch']['held'][t]:.2f}"])
        + r" \\" for t in sorted(bound, key=lambda t: -facts["torch"]["need"][t])))


# ---- the law ----

PAGED = {2: "expandable:page=2MiB,largest=2MiB", 12: "expandable:page=12MiB,largest=12MiB",
         20: "expandable:page=20MiB,largest=20MiB"}


def law(n):
    """The law beside what is needed, and what growing and remapping save."""
    rows = n.table("law.csv")
    pins(n, {r["policy"]: r for r in rows if r["trace"] == "pins"})
    rows = [r for r in rows if r["trace"] != "pins"]
    mapped = [r for r in rows if r["law_bytes"]]
    n.put("law.pairs", whole(len(mapped)))
    n.put("law.recordings", len({(r["trace"], r["device"]) for r in rows}))
    n.put("page.middle", re.search(r"page=(\d+)MiB", PAGED[12])[1] + "~MiB")
    n.put("law.policies", len({r["policy"] for r in mapped}))
    n.says("no need is above the law",
           all(r.number("need_bytes") <= r.number("law_bytes") for r in mapped))
    counted = [r for r in mapped if r["runs_bytes"]]
    n.says("no need is above the law by runs",
           all(r.number("need_bytes") <= r.number("runs_bytes") for r in counted))
    n.put("law.counted", whole(len(counted)))
    known = {r["trace"] for r in n.table("needs.csv")}
    n.file = "data/law.csv"
    ours = [r for r in rows if r["trace"] in known]
    others = [r for r in rows if r["trace"] not in known]
    n.put("law.others", len({(r["trace"], r["device"]) for r in others}))
    sweep = {r["trace"] for r in others if re.search(r"_b\d+$", r["trace"])}
    n.put("law.others.sweep", len(sweep))
    n.says("the sweeps are of three programs",
           len({re.sub(r"_b\d+$", "", t) for t in sweep}) == 3)

    def mean(policy, column, some=ours):
        return geometric(list(over_bound(some, policy, column).values()))

    small = PAGED[2]
    for key, column in (("need", "need_bytes"), ("runs", "runs_bytes"), ("blocks", "law_bytes")):
        found = over_bound(ours, small, column).values()
        n.put(f"law.small.{key}", ratio(geometric(list(found)), 3 if key == "need" else 2))
        n.put(f"law.small.{key}.worst", ratio(max(found)))
    n.put("law.large.runs", ratio(mean(PAGED[20], "runs_bytes")))
    n.put("law.runs.most", whole(max(r.number("runs") for r in ours if r["policy"] == small)))
    n.put("law.blocks.most", whole(max(r.number("live_blocks") for r in ours
                                       if r["policy"] == small)))

    def calls(policy):
        return sum(r.number("calls") for r in ours if r["policy"] == policy)

    for pages, policy in PAGED.items():
        n.put(f"page.{pages}.need", ratio(mean(policy, "need_bytes"), 3))
        n.put(f"page.{pages}.others", ratio(mean(policy, "need_bytes", others), 3))
        n.put(f"page.{pages}.calls", whole(calls(policy)))
    for key, policy in (("exp", EXP), ("exp12", EXP + ",large_segment_size_mb:12"),
                        ("exp2", EXP + ",experiment:small_pages"), ("torch", "torch"),
                        ("fit", "best_fit"), ("fit2", "best_fit:segment=2MiB")):
        n.put(f"page.{key}.need", ratio(mean(policy, "need_bytes"), 3))
        n.put(f"page.{key}.others", ratio(mean(policy, "need_bytes", others), 3))
        n.put(f"page.{key}.calls", whole(calls(policy)))
    split(n, mean)
    n.figure("law", [[t, over_bound(ours, small, "need_bytes")[t],
                      over_bound(ours, small, "runs_bytes")[t],
                      over_bound(ours, small, "law_bytes")[t]]
                     for t in sorted(known, key=lambda t: (over_bound(
                         ours, small, "law_bytes")[t], t))])
    anomaly(n, rows)


def pins(n, rows):
    """The made trace on which the law is tight."""
    r = rows[PAGED[2]]
    n.put("pins.bound", size(r.number("lower_bound_bytes")))
    n.put("pins.need", size(r.number("need_bytes")))
    n.put("pins.law", size(r.number("runs_bytes")))
    n.put("pins.fit", size(rows["best_fit"].number("need_bytes")))
    n.says("the law is tight on the made trace",
           r.number("runs_bytes") < 1.04 * r.number("need_bytes"))


def split(n, mean):
    """How much of best fit's loss each property saves, by two measures."""
    for key, column in (("need", "need_bytes"), ("held", "peak_reserved_bytes")):
        fit, grow, remap = (mean(p, column) for p in ("best_fit", PAGED[2], "remap"))
        n.put(f"split.{key}.grow.share", percent((fit - grow) / (fit - 1)))
        n.put(f"split.{key}.remap.share", percent((grow - remap) / (fit - 1)))


def anomaly(n, rows):
    """Recordings on which a policy fails with more memory than it survives with."""
    def hurt(policy):
        return [r for r in rows if r["policy"] == policy
                and r.number("fit_bytes") < r.number("need_bytes")]

    def width(r):
        return r.number("need_bytes") - r.number("fit_bytes")

    n.of("anomaly.torch", len(hurt("torch")),
         sum(r["policy"] == "torch" for r in rows))
    n.put("anomaly.exp", len(hurt(EXP)))
    patch = hurt(EXP + ",experiment:small_pages")
    n.put("anomaly.exp2", len(patch))
    n.put("band.exp2", size(max(width(r) for r in patch)))
    widest = [(width(r), r.number("fit_bytes")) for r in hurt("torch")]
    n.put("band.torch.all", size(max(w for w, _ in widest)))
    n.put("band.torch.all.share", percent(max(w / fit for w, fit in widest), 1))
    n.says("remap is monotone on each recording", not hurt("remap"))


def patched(n):
    """What programs need on a GPU with PyTorch's pages and with small ones."""
    need = {}
    for r in n.table("upstream_gpu.csv"):
        if r["share"] == "need" and r["fits"] == "True":
            need.setdefault(r["program"], {})[r["label"]] = \
                r.number("limit") / r.number("allocated")
    need = [v for v in need.values() if {"release", "on"} <= set(v)]
    n.put("patch.programs", len(need))
    for label in ("release", "on"):
        n.put(f"patch.{label}", ratio(geometric([v[label] for v in need]), 3))
        n.put(f"patch.{label}.worst", ratio(max(v[label] for v in need), 3))
    n.says("small pages lower each need on a GPU", all(v["on"] < v["release"] for v in need))


def opening(n):
    """What the job of the first page needs."""
    rows = n.table("opening.csv")
    need = {r["policy"]: r.number("need_bytes") for r in rows}
    limit = rows[0].number("limit_bytes")
    told = {r["policy"]: r["recorded"] for r in rows}
    pages = EXP + ",large_segment_size_mb:12"
    n.says("with the switch the job died too", told[EXP] == told["torch"] == "died")
    n.says("the replay says so", min(need["torch"], need[EXP]) > limit)
    n.says("the job lived with smaller pages and on expandable, as predicted",
           told[pages] == told["expandable"] == "survived" and need["expandable"] < limit)
    patched_exp = EXP + ",experiment:small_pages"
    n.says("the patched PyTorch was not run", not told[patched_exp])
    n.says("smaller pages fit", max(need[pages], need[patched_exp], need[PAGED[2]],
                                    need["remap"]) < limit)
    n.put("open.exp.lacks", size(need[EXP] - limit))
    n.put("open.pages.spare", size(limit - need[pages]))
    n.put("open.small.spare", size(limit - need[patched_exp]))
    n.put("open.bound", size(rows[0].number("lower_bound_bytes")))


# ---- predicted, then measured ----

def public(n):
    rows = n.table("public_snapshots.csv")
    found = re.search(r"lists (\d+) files in (\d+) repositories", n.head)
    total = {k: sum(r.number(k) for r in rows)
             for k in ("exact", "differs", "not_enough", "addresses", "ooms")}
    n.put("public.named", found[1])
    n.put("public.repositories", sum(r["exact"] != "0" for r in rows))
    judged = total["exact"] + total["differs"]
    n.put("public.judged", judged)
    n.put("public.snapshots", judged + total["not_enough"])
    n.says("all public snapshots that can be judged are exact", total["differs"] == 0)
    return total["exact"], judged


LIVE = ("torch", EXP, "best_fit", "expandable", "remap")


def live(n):
    """Programs that ran again with what fit said that they need, and with less."""
    every = n.lines("live.jsonl")
    rows = [r for r in every if 1 < r.get("run", 0) < 5 and r["policy"] in LIVE]
    calm = [r for r in rows if r["workload"] not in CONVOLVE]
    wild = [r for r in rows if r["workload"] in CONVOLVE]
    n.put("live.programs", len({r["workload"] for r in rows}))
    on = {p: len({r["workload"] for r in rows if r["policy"] == p}) for p in LIVE}
    for key, policy in (("torch", "torch"), ("own", "expandable"), ("exp", EXP),
                        ("fit", "best_fit")):
        n.put(f"live.on.{key}", on[policy])
    n.says("best fit and remap ran on the same number", on["best_fit"] == on["remap"])
    full = [r for r in every if r.get("run", 0) > 1 and r["policy"] not in LIVE]
    n.says("the policy that is left out is remap:pack=full",
           {r["policy"] for r in full} == {"remap:pack=full"})
    n.of("live.full", sum(r["foretold"] for r in full), len(full))
    first = [r for r in every if r.get("run") == 1]
    n.put("live.first.programs", len({r["workload"] for r in first}))
    n.put("live.first.policies", len({r["policy"] for r in first}))
    n.of("live.first", sum(r["foretold"] for r in first), len(first))
    n.says("one run of run 1 died with its need, on vma",
           [r["policy"] for r in first
            if (r["expected"], r["outcome"]) == ("survived", "died")] == ["vma"])
    for key, some in (("calm", calm), ("wild", wild)):
        n.of(f"live.{key}", sum(r["foretold"] for r in some), len(some))
    seen = {r["workload"] for r in first}
    for key, some in (("calm", calm), ("wild", wild)):
        new = [r for r in some if r["workload"] not in seen]
        n.of(f"live.new.{key}", sum(r["foretold"] for r in new), len(new))
    deaths = [r for r in wild if r["expected"] == "died"]
    n.of("live.wild.deaths", sum(r["foretold"] for r in deaths), len(deaths))
    n.says("no run died with its need", all(
        r["outcome"] != "died" for r in rows if r["expected"] == "survived"))
    n.of("live.replayed", sum(r["agrees"] for r in rows), len(rows))
    last = [r for r in every if r.get("run") == 5]
    found = live_table.full_devices(last)
    for key in ("full", "plain", "own", "switch"):
        n.of(f"live.device.{key}", found[key], found[f"{key}_of"])
    n.put("live.device.programs", len({r["workload"] for r in last}))
    n.put("live.device.rest", f"{every[0]['full_free'] / MIB:.1f}")
    n.put("live.device.both", found["both"])
    n.put("live.device.least", f"{found['least']:.2f}")
    n.put("live.device.most", f"{found['most']:.2f}")
    full = [r for r in last if r["bound"] == "device"]
    calm = [r for r in full if r["workload"] not in CONVOLVE and
            (r["policy"], r["expected"]) == ("torch", "died")]
    n.of("live.device.calm", sum(r["foretold"] for r in calm), len(calm))
    n.of("live.device.agrees", sum(r["agrees"] for r in full), len(full))
    odd = [r["workload"] for r in full if r["policy"] == "expandable" and not r["foretold"]]
    n.says("cuDNN went on in one of two, the other remembered its warm-up",
           sorted(odd) == ["diffusion", "trainer_gpt2"])
    n.put("live.device.call", f"{found['device_ns']:.0f}")
    n.put("live.limit.call", f"{found['limit_ns']:.0f}")
    n.says("each that had its need lived on a full device", found["full"] == found["full_of"])
    n.says("below it all die with the switch", found["switch"] == found["switch_of"])


def dry(n):
    """Runs predicted before there was a GPU, and committed before the measurement."""
    right = of = without = free = 0
    for predicted, recorded, _ in dry_table.PREDICTIONS:
        truth_of = {dry_table.key(r): r for r in n.table(recorded)}
        pairs = [(r, truth_of[dry_table.key(r)]) for r in n.table(predicted)
                 if dry_table.key(r) in truth_of]
        right += sum(p["outcome"] == t["outcome"] for p, t in pairs)
        of += len(pairs)
        without += len(n.table(predicted)) - len(pairs)
        free += sum(p["bound"] == "none" for p, _ in pairs)
        n.says("each run without a bound ended as predicted", all(
            p["outcome"] == t["outcome"] for p, t in pairs if p["bound"] == "none"))
    n.says("all predictions without a bound have a run", right >= free)
    n.put("dry.free", free)
    n.put("dry.bounded", right - free)
    n.put("dry.wrong", of - right)
    n.put("dry.without", without)
    n.put("dry.under", of - free + without)
    rows = n.table("dry_confirmed.csv")
    n.of("dry.limits", sum(r["predicted"] == r["outcome"] for r in rows), len(rows))
    lengths(n)


def lengths(n):
    """The longest sequence that trains, predicted and then measured."""
    foretold = frontier_table.lives(n.table("frontier_predicted.csv"), "survives")
    seen = frontier_table.lives(n.table("frontier_measured.csv"), "survived")
    n.of("length.runs", sum(seen[k] == foretold[k] for k in seen), len(seen))
    wrong = [k for k in seen if seen[k] != foretold[k]]
    n.says("only cudaMallocAsync trains longer than foretold",
           all(side == "cudaMallocAsync" and seen[r, side, l] for r, side, l in wrong))
    for key, side in (("torch", "default"), ("exp", "expandable_segments"),
                      ("ours", "fragsim")):
        found = [frontier_table.longest(cells, 1, side) for cells in (foretold, seen)]
        n.says(f"{side}: the predicted length is measured", found[0] == found[1])
        n.put(f"length.{key}", whole(found[1]))


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
    for key, policy in (("torch", "torch"), ("exp", EXP), ("remap", "remap")):
        n.put(f"surv.{key}.low", held[policy, low])
    n.put("surv.torch.high", held["torch", high])
    n.put("surv.exp.high", held[EXP, high])
    names = [p.replace(EXP, "torch, switch") for p in SURVIVORS]
    n.figure("survival", [["capacity", *names]] + [
        [c[:-1], *(held[p, c] for p in SURVIVORS)] for c in capacities])


def frontier(n):
    rows = n.table("survival_spans.csv")
    n.put("front.of", len(by(rows, "trace")))
    bars, widest, which = [], 0, ""
    hurt = []
    for trace, spans in by(rows, "trace").items():
        alive = [i for i, r in enumerate(spans) if r["survives"] == "1"]
        after = [r for r in spans[alive[0]:] if r["survives"] == "0"]
        if not after:
            continue
        hurt.append(trace)
        last = spans[alive[-1]].number("from_bytes")
        first = spans[alive[0]].number("from_bytes")
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
    n.figure("frontier", bars)


# ---- today ----

def tune(n):
    rows = n.table("tune.csv")
    found = by(rows, "question")
    n.put("tune.of", len(found["no bound"]))
    n.put("tune.tried", whole(max(r.number("settings_tried") for r in rows)))
    for key, question in (("free", "no bound"), ("calls", "calls +1 %"),
                          ("novmm", "calls +1 %, no VMM")):
        n.put(f"tune.{key}.mean", percent(1 - geometric(
            [1 - r.number("saving_ratio") for r in found[question]]), 1))
    n.put("tune.calls.fewer", sum(r.number("driver_calls") < r.number("default_driver_calls")
                                  for r in found["calls +1 %"]))
    halves(n)
    n.put("half.tried", whole(max(r.number("settings_tried")
                                  for r in n.table("tune_search.csv"))))
    real = [r for r in n.table("tune_real.csv") if r["settings"]]
    return sum(r["predicted"] == r["real"] for r in real), len(real)


def halves(n):
    """Settings that are chosen on first halves, on the second halves."""
    rows = n.table("tune_halves.csv")
    some = [r for r in rows if r["settings"] == "all settings"]
    plain = [r for r in rows if r["settings"] == "no VMM"]

    def share(r, kind):
        return r.number(kind + "_bytes") / r.number("default_bytes")

    def mean(rows, kind):
        return 1 - geometric([share(r, kind) for r in rows])

    n.put("half.of", len(some))
    for kind in "switch", "search":
        n.put(f"half.{kind}", percent(mean(some, kind), 1))
    n.put("half.plain.ladder", percent(mean(plain, "ladder"), 1))
    n.put("half.plain.worse", sum(share(r, "ladder") > 1 for r in plain))
    halves_need(n)


def clustered(groups, draws=2000):
    """The interval of a geometric mean, by a bootstrap over the groups."""
    draw = random.Random(1)
    found = sorted(geometric(sum(draw.choices(groups, k=len(groups)), []))
                   for _ in range(draws))
    return found[draws // 40], found[-1 - draws // 40]


def halves_need(n):
    """What settings need on the second halves, against the default."""
    rows = n.table("halves_need.csv")
    ratios = {kind: [r.number(kind + "_need_bytes") / r.number("default_need_bytes")
                     for r in rows] for kind in ("switch", "ladder", "search", "pages")}
    saved = {kind: 1 - geometric(found) for kind, found in ratios.items()}
    groups = by([{"program": re.sub(r"_(b\d+|rank\d)$", "", r["trace"]), "row": i}
                 for i, r in enumerate(rows)], "program")
    n.put("half.programs", len(groups))
    for kind, value in saved.items():
        n.put(f"half.need.{kind}", percent(value, 1))
        ends = clustered([[ratios[kind][g["row"]] for g in some]
                          for some in groups.values()])
        n.put(f"half.need.{kind}.ends",
              " to ".join(f"${100 * (1 - x):.1f}$" for x in reversed(ends)))
    for kind in ("search", "pages"):  # against the switch
        apart = clustered([[ratios[kind][g["row"]] / ratios["switch"][g["row"]] for g in some]
                           for some in groups.values()])
        n.put(f"half.need.{kind}.apart", " to ".join(f"${100 * (x - 1):+.1f}$" for x in apart))
    for kind in ("switch", "pages"):
        n.put(f"half.need.{kind}.worse", sum(x > 1 for x in ratios[kind]))
    n.says("on steps it did not see, a search saves no more than one switch",
           saved["search"] <= saved["switch"])
    n.says("smaller pages save more than any search",
           saved["pages"] > max(saved["search"], saved["ladder"]))


def explain(n):
    rows = n.table("explain_real.csv")
    same = sum(r["served"] == r["served_by_pytorch"] for r in rows)
    n.put("explain.dev", len(by(rows, "recording")))
    n.put("explain.same", same)
    n.put("explain.of", len(rows))
    n.put("explain.kept", sum(r["change"] == "none" for r in rows))
    helps = [r for r in rows if r["served"] == "1"]
    n.put("explain.promised", len(helps))
    n.put("explain.promised.held", sum(r["served_by_pytorch"] == "1" for r in helps))
    n.says("they differ in one direction",
           all(r["served"] == "1" for r in rows
               if r["served"] != r["served_by_pytorch"]))
    return same, len(rows)


def dead(n):
    n.table("dead.csv")
    n.table("dead_new.csv")
    rows = calibrate.once(sum((calibrate.decided(calibrate.read(path))
                               for path in calibrate.TABLES[:2]), []))
    n.put("dead.pairs", len(rows))
    states = {name: [r for r in rows if calibrate.state_of(r) == name]
              for name, _, _ in calibrate.STATES}
    for name, some in states.items():
        n.of("dead." + name.lower(), sum(map(calibrate.lived, some)), len(some))
    n.says("each exported setting survives", all(map(calibrate.lived, states["TOLD"])))
    n.table("dead_holdout.csv")
    out = calibrate.read(calibrate.TABLES[2])
    n.put("dead.out", len(out))
    n.put("dead.out.programs", len({r["program"] for r in out}))
    for name in ("LIKELY", "TIGHT", "FAILS"):
        said = sum(map(calibrate.lived, states[name])), len(states[name])
        some = [r for r in out if (r["lived"], r["of"]) == said]
        survived = [r for r in some if r["outcome"] == "survived"]
        n.of(f"dead.out.{name.lower()}", len(survived), len(some))
    n.says("those that lived although a request fails had gone on after failures",
           all(r["failed_requests"] > 1 for r in survived))


def empty(n):
    found = by(n.table("empty_cache.csv"), "trace")
    ratios = {}
    for some in found.values():
        period = {r["period"]: r for r in some}
        never = period["never"]
        for p, r in period.items():
            if p in ("never", "recorded") or r.number("calls") == 0:
                continue
            ratios.setdefault(p, []).append(r.number("peak_reserved_bytes") /
                                            never.number("peak_reserved_bytes"))
    for key, p in (("one", "1"), ("ten", "10"), ("hundred", "100")):
        n.put(f"empty.{key}.mean", ratio(geometric(ratios[p]), 3))
    n.put("empty.one.most", ratio(max(ratios["1"])))


def ahead(n):
    """The driver's pool, as synchronized and never synchronized."""
    held = {(r["kind"], r["trace"]): r for r in n.table("run_ahead.csv")}
    traces = [t for k, t in held if k == "sync"]
    for key in ("sync", "keep"):
        n.put(f"ahead.{key}.mean", ratio(geometric(
            [held[key, t].number("reserved_high_bytes") /
             held[key, t].number("used_high_bytes") for t in traces])))


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

def pressure(n):
    labels = {"torch": "torch", EXP: "exp", "expandable": "expandable", "remap": "remap",
              "remap:pack=full": "full"}
    found = by(n.table("pressure.csv"), "policy", "capacity")
    capacities = list(dict.fromkeys(c for _, c in found))
    of = len(found["torch", "inf"])
    n.put("press.of", of)

    def seconds(policy, capacity):
        return sum(r.number("modelled_device_seconds") for r in found[policy, capacity])

    def runs(policy, capacity):
        return sum(r["num_ooms"] == "0" for r in found[policy, capacity])

    n.says("pack=full costs less than the default without a limit, expandable little more",
           seconds("remap:pack=full", "inf") < seconds("torch", "inf") and
           seconds("expandable", "inf") < 1.5 * seconds("torch", "inf"))
    n.says("close to the capacity both cost several times as much", all(
        seconds(p, "1.05x") > 3 * seconds("torch", "1.05x")
        for p in ("expandable", "remap:pack=full")))
    n.says("remap pays the same everywhere", max(
        abs(seconds("remap", c) / seconds("remap", "inf") - 1) for c in capacities) < 0.02)
    n.figure("pressure", [["capacity", *labels.values()]] + [
        [c.replace("inf", "no limit").replace("x", ""),
         *(f"{seconds(p, c)}\t{int(runs(p, c) == of)}" for p in labels)]
        for c in capacities])


T_OF_NINE = 2.262  # Student's t for 95 % and nine degrees of freedom


def steady(n):
    """What the calls of `expandable` cost a long training, in percent of its time, and
    which policies serve a program that is repeated."""
    every = by(n.table("pressure.csv"), "policy", "capacity")
    for key, policy, capacity in (("own", "expandable", "1.02x"), ("torch", "torch", "1.05x"),
                                  ("full", "remap:pack=full", "1.02x"), ("exp", EXP, "1.05x")):
        some = every[policy, capacity]
        once = [r for r in some if r["num_ooms"] == "0"]
        if key != "own":
            n.put(f"steady.once.{key}", len(once))
        n.put(f"steady.again.{key}", sum(r["again_ooms"] == "0" for r in once))
    rows = every["expandable", "1.05x"]
    n.says("expandable serves the same programs, once and repeated", all(
        (r["num_ooms"] == "0") == (r["again_ooms"] == "0")
        for c in pressure_table.TIGHT for r in every["expandable", c]))
    shares = {r["trace"]: r.number("again_seconds") / r.number("recorded_seconds")
              for r in rows}
    n.says("no program is refused", all(r["num_ooms"] == "0" for r in rows))
    n.says("the program that is left out empties its cache, and pays most",
           max(shares, key=shares.get) == "llama_empty")
    n.put("steady.empty", percent(shares.pop("llama_empty")))
    large = {r["trace"] for r in rows if r.number("lower_bound_bytes") >= GIB}
    small = [x for trace, x in shares.items() if trace not in large and x > 0.01]
    n.put("steady.repeated", pressure_table.REPEATED)
    n.put("steady.5", percent(statistics.mean(shares.values()), 1))
    n.put("steady.5.large", percent(max(x for t, x in shares.items() if t in large), 1))
    n.put("steady.small", len(small))
    n.put("steady.5.small", percent(max(small), 1))


def steps(n):
    """What a step costs under `expandable` and expandable segments, by limit."""
    found, ranks = steps_table.Steps(), steps_table.Turns(steps_table.RANKS)
    n.table("steps.csv")
    n.file = "data/steps.csv, data/steps_ends.csv"
    programs = found.programs
    n.put("steps.programs", len(programs))
    rounds = [len(pairs) for p in programs for pairs in found.series[p, "again"].values()]
    n.put("steps.rounds.least", min(rounds))
    n.put("steps.rounds.most", whole(max(rounds)))
    n.put("steps.noise", percent(steps_table.controls(found) / 100))
    n.put("steps.more", "1.05")
    n.put("steps.most", "1.1")
    bars = []
    for i, bound in enumerate(steps_table.BOUNDS):
        key = {"1.02": "2", "1.05": "5", "1.1": "10"}[bound]
        for name in steps_table.SIDES:
            alive = [p for p in programs
                     if found.survived(p, steps_table.side_of(name, bound))]
            if not alive:
                continue
            middle, ends = steps_table.mean_ratio(
                [found.pairs[p, steps_table.side_of(name, bound)] for p in alive])
            if name == "pages12":
                end = {"1.02": ".2", "1.05": ""}[bound]
                n.put(f"steps.pages.alive{end}", len(alive))
                n.put(f"steps.pages{end}", interval(steps_table.mean_ratio(
                    [found.over(p, bound, name) for p in alive])))
            bars.append([name, i, bound, *(f"{100 * (x - 1):.3f}" for x in (middle, *ends)),
                         len(alive)])
            if name == "fragsim":
                n.put(f"steps.{key}", interval((middle, ends)))
                first, calls = (sum(int(found.ends[p, f"fragsim {bound}"][c]) for p in alive)
                                for c in ("first_ns", "driver_ns"))
                if bound != "1.05":
                    n.put(f"steps.first.{key}", percent(first / calls))
                n.says("all programs live on expandable", len(alive) == len(programs))
            if name == "segments":
                n.put(f"steps.both.{key}", interval(steps_table.mean_ratio(
                    [found.over(p, bound) for p in alive])))
            if name == "segments" and bound != "1.1":
                n.put("steps.segments.alive" + {"1.02": ".2", "1.05": ""}[bound], len(alive))
        clock = {p: found.inside(p, bound, steps_table.later_half) for p in programs}
        n.put(f"steps.clock.{key}", sum(x <= 1 for x in clock.values()))
        if bound == "1.05":
            worst = max(clock, key=clock.get)
            n.put("steps.clock.worst", percent(clock[worst] / 100))
            for key_, at in (("2", "1.02"), ("5", bound)):
                n.put(f"steps.worst.{key_}", interval(total_interval(
                    found.later(worst, steps_table.side_of("fragsim", at)))))
            n.put("steps.clock.worst.2", percent(
                found.inside(worst, "1.02", steps_table.later_half) / 100))
    n.figure("steps", bars)
    for key, lists in zip(("first", "second"), steps_table.replicate(found)):
        n.put(f"steps.2.{key}", interval(steps_table.mean_ratio(lists)))
    tight = [p for p in programs if not found.survived(p, "segments 1.05")]
    n.put("steps.tight", len(tight))
    for key, bound in (("2", "1.02"), ("5", "1.05")):
        n.put(f"steps.tight.{key}", interval(steps_table.mean_ratio(
            [found.pairs[p, f"fragsim {bound}"] for p in tight])))
    clock = sorted(found.inside(p, "1.02", steps_table.later_half) for p in tight)
    n.put("steps.tight.clock", f"{clock[0]:.0f} to {clock[-1]:.0f}\\,\\%")
    ratios = [math.log(total_interval(found.pairs[p, "fragsim 1.02"])[0]) for p in programs]
    spread = T_OF_NINE * statistics.stdev(ratios) / math.sqrt(len(ratios))
    n.says("ten programs", len(ratios) == 10)
    n.put("steps.2.programs", interval((0, [math.exp(statistics.mean(ratios) + x)
                                            for x in (-spread, spread)])).split("(")[1][:-1])
    n.put("steps.2.again", interval(steps_table.mean_ratio(
        [[(r["fragsim 1.02"], r["again"]) for (p, _, _), r in found.rounds.items()
          if p == program and {"fragsim 1.02", "again"} <= set(r)] for program in programs])))
    n.file = "data/steps_ranks.csv"
    side = steps_table.side_of("fragsim", "1.02")
    for mode in ranks.programs:
        n.put(f"ranks.{mode}", interval(total_interval(ranks.pairs[mode, side])))
        n.put(f"ranks.{mode}.later", interval(total_interval(ranks.later(mode, side))))
        n.put(f"ranks.{mode}.exp.later", interval(total_interval(
            ranks.later(mode, "segments 1.05"))))
        n.put(f"ranks.{mode}.exp", interval(total_interval(ranks.pairs[mode, "segments 1.05"])))
        for key, name in (("default", "default"), ("low", side),
                          ("switch", "segments 1.05")):
            n.put(f"ranks.{mode}.{key}", f"{ranks.reserved(mode, name) / GIB:.1f}")


def compute(folder):
    n = Numbers(folder)
    about(n)
    _, both, sums = truth(n)
    sums["public"] = public(n)
    on_device = device(n)
    oracle(n)
    facts = needs(n)
    law(n)
    touched(n)
    survival(n)
    frontier(n)
    table_programs(n, facts)
    patched(n)
    opening(n)
    live(n)
    dry(n)
    real = tune(n)
    explained = explain(n)
    dead(n)
    empty(n)
    ahead(n)
    story(n)
    related(n)
    pressure(n)
    steady(n)
    steps(n)
    table_truth(n, both, sums, on_device, real, explained)
    return n


def made_by(files):
    """The first lines of data files: version or device, date, and command."""
    heads = []
    for name in re.findall(r"data/[\w.]+", files):
        with open(os.path.join(PAPER, name), encoding="utf-8") as file:
            first = file.readline().strip()
        if first.startswith("#"):
            heads.append(first[1:].strip())
        elif first.startswith("{"):
            heads.append(json.loads(first).get("command", ""))
    return "; ".join(h for h in heads if h)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    n = compute(folder)
    n.write()
    if "--list" in sys.argv:
        for key, (text, file) in sorted(n.held.items()):
            print(f"{key}\t{text}\t{file}\t{made_by(file)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
