#!/usr/bin/env python3
"""check_tune.py: compares the results of `fragsim tune` with `fragsim replay`.

`replay` must confirm the figures of every rung of the ladder and of the recorded
settings; the choice must follow --worth and --simplest,
which a few lines here repeat. No rung has a list, nor a key
that the release of the recording does not know. The baseline is the recorded job:
a recording with expandable segments saves nothing by them. No export line may
appear without a setting that survives. A terminal must see the progress, the answer must not depend
on the number of threads, and the example script must find the setting that fits.
With ../shared, a recording of 2.7 million entries is tuned too: no faster way to
run a setting is needed than to replay it.
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
            "first_oom_event": int(oom) if oom else None,
            "outcome": "fails" if oom else "survives",
            "need_bytes": None, "enough_bytes": None}


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
    for options, setting, least in (
            ([], "expandable_segments:True", 140),
            (["--capacity", "142MiB"], "", 128)):
        answer = tune(path, "--torch-version", "2.10",
                      *options)
        case = answer["cases"][0]
        expect(case["recorded"]["peak_reserved_bytes"] == 680 * MIB and
               case["chosen"]["peak_reserved_bytes"] == least * MIB and
               answer["chosen"]["settings"] == setting,
               f"growing {options}: {case}")
    answer = tune(path, "--no-vmm", "--without",
                  "large_segment_size_mb")
    expect(answer["chosen"]["settings"] == "" and answer["chosen"]["recorded"],
           f"nothing helps, and it chose {answer['chosen']}")
    answer = tune(path, "--capacity", "127MiB", code=1)
    expect(answer["chosen"] is None and not answer["impossible"], f"{answer}")
    answer = tune(path, "--capacity", "126MiB", code=1)
    expect(answer["impossible"] == [{
        "trace": "growing", "device": 0, "capacity_bytes": 126 * MIB,
        "process_limit_bytes": None, "asked_bytes": 127 * MIB,
        "event": 10}] and answer["settings_tried"] == 0,
        f"126 MiB: {answer['impossible']}, {answer['settings_tried']} tried")
    for capacity in ("127MiB", "126MiB"):
        lines = output("tune", "-q", path, "-c", capacity,
                    code=1).splitlines()
        expect(lines and all(line.startswith("#") for line in lines),
               f"{capacity}: a line for the shell: {lines[-1:]}")


def keys(text):
    return re.findall(r"([a-z_0-9]+):", text)


def family(rung):
    return None if rung["recorded"] else rung["settings"].rpartition(":")[0]


def expected(ladder, ratios, worth):
    """The choice among rungs and their ratios to the recorded peak; None: a rung
    is not within the bounds."""
    best = None
    for i, (rung, ratio) in enumerate(zip(ladder, ratios)):
        if ratio is None:
            continue
        if best is not None:
            more = ratios[best] - ratio
            knobs = max(1, rung["knobs"] - ladder[best]["knobs"])
            same = family(rung) and family(rung) == family(ladder[best])
            if more <= 0 or not (same or more >= knobs * worth):
                continue
        best = i
    return best


def rungs(path, *options, capacity="inf", worth=0.01):
    """Every rung is replayed, and the choice repeated."""
    name = os.path.basename(path)
    answer = tune(path, "-c", capacity, *options,
                  code=(0, 1))
    case, ladder = answer["cases"][0], answer["ladder"]
    found = [figures(row) for row in replay(
        path, [rung["settings"] for rung in ladder], capacity)]
    base = figures(replay(path, [ladder[0]["settings"]])[0])
    expect(ladder[0]["recorded"] and base == case["recorded"],
           f"{name}: the recorded job: {case['recorded']}")
    peak = base["peak_reserved_bytes"]
    ratios = []
    for rung, row in zip(ladder, found):
        survives = row["first_oom_event"] is None
        ratios.append((row["peak_reserved_bytes"] + 1) / (peak + 1)
                      if survives else None)
        expect(rung["driver_calls"] == row["driver_calls"] and
               (rung["saving_ratio"] is None) == (not survives) and
               (not survives or abs(1 - rung["saving_ratio"] - (
                   row["peak_reserved_bytes"] + 1) / (peak + 1)) < 1e-9),
               f"{name}: {rung} is not {row}")
        expect("[" not in rung["settings"] and len(keys(rung["settings"])) ==
               rung["knobs"], f"{name}: {rung}")
    best = expected(ladder, ratios, worth)
    expect(answer["chosen"] == (None if best is None else ladder[best]),
           f"{name} {options}: {answer['chosen']} is not rung {best}")
    expect(best is None or case["chosen"] == found[best], f"{name}: {case}")
    expect(len(ladder) <= 5 and answer["settings_tried"] == len(ladder), name)
    return answer


def worth(folder):
    """The default reserves 20 + 12 MiB. At 28 MiB larger segments survive."""
    path = os.path.join(folder, "four.csv")
    write_events(path, [("alloc", 1, 5 * MIB, 0), ("alloc", 2, 5 * MIB, 0),
                        ("alloc", 3, 5 * MIB, 0), ("free", 2, 0, 0),
                        ("alloc", 4, 12 * MIB, 0)])
    answers = [tune(path, *options)["chosen"]["settings"]
               for options in ([], ["--simplest", "-c", "40MiB"],
                               ["--worth", "0.5"])]
    expect(answers == ["", "", ""], f"four: {answers}")
    for part, capacity in ("multistream", "inf"), ("gpt2_train", "8.477GiB"):
        rungs(bundled(part), "--worth", "0", capacity=capacity, worth=0)
        rungs(bundled(part), "--worth", "0.3", capacity=capacity, worth=0.3)
    at = tune(bundled("gpt2_train"), "--simplest", "-c",
              "8.8GiB")
    expect(at["chosen"]["settings"] == "", f"--simplest: {at['chosen']}")


def releases(folder):
    """Keys are those of the oldest release that may have written the trace."""
    path = bundled("multistream")
    for options, newest in ([], False), (["--torch-version", "2.11"], True), \
            (["--torch-version", "2.6.0+cu124"], False):
        answer = tune(path, *options)
        used = {key for rung in answer["ladder"]
                for key in keys(rung["settings"])}
        expect(used == {"expandable_segments", "max_split_size_mb"} | (
            {"large_segment_size_mb"} if newest else set()),
            f"{options}: {used}")
    csv_file = os.path.join(folder, "growing.csv")
    expect(any("large_segment" in rung["settings"]
               for rung in tune(csv_file)["ladder"]), "a trace without release")


def as_recorded():
    """A job that had expandable segments is its own baseline."""
    path = bundled("lstm_varlen__cap_tight_exp")
    answer = tune(path, "--as-recorded", "-c", "inf")
    first = answer["ladder"][0]
    expect(first["settings"] == "expandable_segments:True" and
           first["recorded"] and first["saving_ratio"] == 0 and
           answer["chosen"] == first, f"as recorded: {answer['chosen']}")
    expect(sum(rung["settings"] == first["settings"]
               for rung in answer["ladder"]) == 1, "it is tried twice")


def on_a_terminal(*arguments):
    """What a command writes to a terminal on stderr."""
    return terminal.written([FRAGSIM, *map(str, arguments)], stderr=True,
                            stdout=subprocess.DEVNULL)[1].decode()


def bounds():
    """Without a bound, that under which the recorded job ran: it died under
    expandable segments, so they are not exported. A limit of the process is no
    capacity."""
    path = os.path.join(SHARED, "recorded/dev/moe_train__cap_tight_exp.pickle.xz")
    if not os.path.exists(path):
        print(f"check_tune: no {path}")
        return
    answer = tune(path, code=1)
    limit = 6463185536
    case, ladder = answer["cases"][0], answer["ladder"]
    expect(case["process_limit_bytes"] == limit and
           case["capacity_bytes"] is None and answer["chosen"] is None,
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
    seen = on_a_terminal("tune", bundled("multistream"), bundled("gpt2_train"))
    expect("tune [" in seen, f"progress: {seen[-200:]}")
    seen = on_a_terminal("tune", "-q", bundled("leak"))
    expect(seen == "", f"--quiet: {seen[:80]}")


def determinism():
    answers = [output("tune", bundled("leak"), "--json", "-", "-j", threads,
                   "--no-vmm").split('"results"')[1] for threads in (1, 3)]
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
    answer = tune(path)
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
        worth(folder)
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
