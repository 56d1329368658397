#!/usr/bin/env python3
"""check_tune.py: compares the results of `fragsim tune` with `replay` and `fit`.

`replay` must confirm the run of every rung of the ladder, `fit` its need; the
choice must follow the rule of the page, which a few lines here repeat: enough
recorded settings stay, else the best odds win, then the least need. No rung has
a list, nor a key that the release of the recording does not know. Without a
bound the recorded one counts, and without that the least need. A saving
is printed only if the replay reserves what was recorded. No export line may
appear without a setting that is enough. A terminal must see the progress, the
answer must not depend on the number of threads, and the example script must find
the setting that fits. With ../shared, a recording of 2.7 million entries is
tuned too.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import terminal
from harness import FRAGSIM, ROOT, SHARED, need, output

MIB = 2 ** 20
CALLS = ("num_segment_alloc", "num_segment_free", "num_map", "num_unmap",
         "num_copy", "num_synchronize")
faults = []


def expect(true, what):
    if not true:
        faults.append(what)


def bundled(name):
    return os.path.join(ROOT, "traces/bundled", name + ".pickle.xz")


TOTAL = "150109880320B"  # of an H200


def tune(path, *options, code=0):
    text = output("tune", "-q", path, "--json", "-", *options, code=code)
    return json.loads(text)["results"][0]


def replay(path, settings, capacity="inf"):
    policies = []
    for conf in settings:
        policies += ["-p", f"torch:{conf}"]
    text = output("replay", "-q", path, "--csv", "-", "--stop-at-oom", "-c",
               capacity, *policies)
    return list(csv.DictReader(io.StringIO(text)))


def figures(row):
    """A row of replay with tune's names."""
    oom = row["first_oom_event"]
    return {"peak_reserved_bytes": int(row["peak_reserved_bytes"]),
            "driver_calls": sum(int(row[name]) for name in CALLS),
            "modelled_device_seconds": float(row["modelled_device_seconds"]),
            "first_oom_event": int(oom) if oom else None}


def needs(path, settings, capacity):
    """What `fit` finds for each of the settings, on a device of that total."""
    total = TOTAL if capacity == "inf" else capacity
    policies = [word for conf in settings for word in ("-p", f"torch:{conf}")]
    text = output("fit", "-q", path, "--total", total, "--json", "-", *policies)
    return [row["need_bytes"] for row in json.loads(text)["results"]]


def write_events(path, events):
    with open(path, "w", encoding="ascii") as out:
        out.write("op,id,bytes,stream\n")
        out.writelines(f"{','.join(map(str, e))}\n" for e in events)


def known_answer(folder):
    """Blocks of growing size, one at a time: 680 MiB of segments, 140 MiB with
    expandable ones. On a device with 142 MiB the default frees each segment
    before it takes the next. The requests ask for 127 MiB."""
    path = os.path.join(folder, "growing.csv")
    events = []
    for size in (100, 105, 110, 115, 120, 127):
        events += [("alloc", 1, size * MIB, 0), ("free", 1, 0, 0)]
    write_events(path, events)
    expect("no bound: the least need counts" in output("tune", "-q", path),
           "a bound is guessed")
    for capacity, setting, least in (("inf", "", 680), ("142MiB", "", 128)):
        answer = tune(path, "--torch-version", "2.10", "-c", capacity)
        case = answer["cases"][0]
        expect(case["replayed"]["peak_reserved_bytes"] == 680 * MIB and
               case["best"]["peak_reserved_bytes"] == least * MIB and
               case["best"]["need_bytes"] == 128 * MIB and
               case["recorded_peak_bytes"] is None and
               answer["chosen"]["settings"] == setting,
               f"growing {capacity}: {case}")
    for capacity in ("127MiB", "126MiB"):
        answer = tune(path, "--capacity", capacity, code=1)
        expect(answer["chosen"] is None and
               answer["best"]["odds"] == "not enough", f"{answer}")
        lines = output("tune", "-q", path, "-c", capacity, code=1).splitlines()
        expect(lines and all(line.startswith("#") for line in lines),
               f"{capacity}: a line for the shell: {lines[-1:]}")


def keys(text):
    return re.findall(r"([a-z_0-9]+):", text)


def expected(ladder, wanted, bounded):
    """The decision among rungs of a complete run: the index of one."""
    enough = [rung["odds"] == "enough" for rung in ladder]
    best = 0
    for i in range(1, len(ladder)):
        if bounded and enough[0]:
            break
        more = (wanted[best] - wanted[i]) / wanted[0]
        knobs = max(1, ladder[i]["knobs"] - ladder[best]["knobs"])
        if enough[i] > enough[best] or (enough[i] == enough[best] and
                                        more >= knobs * 0.01):
            best = i
    return best


def rungs(path, *options, capacity="inf"):
    """Every rung is replayed, its need found again, and the choice repeated."""
    name = os.path.basename(path)
    answer = tune(path, "-c", capacity, *options, code=(0, 1))
    case, ladder = answer["cases"][0], answer["ladder"]
    settings = [rung["settings"] for rung in ladder]
    found = [figures(row) for row in replay(path, settings, capacity)]
    wanted = needs(path, settings, capacity)
    base = figures(replay(path, settings[:1])[0])
    expect(ladder[0]["recorded"] and base.items() <= case["replayed"].items(),
           f"{name}: the recorded job: {case['replayed']}")
    for rung, row, need_ in zip(ladder, found, wanted):
        survives = row["first_oom_event"] is None
        expect(rung["driver_calls"] == row["driver_calls"] and
               rung["odds"] == ("enough" if survives else "not enough") and
               (rung["saving_ratio"] is None) == (not survives) and
               (not survives or abs(1 - rung["saving_ratio"] -
                                    need_ / wanted[0]) < 1e-9),
               f"{name}: {rung} is not {row}, need {need_}")
        expect("[" not in rung["settings"] and len(keys(rung["settings"])) ==
               rung["knobs"], f"{name}: {rung}")
    best = expected(ladder, wanted, capacity != "inf")
    expect(answer["best"] == ladder[best], f"{name} {options}: {answer['best']} "
           f"is not rung {best}")
    expect(answer["chosen"] == (ladder[best] if ladder[best]["odds"] == "enough"
                                else None), f"{name}: {answer['chosen']}")
    expect(found[best].items() <= case["best"].items() and
           case["best"]["need_bytes"] == wanted[best], f"{name}: {case}")
    expect(len(ladder) <= 5 and answer["settings_tried"] == len(ladder), name)


def savings():
    """They count from the recorded peak. The recording of a job that died is
    replayed without a bound: that is another peak."""
    saves = output("tune", "-q", bundled("gpt2_train"), "-c", "inf")
    expect("saves 7.1 %" in saves and "as recorded -> " in saves, saves)
    dead = output("tune", "-q", bundled("lstm_varlen__cap_below"), code=(0, 1))
    expect(not re.search(r"saves \d", dead) and "is not known" in dead, dead)


def releases(folder):
    """Keys are those of the oldest release that may have written the trace."""
    path = bundled("multistream")
    for options, newest in ([], False), (["--torch-version", "2.11"], True), \
            (["--torch-version", "2.6.0+cu124"], False):
        answer = tune(path, "-c", "inf", *options)
        used = {key for rung in answer["ladder"]
                for key in keys(rung["settings"])}
        expect(used == {"expandable_segments", "max_split_size_mb"} | (
            {"large_segment_size_mb"} if newest else set()),
            f"{options}: {used}")
    csv_file = os.path.join(folder, "growing.csv")
    expect(any("large_segment" in rung["settings"]
               for rung in tune(csv_file, "-c", "inf")["ladder"]), "a trace without release")


def as_recorded():
    """A job that had expandable segments is its own baseline."""
    answer = tune(bundled("lstm_varlen__cap_tight_exp"), "-c", "inf")
    first = answer["ladder"][0]
    expect(first["settings"] == "expandable_segments:True" and
           first["recorded"] and first["saving_ratio"] == 0,
           f"as recorded: {answer['chosen']}")
    expect(sum(rung["settings"] == first["settings"]
               for rung in answer["ladder"]) == 1, "it is tried twice")


def on_a_terminal(*arguments):
    """What a command writes to a terminal on stderr."""
    return terminal.written([FRAGSIM, *map(str, arguments)], stderr=True,
                            stdout=subprocess.DEVNULL)[1].decode()


def bounds():
    """Without a bound, that under which the recorded job ran: it died there
    with expandable segments, so they are not enough. A limit of the process is
    no capacity."""
    path = os.path.join(SHARED, "recorded/dev/moe_train__cap_tight_exp.pickle.xz")
    if not os.path.exists(path):
        print(f"check_tune: no {path}")
        return
    answer = tune(path, code=1)
    limit = 6463185536
    case, ladder = answer["cases"][0], answer["ladder"]
    expect(case["process_limit_bytes"] == limit and
           case["bound_source"] == "recorded_limit" and
           case["capacity_bytes"] is None and answer["chosen"] is None and
           ladder[0]["odds"] == "not enough",
           f"moe_train: {case}, {answer['chosen']}")
    rows = list(csv.DictReader(io.StringIO(output(
        "replay", "-q", path, "--csv", "-", "--stop-at-oom", "--process-limit",
        f"{limit}B", *(word for rung in ladder
                       for word in ("-p", "torch:" + rung["settings"]))))))
    for rung, row in zip(ladder, map(figures, rows)):
        expect((rung["saving_ratio"] is None) ==
               (row["first_oom_event"] is not None), f"{rung}: {row}")


def progress():
    if not terminal.has_terminals():
        print("check_tune: no pseudo-terminal; progress is not checked")
        return
    seen = on_a_terminal("tune", "-c", "inf", bundled("multistream"),
                         bundled("gpt2_train"))
    expect("tune [" in seen, f"progress: {seen[-200:]}")
    seen = on_a_terminal("tune", "-q", "-c", "inf", bundled("leak"))
    expect(seen == "", f"--quiet: {seen[:80]}")


def determinism():
    answers = [output("tune", bundled("leak"), "--json", "-", "-j", threads,
                   "-c", "inf").split('"results"')[1] for threads in (1, 3)]
    expect(answers[0] == answers[1], "threads change the answer")


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


def large():
    path = os.path.join(SHARED, "recorded/large/generate_long.pickle.xz")
    if not os.path.exists(path):
        print(f"check_tune: no {path}; a large recording is not tuned")
        return
    answer = tune(path, "-c", "inf")
    expect(answer["settings_tried"] == 3, f"large: {answer['chosen']}")


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        known_answer(folder)
        for name in ("multistream", "gpt2_train", "leak"):
            rungs(bundled(name))
        rungs(bundled("gpt2_train"), "--torch-version", "2.11")
        rungs(bundled("gpt2_train"), capacity="8.477GiB")
        rungs(bundled("gpt2_train"), capacity="8.08GiB")
        savings()
        releases(folder)
        as_recorded()
        bounds()
        determinism()
        progress()
        example(folder)
    large()
    for fault in faults[:10]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
