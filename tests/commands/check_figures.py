#!/usr/bin/env python3
"""check_figures.py [FIGURE...]: checks the data that the scripts of plots/
receive.

Each figure is drawn, and its script and data are kept. The data must agree with
the JSON rows of the same runs, from which this file computes them anew. If
gnuplot is installed, each figure is also drawn as SVG, PNG and PDF, and nothing in
the SVG may lie outside of it. Two drawings must be equal byte for byte: each figure
is drawn twice as SVG, and the first one also as PNG and PDF, because the tool removes
the dates of a PDF in one place for all figures.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, need, sample

TRACES = ["gpt2_train", "cudagraph", "leak"]
POLICIES = ["torch", "torch:expandable_segments:True", "best_fit", "tlsf",
            "rmm_arena", "direct", "compact", "plan"]


def run(*arguments, code=(0,)):
    done = subprocess.run([FRAGSIM, *arguments], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in code:
        raise SystemExit(f"fragsim {' '.join(arguments)}: exit "
                         f"{done.returncode}: {done.stderr.strip()}")
    return done.stderr


class Runs:
    """A result file and the JSON rows of the same runs, made once in a folder.
    """

    def __init__(self, folder, name, traces, policies, capacities):
        self.path = os.path.join(folder, name + ".h5")
        rows = os.path.join(folder, name + ".json")
        arguments = [os.path.join(BUNDLED, t + ".pickle.xz") for t in traces]
        for policy in policies:
            arguments += ["-p", policy]
        if not os.path.exists(rows):
            run("replay", "-q", *arguments, "-c", capacities, "-o", self.path,
                "--json", rows)
        with open(rows, encoding="utf-8") as file:
            self.rows = json.load(file)["results"]


def cells(path):
    """The rows of a kept file, as dictionaries with the names in its first
    line."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split("\t") for line in file.read().splitlines() if line]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def draw(folder, runs, figure, *more):
    """Draws a figure from a result file in every format; returns the folder of
    its data."""
    return draw_from(folder, runs.path, figure, *more)


THOROUGHLY = set()  # figures that were drawn in every format


def draw_from(folder, source, figure, *more):
    kept = os.path.join(folder, "kept-" + figure)
    drawn = shutil.which("gnuplot") is not None
    formats = ("svg",) if figure in THOROUGHLY else ("svg", "png", "pdf")
    for suffix in formats:
        is_twice = len(formats) > 1 and (suffix == "svg" or not THOROUGHLY)
        outs = [os.path.join(folder, f"{figure}-{k}.{suffix}")
                for k in "ab"[:1 + is_twice]]
        for out in outs:
            if suffix == "pdf" and out != outs[0]:
                time.sleep(1)  # a date in the file would now differ
            words = run("plot", source, figure, "-f", "-o", out, "--keep", kept,
                        *more, code=(0,) if drawn else (4,))
            assert not drawn or not words, words
        if drawn:
            contents = {open(out, "rb").read() for out in outs}
            assert len(contents) == 1, f"{figure}.{suffix} differs"
            if suffix == "svg":
                inside(outs[0])
    THOROUGHLY.add(figure)
    return kept


SPACE = "{http://www.w3.org/2000/svg}"


def placed(path):
    """Place, size, anchor and words of each level text of an SVG."""
    for group in xml.parse(path).getroot().iter(SPACE + "g"):
        place = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)",
                             group.get("transform", ""))
        text = group.find(SPACE + "text")
        if place and text is not None:
            yield (float(place[1]), float(place[2]),
                   float(group.get("font-size")), group.get("text-anchor"),
                   "".join(text.itertext()))


def inside(path):
    """Checks that every text of an SVG lies inside of it: a letter of Helvetica
    is about half as wide as high."""
    root, seen = xml.parse(path).getroot(), 0
    wide, high = (float(root.get(k)) for k in ("width", "height"))
    for x, y, size, anchor, text in placed(path):
        long = 0.5 * size * len(text)
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        assert 0 <= left <= left + long <= wide and 0 <= y - size / 2 <= high, \
            f"{path}: {text!r} at {left}, {y}, {long} long"
        seen += 1
    assert seen > 2, f"{path}: {seen} texts"


def texts_of(path):
    """The texts of an SVG; empty if it was not drawn."""
    if not os.path.exists(path):
        return []
    root = xml.parse(path).getroot()
    return ["".join(t.itertext())
            for t in root.iter("{http://www.w3.org/2000/svg}text")]


def near(a, b):
    return math.isclose(float(a), float(b), rel_tol=1e-6)


# -- one function a figure ----------------------------------------------------


def roomiest(rows):
    """For each policy and trace, the run with the most memory."""
    best = {}
    for row in rows:
        key = row["policy"], row["trace"]
        room = row["capacity_bytes"] or math.inf
        if key not in best or room > (best[key]["capacity_bytes"] or math.inf):
            best[key] = row
    return best


def several_runs(folder):
    return Runs(folder, "several", TRACES, POLICIES, "1.1x,inf")


def check_breakdown(folder):
    runs = several_runs(folder)
    kept = cells(os.path.join(draw(folder, runs, "breakdown", "--rows", "48"),
                              "breakdown.tsv"))
    assert len(kept) == len(runs.rows)
    parts = list(kept[0])[2:9]
    for cell, row in zip(kept, runs.rows):
        assert [int(cell[p]) for p in parts] == \
            [row[f"at_peak_{p}_bytes"] for p in parts], cell
        assert sum(int(cell[p]) for p in parts) == row["peak_reserved_bytes"]


def check_compare(folder):
    """Up to 24 runs keep their order; more are sorted, those that failed last.
    --measure compares any other number of the results."""
    runs = several_runs(folder)
    assert len(runs.rows) > 24
    for measure, column, mark in (
            ((), "peak_reserved_bytes", "peak_requested_bytes"),
            (("--measure", "fragmentation_ratio"), "fragmentation_ratio", None),
            (("--measure", "first_oom_event"), "first_oom_event", None)):
        for trace in TRACES[0], "*":
            found = cells(os.path.join(
                draw(folder, runs, "compare", "--trace", trace, *measure),
                "compare.tsv"))
            rows = [r for r in runs.rows if trace in ("*", r["trace"])]
            if trace == "*":
                rows = sorted(rows, key=lambda r: (
                    r["num_ooms"] > 0, r[column] is None, r[column] or 0))
            assert [c["known"] == "1" for c in found] == \
                [r[column] is not None for r in rows], (measure, trace)
            assert all(near(c["value"], r[column] or 0)
                       for c, r in zip(found, rows)), (measure, trace)
            assert [int(c["ooms"]) for c in found] == \
                [int(r["num_ooms"] > 0) for r in rows], (measure, trace)
            assert [int(c["mark"]) for c in found] == \
                [r[mark] if mark else 0 for r in rows], (measure, trace)
    for figure, name, hint in (
            ("compare", "peak_reserved_byte", "peak_reserved_bytes"),
            ("compare", "policy", "the numbers are"),
            ("heatmap", "overhead", "shows its own measures")):
        words = run("plot", runs.path, figure, "--measure", name, "-o",
                    os.path.join(folder, "no.svg"), code=(2,))
        assert hint in words, words


def check_need(folder):
    """The need of each policy, as fit finds it."""
    trace = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
    policies = ["torch", "torch:expandable_segments:True", "best_fit", "bfc"]
    chosen = [word for p in policies for word in ("-p", p)]
    path, rows = (os.path.join(folder, "need" + s) for s in (".h5", ".json"))
    run("sweep", "-q", trace, *chosen, "-c", "inf", "--need", "capacity", "-o", path)
    run("fit", "-q", trace, *chosen, "--json", rows)
    with open(rows, encoding="utf-8") as file:
        fits = {r["policy"]: r["need_bytes"] for r in json.load(file)["results"]}
    kept = draw_from(folder, path, "compare", "--measure", "need_bytes")
    found = cells(os.path.join(kept, "compare.tsv"))
    assert {c["label"]: int(c["value"]) for c in found} == fits, (found, fits)


def check_timeline(folder):
    """The steps reach the peaks and do not exceed them."""
    runs = several_runs(folder)
    folder_of = draw(folder, runs, "timeline", "--rows", "48")
    path = os.path.join(folder_of, "timeline.tsv")
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("\n\n\n")
    assert len(blocks) == len(runs.rows)
    for block, row in zip(blocks, runs.rows):
        steps = [list(map(int, line.split("\t")))
                 for line in block.splitlines() if line[0] != "#"]
        assert max(s[2] for s in steps) == row["peak_reserved_bytes"], row
        assert max(s[1] for s in steps) == row["peak_allocated_bytes"], row
        assert steps[-1][0] == row["events"]
        assert [s[0] for s in steps] == sorted(s[0] for s in steps)
    # The point of death is marked: the first OOM of each run.
    deaths = [int(c["first_oom"])
              for c in cells(os.path.join(folder_of, "timeline.runs.tsv"))]
    assert deaths == [-1 if r["first_oom_event"] is None
                      else r["first_oom_event"] for r in runs.rows]
    assert max(deaths) >= 0
    words = texts_of(os.path.join(folder, "timeline-a.svg"))
    assert not words or "first OOM" in words, words


def check_labels(folder):
    """The runs of several files are in their order; a long name keeps its
    ends."""
    long = "torch:garbage_collection_threshold:0.8,roundup_power2_divisions:" \
        "[256:1,512:2,1024:4,>:8],max_split_size_mb:4242"
    one = Runs(folder, "first", ["leak"], ["torch", "direct"], "inf")
    two = Runs(folder, "second", ["leak"], ["tlsf", long], "inf")
    kept = os.path.join(folder, "kept-labels")
    run("plot", one.path, two.path, "compare", "-p", "direct", "-p", "t*:*", "-p",
        "tlsf", "-o", os.path.join(folder, "labels.svg"), "--keep", kept,
        code=(0,) if shutil.which("gnuplot") else (4,))
    labels = [c["label"] for c in cells(os.path.join(kept, "compare.tsv"))]
    assert (labels[0], labels[1]) == ("direct", "tlsf"), labels
    start, end = labels[2].split("…")
    assert long.startswith(start) and long.endswith(end), labels
    assert len(labels[2]) == 57 and len(start) > len(end) > 10, labels


def check_heatmap(folder):
    runs = several_runs(folder)
    best = roomiest(runs.rows)
    kept = draw(folder, runs, "heatmap")
    columns = [c["trace"] for c in cells(os.path.join(kept,
                                                      "heatmap.traces.tsv"))]
    assert sorted(columns) == sorted(TRACES)
    seen, means = set(), {}
    for cell in cells(os.path.join(kept, "heatmap.tsv")):
        if int(cell["column"]) == len(columns):
            means[int(cell["row"])] = cell
            continue
        row = best[cell["policy"], columns[int(cell["column"])]]
        assert math.isclose(float(cell["ratio"]), row["peak_reserved_bytes"] /
                            row["lower_bound_bytes"], rel_tol=1e-5), cell
        assert int(cell["ooms"]) == row["num_ooms"], cell
        seen.add((cell["policy"], cell["column"]))
    assert len(seen) == len(POLICIES) * len(columns)
    lost = {p: sum(r["num_ooms"] > 0 for r in runs.rows if r["policy"] == p and
                   r["capacity_bytes"]) for p in POLICIES}
    ordered = [(lost[means[i]["policy"]], float(means[i]["ratio"]))
               for i in range(len(POLICIES))]
    assert ordered == sorted(ordered) and min(r for _, r in ordered) >= 1, ordered


def check_frontier(folder):
    capacities = "1x,1.02x,1.1x,inf"
    one = Runs(folder, "one", ["gpt2_train"], POLICIES, capacities)
    kept = cells(os.path.join(draw(folder, one, "frontier"), "frontier.tsv"))
    assert len(kept) == len(one.rows)
    rooms = sorted({r["capacity_bytes"] or math.inf for r in one.rows})
    for cell in kept:
        room = rooms[int(cell["column"])]
        row = next(r for r in one.rows if r["policy"] == cell["policy"] and
                   (r["capacity_bytes"] or math.inf) == room)
        hopeless = room < row["demand_bytes"]
        assert (int(cell["runs"]), int(cell["impossible"]), int(cell["hopeless"])) == \
            (not hopeless, hopeless, 1), cell
        if hopeless:
            continue
        assert int(cell["ooms"]) == row["num_ooms"], cell
        assert int(cell["survived"]) == (row["num_ooms"] == 0), cell
        done = 1 if row["first_oom_event"] is None else \
            row["first_oom_event"] / row["events"]
        assert abs(float(cell["done"]) - done) < 1e-5, cell
        assert cell["share"] == ("" if room == math.inf else
                                 capacities.split(",")[int(cell["column"])])
    fits = [sum(int(c["survived"]) for c in kept if int(c["row"]) == i)
            for i in range(len(POLICIES))]
    assert fits == sorted(fits, reverse=True), fits

    # Over several traces a column is a share.
    runs = several_runs(folder)
    kept = cells(os.path.join(draw(folder, runs, "frontier"), "frontier.tsv"))
    assert {c["capacity"] for c in kept} == {"1.1x", "unlimited"}
    for cell in kept:
        limited = cell["capacity"] != "unlimited"
        mine = [r["num_ooms"] == 0 for r in runs.rows
                if r["policy"] == cell["policy"] and
                (r["capacity_bytes"] is not None) == limited]
        assert (int(cell["runs"]), int(cell["survived"])) == \
            (len(TRACES), sum(mine)), cell


def check_lacking(folder):
    """What cannot be drawn of these runs says what it needs."""
    bare = os.path.join(folder, "bare.h5")
    run("replay", "-q", os.path.join(BUNDLED, "leak.pickle.xz"), "--points",
        "0", "-o", bare)
    for figure in ("frontier", "timeline"):
        words = run("plot", bare, figure, "-o",
                    os.path.join(folder, "no.svg"), code=(2,))
        assert "it needs" in words or "no series" in words, words
        assert not os.path.exists(os.path.join(folder, "no.svg"))


def check_pareto(folder):
    several = several_runs(folder)
    best = roomiest(several.rows)
    points = {}
    for policy in POLICIES:
        mine = [best[policy, t] for t in TRACES]
        ratios = [r["peak_reserved_bytes"] / r["lower_bound_bytes"]
                  for r in mine]
        points[policy] = (math.prod(ratios) ** (1 / len(ratios)),
                          sum(r["modelled_device_seconds"] for r in mine))
    rivals = [p for p in POLICIES if p != "plan"]

    def beaten(policy):
        a = points[policy]
        return any(b != a and b[0] <= a[0] and b[1] <= a[1]
                   for b in (points[r] for r in rivals))

    kept = cells(os.path.join(draw(folder, several, "pareto"), "pareto.tsv"))
    assert len(kept) == len(POLICIES)
    assert [float(k["seconds"]) for k in kept] == \
        sorted(float(k["seconds"]) for k in kept)
    for cell in kept:
        policy = cell["policy"].split(",")[0]
        assert near(cell["memory"], points[policy][0]), cell
        assert near(cell["seconds"], points[policy][1]), cell
        expected = "offline" if policy == "plan" else \
            "beaten" if beaten(policy) else "front"
        assert cell["kind"] == expected, cell
    assert {c["kind"] for c in kept} == {"offline", "beaten", "front"}

    # One trace: bytes, and who fails is on no front.
    one = Runs(folder, "two", ["gpt2_train"], ["torch", "direct"], "1.02x")
    kept = cells(os.path.join(draw(folder, one, "pareto"), "pareto.tsv"))
    rows = {r["policy"]: r for r in one.rows}
    assert rows["torch"]["num_ooms"] > 0
    for cell in kept:
        row = rows[cell["policy"].split(",")[0]]
        assert int(float(cell["memory"])) == row["peak_reserved_bytes"], cell
        assert int(cell["bound"]) == row["lower_bound_bytes"], cell
        assert cell["kind"] == ("failed" if row["num_ooms"] else "front"), cell


# -- the pictures of answers ---------------------------------------------------


def draw_answer(folder, command, trace, *more):
    """Draws the picture of a command in every format; returns its data and
    its JSON."""
    kept = os.path.join(folder, "kept-" + command)
    answer = os.path.join(folder, command + ".json")
    drawn = shutil.which("gnuplot") is not None
    for suffix in ("svg", "png", "pdf"):
        outs = [os.path.join(folder, f"{command}-{k}.{suffix}") for k in "ab"]
        for out in outs:
            if os.path.exists(out):
                os.unlink(out)
            words = run(command, os.path.join(BUNDLED, trace + ".pickle.xz"),
                        "-q", "-f", "--json", answer, "-o", out, "--keep", kept,
                        *more, code=(0,) if drawn else (4,))
            assert not drawn or not words, words
        if drawn:
            assert len({open(out, "rb").read() for out in outs}) == 1, suffix
    if not drawn:  # then there is no JSON either
        run(command, os.path.join(BUNDLED, trace + ".pickle.xz"), "-q", "-f",
            "--json", answer, *more)
    else:
        inside(os.path.join(folder, command + "-a.svg"))
    with open(answer, encoding="utf-8") as file:
        return kept, json.load(file)["results"][0]


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else \
        (values[middle - 1] + values[middle]) / 2


def slope(values):
    return (values[-1] - values[0]) / (len(values) - 1)


def check_steps(folder):
    for trace, more in (("lstm_varlen__cap_below", ()),
                        ("leak_frames", ("-c", "460MiB")),
                        ("leak_frames", ("-c", "80GiB")),
                        ("lstm_varlen__cap_below", ("-c", "4GiB"))):
        kept, answer = draw_answer(folder, "steps", trace, *more)
        facts, = cells(os.path.join(kept, "steps.facts.tsv"))
        bars = cells(os.path.join(kept, "steps.tsv"))
        parts = answer["parts"]
        count = sum(p["part"] == "step" for p in parts)
        assert int(facts["steps"]) == count == answer["num_steps"], facts
        assert [b["part"] for b in bars] == [p["part"] for p in parts]
        assert [float(b["step"]) for b in bars] == \
            [p["step"] or (0 if p["part"] == "before" else count + 1)
             for p in parts]
        for cell, part in zip(bars, parts):
            assert [int(cell[k]) for k in list(cell)[2:]] == \
                [part[k] for k in ("live_at_begin_bytes", "peak_requested_bytes",
                                   "peak_reserved_bytes", "num_ooms")], cell
        texts = texts_of(os.path.join(folder, "steps-a.svg"))
        # The bound of a recording that died is drawn too.
        assert not texts or ("bound" in texts) == \
            ("80GiB" not in more), texts

    # With too many steps for bars, a bar shows the largest of several.
    long = os.path.join(folder, "long.h5")
    run("gen", "-q", "training:steps=1300", "-o", long)
    kept = os.path.join(folder, "kept-long")
    run("steps", long, "-q", "-o", os.path.join(folder, "long.svg"), "--keep",
        kept, "--json", os.path.join(folder, "long.json"),
        code=(0,) if shutil.which("gnuplot") else (4,))
    facts, = cells(os.path.join(kept, "steps.facts.tsv"))
    bars = cells(os.path.join(kept, "steps.tsv"))
    assert int(facts["steps"]) > 1200 and int(facts["stride"]) == 3, facts
    assert 400 < len(bars) < 502, len(bars)


def check_leaks(folder):
    for trace, more, verdict in (
            ("leak_frames", ("-c", "80GiB"), "leak"), ("leak", (), "leak"),
            ("leak_cpp", (), "leak"),
            ("lstm_varlen__cap_below", ("-c", "6GiB"), "none"),
            ("late_start", (), "unknown")):
        kept, answer = draw_answer(folder, "leaks", trace, *more)
        facts, = cells(os.path.join(kept, "leaks.facts.tsv"))
        sites = cells(os.path.join(kept, "leaks.sites.tsv"))
        assert facts["verdict"] == answer["verdict"] == verdict, facts
        assert len(sites) == len(answer["leaks"]) == int(facts["leaks"])
        with open(os.path.join(kept, "leaks.tsv"), encoding="utf-8") as file:
            blocks = file.read().split("\n\n\n")[:-1]
        assert len(blocks) == len(sites)
        rows = cells(os.path.join(kept, "leaks.windows.tsv"))
        begin = [float(row["unit"]) for row in rows]
        assert len(rows) == answer["num_windows"], rows
        assert [row["to"] for row in rows[:-1]] == \
            [row["unit"] for row in rows[1:]], rows
        for block, site, leak in zip(blocks, sites, answer["leaks"]):
            held = [[float(cell) for cell in line.split("\t")]
                    for line in block.splitlines() if line[0] != "#"]
            assert [at for at, _ in held][:len(begin)] == begin, site
            assert near(site["last"], held[-1][0]), site
            late = [value for at, value in held if at >= float(site["from"])]
            assert near(late[-1] - late[0], leak["growth_bytes_per_step"] *
                        (held[-1][0] - float(site["from"]))), site
            assert sum(b > a for a, b in zip(late, late[1:])) == \
                leak["num_windows_growing"], site
            assert len(late) - 1 == leak["num_windows_examined"], site
            assert near(site["base"], median(
                [v - slope(late) * i for i, v in enumerate(late)])), site
            assert (leak["function"] or "blocks of") in site["label"], site
        reach = answer["least_steps_to_oom"]
        assert float(facts["least"]) == (-1 if reach is None else reach), facts
        assert not rows or answer["peak_requested_bytes"] == max(
            int(row["peak_requested"]) for row in rows
            if float(row["unit"]) >= float(facts["from"])), rows
        texts = texts_of(os.path.join(folder, "leaks-a.svg"))
        assert not texts or any(s["label"] in t.replace("\xa0", " ")
                                for s in sites for t in texts) or not sites
    # A picture shows one trace, and is not drawn over a file.
    paths = [os.path.join(BUNDLED, t + ".pickle.xz") for t in TRACES]
    out = os.path.join(folder, "taken.svg")
    for command in ("steps", "leaks"):
        assert "one trace" in run(command, *paths, "-o", out, code=(2,))
        assert "FILE.svg" in run(command, paths[0], "-o", "no.gif", code=(2,))
    assert not os.path.exists(out)
    with open(out, "w", encoding="utf-8"):
        run("leaks", paths[0], "-o", out, code=(4,))


# -- many runs ----------------------------------------------------------------

MOST_WIDE, MOST_HIGH = 1800, 2000  # pixels
LONG = "a_training_job_with_a_long_name_and_seed_{}_on_eight_gpus_of_a_node"
# Names are data: nothing of them may be read as gnuplot, XML or shell.
NAMES = ["#1 {Symbol a}^b_c @d &{e}", "it's 'q' `id` $(id) <b>x",
         "&amp; %d %s \\n \\\\ \\'"]
LIMITS = {"timeline": 48, "compare": 1000, "breakdown": 48, "heatmap": 56,
          "frontier": 60, "pareto": 32}


class Grid:
    """A sweep with details over made-up traces, made once in a folder."""

    def __init__(self, folder, name, traces, *arguments):
        self.path = os.path.join(folder, name + ".h5")
        rows = os.path.join(folder, name + ".json")
        paths = []
        for seed, trace in enumerate(traces):
            paths.append(os.path.join(folder, trace + ".h5"))
            if not os.path.exists(paths[-1]):
                run("gen", "-q", "training:steps=1", "--seed", str(seed + 1),
                    "-o", paths[-1])
        if not os.path.exists(rows):
            run("sweep", "-q", *paths, *arguments, "-o", self.path, "--json",
                rows)
        with open(rows, encoding="utf-8") as file:
            self.rows = json.load(file)["results"]


def many_traces(folder):
    """324 runs; 24 long names differ in their middle."""
    return Grid(folder, "traces", [LONG.format(i) for i in range(24)] + NAMES,
                "-p", "torch", "-p", "tlsf:segment=2MiB", "-p",
                "tlsf:segment=64MiB", "-p", "direct", "-c", "1x,1.1x,inf",
                "--points", "50")


def many_policies(folder):
    """372 runs of one trace."""
    both = ("best_fit", "first_fit")
    values = [""] + [f":segment={size}MiB" for size in range(2, 31, 2) if size != 20]
    return Grid(folder, "policies", [LONG.format(0)], "-p", "torch",
                *(f"-p{policy}{value}" for policy in both for value in values), "-c",
                ",".join(f"{1 + i / 50}x" for i in range(12)),
                "--points", "50")


def few(folder, name, traces, *arguments):
    return Grid(folder, name, [LONG.format(i) for i in range(traces)], "-p",
                "torch", "-p", "tlsf:segment=2MiB", "-p", "tlsf", *arguments,
                "--points", "50")


def size_of(path):
    """Width and height of a PNG."""
    with open(path, "rb") as file:
        head = file.read(24)
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:], "big")


def draw_small(folder, runs, figure, *more, formats=(".png", ".svg")):
    """Draws a figure, and checks the size of the PNG; returns the texts of the
    SVG, what the tool says, and the folder of the data."""
    drawn = shutil.which("gnuplot") is not None
    kept = os.path.join(folder, "kept-" + figure)
    out = os.path.join(folder, "small-" + figure)
    for suffix in formats:
        words = run("plot", runs.path, figure, "-f", "-o", out + suffix,
                    "--keep", kept, *more, code=(0,) if drawn else (4,))
    if not drawn:
        return [], "", kept
    if ".png" in formats:
        wide, high = size_of(out + ".png")
        assert wide <= MOST_WIDE, (figure, wide)
        # The figure of all runs grows, so that no label meets another one.
        assert high <= (18 * 400 + 300 if figure == "compare" else MOST_HIGH), \
            (figure, high)
    if ".svg" in formats:
        inside(out + ".svg")
    return texts_of(out + ".svg"), words, kept


def hinted(texts, words, count):
    """Checks that figure and tool say what is left out."""
    if not texts:  # without gnuplot
        return
    hint = "choose with --policy, --trace, --capacity or --rows N"
    assert f"showing {count}" in words and hint in words, words
    assert any(f"Showing {count}" in t and hint in t for t in texts), texts
    assert any(t.startswith("Shown: ") for t in texts), texts


def apart(path, count):
    """Checks that so many labels end at one place, none over another one."""
    if not os.path.exists(path):
        return
    places = [(x, y) for x, y, _, anchor, _ in placed(path) if anchor == "end"]
    column = max({x for x, _ in places},
                 key=lambda x: sum(p[0] == x for p in places))
    rows = sorted(y for x, y in places if x == column)
    assert len(rows) == count, len(rows)
    assert min(b - a for a, b in zip(rows, rows[1:])) > 14, rows


def check_scale(folder):
    """Every figure at 3, 30 and 300 runs, and at its highest limit."""
    traces, policies = many_traces(folder), many_policies(folder)
    assert len(traces.rows) == 324 and len(policies.rows) == 372
    for runs, figure, count in (
            (traces, "timeline", "12 of 324 runs"),
            (traces, "breakdown", "24 of 324 runs"),
            (traces, "heatmap", "24 of 27 traces"),
            (policies, "frontier", "9 of 12 capacities")):
        hinted(*draw_small(folder, runs, figure)[:2], count)
        draw_small(folder, runs, figure, "--rows", str(LIMITS[figure]),
                   formats=(".png",))
        words = run("plot", runs.path, figure, "-o",
                    os.path.join(folder, "no.svg"), "--rows",
                    str(LIMITS[figure] + 1), code=(2,))
        assert f"at most {LIMITS[figure]} " in words, words
    texts, words, kept = draw_small(folder, traces, "compare")
    assert not words and len(cells(os.path.join(kept, "compare.tsv"))) == 324
    apart(os.path.join(folder, "small-compare.svg"), 324)
    words = run("plot", traces.path, "compare", "-o", "no.svg", "--rows",
                "1001", code=(2,))
    assert "at most 1000 runs" in words, words
    for figure, limit, count in (
            ("frontier", "20", "20 of 31 policies and 9 of 12 capacities"),
            ("heatmap", "20", "20 of 31 policies"), ("pareto", "4", "4 of ")):
        hinted(*draw_small(folder, policies, figure, "--rows", limit)[:2],
               count)
    for runs in (few(folder, "3", 1, "-c", "1.1x"),
                 few(folder, "30", 5, "-c", "1x,1.1x")):
        for figure in sample(list(LIMITS), 2):
            words = draw_small(folder, runs, figure, formats=(".png",))[1]
            assert len(runs.rows) > 3 or not words, words


def check_choice(folder):
    """The first runs are shown; the options choose others."""
    runs = many_traces(folder)
    for most in (12, 30):
        kept = draw_small(folder, runs, "compare", "--rows", str(most),
                          formats=(".svg",))[2]
        found = [int(c["value"])
                 for c in cells(os.path.join(kept, "compare.tsv"))]
        assert sorted(found) == sorted(r["peak_reserved_bytes"]
                                       for r in runs.rows[:most])

    def chosen(*options):
        kept = draw_small(folder, runs, "breakdown", *options,
                          formats=(".svg",))[2]
        return [sum(int(c[p]) for p in list(c)[2:9])
                for c in cells(os.path.join(kept, "breakdown.tsv"))]

    def expected(wanted):
        return [r["peak_reserved_bytes"] for r in runs.rows if wanted(r)]

    one = LONG.format(7)
    assert chosen("--trace", one, "-p", "torch", "-p", "direct") == \
        expected(lambda r: r["trace"] == one and
                 r["policy"] in ("torch", "direct"))
    peaks = {r["trace"]: r["peak_requested_bytes"] for r in runs.rows
             if r["capacity_bytes"] is None}
    assert chosen("--trace", "*seed_1?_*", "--policy", "tlsf*=64MiB", "-c",
                  "1.1x,inf") == \
        expected(lambda r: "seed_1" in r["trace"] and "_1_" not in r["trace"]
                 and r["policy"] == "tlsf:segment=64MiB" and
                 r["capacity_bytes"] != peaks[r["trace"]])
    for options, hint in (
            (("-p", "torh"), 'did you mean "torch"'),
            (("--trace", "nothing"), "--trace: no run"),
            (("-c", "9TiB"), "no run has the wanted"),
            (("-c", "much"), "much")):
        words = run("plot", runs.path, "compare", *options, "-o",
                    os.path.join(folder, "no.svg"), code=(2,))
        assert hint in words, words


def check_names(folder):
    """Long names stay distinct, and no name is more than a text."""
    runs = many_traces(folder)
    kept = draw_small(folder, runs, "heatmap")[2]
    columns = [c["trace"] for c in cells(os.path.join(kept,
                                                      "heatmap.traces.tsv"))]
    assert len(set(columns)) == 24 and max(map(len, columns)) <= 30, columns
    for figure in ("compare", "breakdown", "timeline"):
        texts, _, kept = draw_small(folder, runs, figure, "-p", "direct", "-c",
                                    "inf", "--rows", "27", formats=(".svg",))
        file = figure + (".runs.tsv" if figure == "timeline" else ".tsv")
        rows = cells(os.path.join(kept, file))
        labels = [r["name" if figure == "timeline" else "label"].replace(
            "\\\\", "\\") for r in rows]
        assert len(set(labels)) == 27 and max(map(len, labels)) < 40, labels
        texts = [t.replace("\xa0", " ") for t in texts]
        for name in NAMES if texts else []:
            assert any(t.startswith(name) for t in texts), (name, texts)
        assert not texts or set(labels) <= set(texts), texts
    # In the terminal, no column is pushed out; JSON has the full names.
    done = subprocess.run(
        [FRAGSIM, "replay", "-q",
         *(os.path.join(folder, LONG.format(i) + ".h5") for i in range(9))],
        capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(done) == 10 and len(set(line[:34] for line in done)) == 10, done
    assert max(map(len, done)) < 160, done
    assert {r["trace"] for r in runs.rows} == \
        {LONG.format(i) for i in range(24)} | set(NAMES)


# -- the look -----------------------------------------------------------------

PAPERS = {"light": "#ffffff", "dark": "#15181d", "print": "#ffffff"}


def check_look(folder):
    """--title and --theme."""
    runs = several_runs(folder)
    title = "A title & <more> of 'mine'"
    out = os.path.join(folder, "look")
    drawn = shutil.which("gnuplot") is not None
    for command in sample((
            ("plot", runs.path, "timeline", "-o"),
            ("plot", runs.path, "heatmap", "-o")), 2):
        for theme, paper in PAPERS.items():
            run(*command, out + ".svg", "-f", "-q", "--title", title, "--theme", theme,
                code=(0,) if drawn else (4,))
            if not drawn:
                continue
            assert title in [t.replace("\xa0", " ")
                             for t in texts_of(out + ".svg")], command
            with open(out + ".svg", encoding="utf-8") as file:
                text = file.read()
            assert f'fill="{paper}"' in text.lower(), (command, theme)
            inside(out + ".svg")
        words = run(*command, out + ".no.svg", "--theme", "blue", code=(2,))
        assert "blue" in words, words
        assert not os.path.exists(out + ".no.svg")
    # A page has the look in each of its figures, and the title once.
    if drawn:
        run("report", runs.path, "-o", out + ".html", "-q", "--title", title,
            "--theme", "dark")
        with open(out + ".html", encoding="utf-8") as file:
            page = file.read()
        figures = page.split("<svg")[1:]
        assert len(figures) > 3
        for tag in "title", "h1":
            assert f"<{tag}>A title &amp; &lt;more" in page, tag
        assert all('"#15181d"' in f.lower() for f in figures)


def check_hover(folder):
    """Where the mouse rests, a browser shows words and no source of gnuplot."""
    paths = [os.path.join(folder, n) for n in os.listdir(folder)
             if n.endswith(".svg")]
    paths = [path for path in paths if os.path.getsize(path)]
    if not paths:
        draw(folder, several_runs(folder), "compare")
        draw(folder, several_runs(folder), "heatmap")
        paths = [os.path.join(folder, f"{n}-a.svg")
                 for n in ("compare", "heatmap")]
    for path in paths if shutil.which("gnuplot") else ():
        titles = [t.text for t in xml.parse(path).getroot().iter(
            SPACE + "title")]
        assert len(titles) > 1, path
        for title in titles:
            assert title and not re.search(
                r"\$\d|\busing\b|skip 1|NaN|gnuplot|\?.*:.*\(", title,
                re.I), f"{path}: {title}"


def lightness(color):
    """L* of a colour, from 0, black, to 100, white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
              for c in (int(color[i:i + 2], 16) / 255 for i in (1, 3, 5))]
    y = sum(k * c for k, c in zip((0.2126, 0.7152, 0.0722), linear))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def check_colors(_):
    """In grey, each colour of data differs from the others and from paper."""
    plots = os.path.join(os.path.dirname(__file__), "..", "..", "plots")
    with open(os.path.join(plots, "canvas.gp"), encoding="utf-8") as file:
        text = file.read()
    themes = text.split("paper = ")[1:]
    assert len(themes) == len(PAPERS)
    for theme in themes:
        paper = re.match(r'"(#\w{6})"', theme)[1]
        lines = re.search(r"line_ink\[6\] = \[(.*?)\]", theme, re.S)[1]
        for inks in (re.findall(r'ink_\w+ = "(#\w{6})"', theme),
                     re.findall(r"#\w{6}", lines)):
            assert len(inks) in (6, 7), inks
            greys = sorted(map(lightness, [i for i in inks]))
            least = min(b - a for a, b in zip(greys, greys[1:]))
            assert least >= 7, (inks, greys)
            assert min(abs(g - lightness(paper)) for g in greys) >= 7, inks
    for name in os.listdir(plots):  # no script has colours of its own
        if name.endswith(".gp") and name != "canvas.gp":
            with open(os.path.join(plots, name), encoding="utf-8") as file:
                assert not re.findall(r'"#[0-9A-Fa-f]{6}"', file.read()), name


CHECKS = {name[6:]: function for name, function in list(globals().items())
          if name.startswith("check_")}


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CHECKS:
            CHECKS[name](folder)
            print(f"{name}: correct")
    return 0


if __name__ == "__main__":
    sys.exit(main())
