#!/usr/bin/env python3
"""check_tune.py: compares the results of `fragsim tune` with `fragsim replay`.

It uses an artificial trace whose optimum is known. `replay` must confirm the
figures of the best and the chosen setting and of the held-out half. The best
setting must be no worse than any point of this script's own grid, and the first
rung of the ladder no worse than any single setting. The choice must follow
--tolerance and --simplest, the bounds must hold, and the same seed must give the
same bytes on any number of threads. No export line may appear without a setting
within the bounds. The streams of --verify-with must be those of the trace, a
terminal must see the progress of the search, and the example script must find
the setting that fits.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import csv
import io
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

import terminal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
MIB = 2 ** 20
CALLS = ("num_segment_alloc", "num_segment_free", "num_map", "num_unmap",
         "num_copy", "num_synchronize")
faults = []


def expect(true, what):
    if not true:
        faults.append(what)


def bundled(name):
    return os.path.join(ROOT, "traces/bundled", name + ".pickle.xz")


def run(*arguments, code=0):
    done = subprocess.run([FRAGSIM, *map(str, arguments)], text=True,
                          capture_output=True, check=False)
    if done.returncode != code:
        raise SystemExit(f"fragsim {arguments}: exit {done.returncode}, not "
                         f"{code}: {done.stderr}")
    return done.stdout


def tune(path, *options, code=0):
    text = run("tune", "-q", path, "--json", "-", *options, code=code)
    return json.loads(text)["results"][0]


def replay(path, settings, capacity="inf"):
    policies = []
    for conf in settings:
        policies += ["-p", f"torch:{conf}"]
    text = run("replay", "-q", path, "--csv", "-", "--stop-at-oom", "-c",
               capacity, *policies)
    return list(csv.DictReader(io.StringIO(text)))


def figures(row):
    """A row of replay with tune's names."""
    oom = row["first_oom_event"]
    return {"peak_reserved_bytes": int(row["peak_reserved_bytes"]),
            "driver_calls": sum(int(row[name]) for name in CALLS),
            "modelled_device_seconds": float(row["modelled_device_seconds"]),
            "first_oom_event": int(oom) if oom else None}


def write_events(path, events):
    with open(path, "w", encoding="ascii") as out:
        out.write("op,id,bytes,stream\n")
        out.writelines(f"{','.join(map(str, e))}\n" for e in events)


def steps_of_growing_size(path):
    """One block at a time, each larger than the last. Each needs its own
    segment, 680 MiB in total, unless free memory grows with the request or
    requests are rounded to equal sizes. Then 128 MiB are the least for 127."""
    events = []
    for size in (100, 105, 110, 115, 120, 127):
        events += [("alloc", 1, size * MIB, 0), ("free", 1, 0, 0)]
    write_events(path, events)


def known_answer(folder):
    path = os.path.join(folder, "growing.csv")
    steps_of_growing_size(path)
    for options in ([], ["--no-vmm"], ["--capacity", "130MiB"]):
        answer = tune(path, "--no-hold-out", *options)
        case = answer["cases"][0]
        expect(case["default"]["peak_reserved_bytes"] == 680 * MIB,
               f"growing {options}: default {case['default']}")
        expect(case["best"]["peak_reserved_bytes"] == 128 * MIB,
               f"growing {options}: best {case['best']}")
        expect("expandable" not in answer["best"]["settings"]
               or "--no-vmm" not in options, f"growing {options}: uses VMM")
    nothing_fits(path)
    answer = tune(path, "--no-vmm", "--without", "roundup_power2_divisions",
                  "--without", "max_split_size_mb", "--no-hold-out")
    expect(answer["best"]["settings"] == "",
           f"nothing helps, and it found {answer['best']['settings']}")


def nothing_fits(path):
    """The requests ask for 127 MiB. All settings reserve at least 128."""
    answer = tune(path, "--capacity", "127MiB", code=1)
    expect(answer["chosen"] is None and not answer["best"]["within_bounds"]
           and not answer["impossible"], f"127 MiB: {answer['chosen']}")
    answer = tune(path, "--capacity", "126MiB", code=1)
    expect(answer["impossible"] == [{
        "trace": "growing", "device": 0, "asked_bytes": 127 * MIB,
        "event": 10, "predicted": False}] and answer["settings_tried"] == 0,
        f"126 MiB: {answer['impossible']}, {answer['settings_tried']} tried")
    for capacity in ("127MiB", "126MiB"):
        lines = run("tune", "-q", path, "-c", capacity, "--no-hold-out",
                    code=1).splitlines()
        expect(lines and all(line.startswith("#") for line in lines),
               f"{capacity}: a line for the shell: {lines[-1:]}")


def between_the_grid(folder):
    """Two blocks of 7 MiB fill a segment of 14 MiB, which is in no coarse grid:
    12 MiB hold one block, 16 MiB waste 2 MiB."""
    path = os.path.join(folder, "sevens.csv")
    write_events(path, [(op, block, 7 * MIB if op == "alloc" else 0, 0)
                        for op in ("alloc", "free") for block in (1, 2)])
    for options in ([], ["--no-vmm"]):
        best = tune(path, "--no-hold-out", "--evaluations", "0",
                    *options)["cases"][0]["best"]
        expect(best["peak_reserved_bytes"] == 14 * MIB, f"sevens: {best}")


def grid(vmm):
    """Settings that this script chooses itself."""
    for expandable, large, split, division in itertools.product(
            (False, True), (20, 32, 64), (None, 64, 256), (None, 2, 4, 8)):
        if expandable and (not vmm or split):
            continue
        parts = ["expandable_segments:True"] if expandable else []
        parts += [f"large_segment_size_mb:{large}"] if large != 20 else []
        parts += [f"max_split_size_mb:{split}"] if split else []
        parts += [f"roundup_power2_divisions:{division}"] if division else []
        yield ",".join(parts)


def no_worse(name, *options, vmm=True):
    path = bundled(name)
    answer = tune(path, "--no-hold-out", *options)
    case, settings = answer["cases"][0], answer["best"]["settings"]
    rows = replay(path, ["", settings, *grid(vmm)])
    expect(figures(rows[0]) == case["default"], f"{name}: default {case}")
    expect(figures(rows[1]) == case["best"], f"{name}: {settings}: {case}")
    ratio = float(options[1]) if "--max-calls-ratio" in options else None
    most = case["default"]["driver_calls"] * (1 + (ratio or 0))
    for row in rows:
        found = figures(row)
        if ratio is not None and found["driver_calls"] > most:
            continue
        expect(found["peak_reserved_bytes"] >=
               case["best"]["peak_reserved_bytes"],
               f"{name} {options}: {row['policy']} is better")
    if ratio is not None:
        expect(case["best"]["driver_calls"] <= most, f"{name}: the bound")
    return answer


KNOBS = {"expandable_segments": ["True"],
         "large_segment_size_mb": [12, 14, 16, 18, *range(22, 30, 2), 32, 36,
                                   40, 48, 64, 80, 96, 128, 192, 256, 384, 512],
         "max_split_size_mb": [20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160,
                               192, 256, 320, 384, 512, 640, 768, 1024],
         "roundup_power2_divisions": [2, 4, 8, 16, 32, 64]}


def one_knob():
    return [f"{knob}:{value}" for knob, values in KNOBS.items()
            for value in values]


def within_calls(row, case, options):
    """Whether a row of replay is within --max-calls-ratio, if it is given."""
    if "--max-calls-ratio" not in options:
        return True
    ratio = float(options[options.index("--max-calls-ratio") + 1])
    most = case["default"]["driver_calls"] * (1 + ratio)
    return figures(row)["driver_calls"] <= most


def memory_and_time(row):
    found = figures(row)
    return found["peak_reserved_bytes"], found["modelled_device_seconds"]


def choices(name, *options):
    """The choice is replayed, follows the tolerance, and is on the ladder. With
    one knob the ladder has the best single setting."""
    path = bundled(name)
    options = ("--no-hold-out", "--evaluations", "0", *options)
    answer = tune(path, *options)
    case, chosen, best = answer["cases"][0], answer["chosen"], answer["best"]
    rows = replay(path, [chosen["settings"], "", *one_knob()])
    expect(figures(rows[0]) == case["chosen"], f"{name}: chosen {case}")
    lost = best["saving_ratio"] - chosen["saving_ratio"]
    spared = best["knobs"] - chosen["knobs"]
    expect(lost <= max(0.01 * best["saving_ratio"], 0.001 * spared),
           f"{name}: {chosen} gives up {lost}")
    ladder = answer["ladder"]
    for rung in (chosen, best):
        expect(rung in ladder, f"{name}: {rung} is not on the ladder")
    expect(ladder[0]["settings"] == "" and ladder[-1] == best,
           f"{name}: ladder {ladder}")
    expect(all(a["knobs"] <= b["knobs"] for a, b in
               itertools.pairwise(ladder)), f"{name}: ladder {ladder}")
    alone = [row for row in rows[2:] if within_calls(row, case, options)]
    first = [rung for rung in ladder if rung["knobs"] == 1] or ladder[:1]
    found = replay(path, [first[0]["settings"]])[0]
    expect(memory_and_time(found) <= min(map(memory_and_time, alone)),
           f"{name} {options}: {first[0]} is not the best single setting")
    exact = tune(path, *options, "--tolerance", "0")
    expect(exact["best"] == best and exact["chosen"]["saving_ratio"] ==
           best["saving_ratio"], f"{name}: tolerance 0: {exact['chosen']}")


def simplest(folder):
    """The default reserves 20 + 12 MiB. It does not survive 28, but one knob
    does, and saves as much as two. At 32 MiB it is the simplest itself."""
    path = os.path.join(folder, "four.csv")
    write_events(path, [("alloc", 1, 5 * MIB, 0), ("alloc", 2, 5 * MIB, 0),
                        ("alloc", 3, 5 * MIB, 0), ("free", 2, 0, 0),
                        ("alloc", 4, 12 * MIB, 0)])
    options = ("--simplest", "--no-hold-out", "--evaluations", "0", "-c")
    chosen = tune(path, *options, "28MiB")["chosen"]
    rows = replay(path, [chosen["settings"], ""], "28MiB")
    expect(chosen["knobs"] == 1 and not rows[0]["first_oom_event"] and
           rows[1]["first_oom_event"], f"simplest at 28 MiB: {chosen}")
    chosen = tune(path, *options, "32MiB")["chosen"]
    expect(chosen["settings"] == "", f"simplest at 32 MiB: {chosen}")
    chosen = tune(path, *options[1:], "32MiB")["chosen"]
    expect(chosen["knobs"] == 1, f"not the simplest at 32 MiB: {chosen}")


def versions(folder):
    known = {"2.0": set(KNOBS) - {"expandable_segments",
                                  "large_segment_size_mb"},
             "2.6": set(KNOBS) - {"large_segment_size_mb"} |
             {"max_non_split_rounding_mb"},
             "2.10.0+cu128": set(KNOBS) - {"large_segment_size_mb"} |
             {"max_non_split_rounding_mb"},
             "2.11": set(KNOBS) | {"max_non_split_rounding_mb"}}
    used = set()
    for version, names in known.items():
        answer = tune(bundled("multistream"), "--torch-version", version,
                      "--evaluations", "60")
        jobs = os.path.join(folder, "versions." + version)
        text = run("tune", "-q", bundled("multistream"), "--torch-version",
                   version, "--evaluations", "60", "--verify-with", jobs)
        found = set(re.findall(r"([a-z_0-9]+_[a-z_0-9]+):[T0-9\[]", text))
        expect(found and found <= names, f"{version}: {found - names}")
        expect("max_split_size_mb:20," not in text + "," or version > "2.9"
               or version.startswith(("2.10", "2.11")), f"{version}: split 20")
        expect(answer["chosen"]["settings"] in text, f"{version}: {answer}")
        used |= found
    expect(used >= {"expandable_segments", "large_segment_size_mb"},
           f"the versions used only {used}")


def on_a_terminal(*arguments):
    """What a command writes to a terminal on stderr."""
    return terminal.written([FRAGSIM, *map(str, arguments)], stderr=True,
                            stdout=subprocess.DEVNULL)[1].decode()


def progress():
    if not terminal.has_terminals():
        print("check_tune: no pseudo-terminal; progress is not checked")
        return
    seen = on_a_terminal("tune", bundled("gpt2_train"), "--evaluations", "40")
    counts = [int(n) for n in re.findall(r"(\d+) of \d+ tries, saves", seen)]
    savings = [float(x) for x in re.findall(r"saves (\d+\.\d) %", seen)]
    expect(len(counts) > 1 and max(counts) > counts[0] and max(savings) > 5,
           f"progress: {counts[:9]}, {savings[:9]}")
    expect(sum(b < a for a, b in itertools.pairwise(counts)) == 1,
           f"the hold-out test counts on: {counts[-9:]}")
    expect("(1 of 2)" in seen and "(2 of 2)" in seen,
           f"progress of the hold-out test: {seen[-200:]}")
    seen = on_a_terminal("tune", "-q", bundled("leak"), "--evaluations", "0")
    expect(seen == "", f"--quiet: {seen[:80]}")


def pareto(answer):
    front = answer["pareto"]
    for a, b in itertools.permutations(front, 2):
        expect(a["saving_ratio"] > b["saving_ratio"] or
               a["modelled_device_seconds"] < b["modelled_device_seconds"],
               f"{b['settings']} beats {a['settings']}")
    expect(any(p["settings"] == answer["best"]["settings"] for p in front),
           "the best is not on its front")


def held_out(folder):
    """The second half of the trace, divided in the middle by hand."""
    whole = os.path.join(folder, "whole.csv")
    run("export", bundled("multistream"), "-o", whole)
    with open(whole, encoding="ascii") as file:
        events = [tuple(line.split(",")) for line in
                  file.read().splitlines()[1:]]
    # The last event is the peak of the second half: none may get lost.
    events.append(("alloc", "987654321", str(4096 * MIB), "0"))
    write_events(whole, events)
    live = {}
    for event in events[:len(events) // 2]:
        if event[0] == "alloc":
            live[event[1]] = event
        elif event[0] == "free":
            del live[event[1]]
    first, rest = (os.path.join(folder, n) for n in ("first.csv", "rest.csv"))
    write_events(first, events[:len(events) // 2])
    write_events(rest, [*live.values(), *events[len(events) // 2:]])
    found = tune(whole, "--no-vmm")["held_out"][0]
    expect(found["settings"] ==
           tune(first, "--no-vmm", "--no-hold-out")["chosen"]["settings"],
           f"the first half alone gives another setting than {found}")
    rows = replay(rest, ["", found["settings"]])
    expect(figures(rows[0]) == found["default"], f"held out: {found}")
    expect(figures(rows[1]) == found["found"], f"held out: {found}")
    both = tune(whole, first, "--no-vmm", "--evaluations", "40")
    expect([h["part"] for h in both["held_out"]] == ["whole", "first"],
           "two traces: each is held out once")


def determinism():
    answers = [run("tune", bundled("leak"), "--json", "-", "-j", threads,
                   "--seed", 7, "--no-vmm").split('"results"')[1]
               for threads in (1, 3)]
    expect(answers[0] == answers[1], "threads change the answer")


def verify(folder):
    jobs = os.path.join(folder, "jobs")
    answer = tune(bundled("multistream"), "--no-hold-out", "--verify-with", jobs)
    with open(jobs, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    case = answer["cases"][0]
    expect([(r["conf"], r["cap"], r["predicted"]["peak_reserved"])
            for r in rows] ==
           [("", 0, case["default"]["peak_reserved_bytes"]),
            (answer["chosen"]["settings"], 0,
             case["chosen"]["peak_reserved_bytes"])], f"jobs: {rows}")
    with open(rows[0]["events"], "rb") as file:
        stream = list(struct.iter_unpack("<IIQQ", file.read()))
    path = os.path.join(folder, "streams.csv")
    run("export", bundled("multistream"), "-o", path)
    with open(path, encoding="ascii") as file:
        ops = [row for row in csv.DictReader(file)
               if row["op"] in ("alloc", "free", "empty_cache")]
    # Names of blocks differ: pair them up. Streams are numbered by handle.
    names = {}
    streams = sorted({0, *(int(row["stream"] or 0) for row in ops)})
    for event, row in zip(stream, ops):
        op = ("alloc", "free", "empty_cache")[event[0]]
        if op == "alloc":
            names[event[2]] = row["id"]
        expect(op == row["op"] and (op != "alloc" or (
            event[3] == int(row["bytes"]) and
            streams[event[1]] == int(row["stream"])))
            and (op != "free" or names[event[2]] == row["id"]),
            f"stream: {event} is not {row}")
    expect(len(stream) == len(ops), "stream: another length")


def example(folder):
    os.symlink(os.path.abspath(FRAGSIM), os.path.join(folder, "fragsim"))
    script = os.path.join(ROOT, "tests/examples/oom_triage.sh")
    done = subprocess.run(
        ["sh", script, bundled("gpt2_train"), "8.477GiB"], text=True,
        capture_output=True, check=False, env={
            **os.environ, "PATH": folder + ":" + os.environ["PATH"]})
    expect(done.returncode == 0 and "export PYTORCH_CUDA_ALLOC_CONF='"
           "expandable_segments:True" in done.stdout,
           f"oom_triage.sh: {done.returncode} {done.stdout} {done.stderr}")


def main():
    if not os.access(FRAGSIM, os.X_OK):
        print(f"check_tune: no tool at {FRAGSIM}; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        known_answer(folder)
        between_the_grid(folder)
        pareto(no_worse("multistream"))
        no_worse("gpt2_train", "--max-calls-ratio", "0.01")
        no_worse("leak", "--max-calls-ratio", "0.01", "--no-vmm", vmm=False)
        for name in ("multistream", "gpt2_train", "leak"):
            choices(name)
        choices("gpt2_train", "--max-calls-ratio", "0.01")
        simplest(folder)
        versions(folder)
        held_out(folder)
        determinism()
        progress()
        verify(folder)
        example(folder)
    for fault in faults[:10]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
