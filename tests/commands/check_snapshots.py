#!/usr/bin/env python3
"""check_snapshots.py - the answer commands on snapshots that are written here:
a late start with expandable segments, no history, several devices, a job that
died, and what each command says of them.

Environment: FRAGSIM (the tool; default build/fragsim)."""
import json
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM

BASE, MIB = 0x7f0000000000, 1 << 20


def segment(device, expandable):
    blocks = [{"address": BASE + 20 * MIB * i, "size": 20 * MIB,
               "requested_size": 20 * MIB * (1 - i), "frames": [],
               "state": ["active_allocated", "inactive"][i]} for i in (0, 1)]
    return {"device": device, "address": BASE, "total_size": 40 * MIB,
            "allocated_size": 20 * MIB, "active_size": 20 * MIB,
            "requested_size": 20 * MIB, "stream": 0, "segment_type": "large",
            "segment_pool_id": (0, 0), "is_expandable": expandable,
            "frames": [], "blocks": blocks}


def entry(action, size=4 * MIB, addr=BASE + 20 * MIB, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0,
            "time_us": 1000, "frames": [], **more}


def write(name, segments, traces):
    with open(name, "wb") as file:
        pickle.dump({"segments": segments, "device_traces": traces,
                     "allocator_settings": {"expandable_segments": False}},
                    file)


def run(*command, code=0):
    done = subprocess.run([FRAGSIM, *command], capture_output=True, text=True,
                          check=False)
    if done.returncode != code:
        raise SystemExit(f"{command}: exit code {done.returncode}, expected "
                         f"{code}: {done.stderr}")
    return done.stdout + done.stderr


def expect(text, *parts):
    for part in parts:
        if part not in text:
            raise SystemExit(f'expected "{part}" in:\n{text}')


def refuse(text, part):
    if part in text:
        raise SystemExit(f'found "{part}" in:\n{text}')


def check_late():
    life = [entry("alloc"), entry("free_requested"), entry("free_completed")]
    write("late.pickle", [segment(0, True)], [life])
    for command in (["explain"], ["summary"]):
        run(*command, "late.pickle")
    # The block at 20 MiB was unmapped before: half a page cannot be adopted.
    half = segment(0, True)
    half["total_size"] = 30 * MIB
    half["blocks"][1]["size"] = 10 * MIB
    write("half.pickle", [half], [life])
    expect(run("validate", "half.pickle", code=3),
           "device 0: cannot start from the memory that was held before",
           "whole pages")
    expect(run("explain", "late.pickle", "-c", "30MiB"),
           "too little was recorded to tell", "Record the job again")


def check_without_history():
    write("still.pickle", [segment(0, False)], [[]])
    expect(run("validate", "still.pickle", code=6),
           "device 0: not enough to judge",
           "device 0: the device has no history", "0 of 1 exact")
    expect(run("top", "still.pickle"), ": 1 block holds 20 MiB")
    run("triage", "-q", "still.pickle", "-c", "1GiB", "-o", "still.html",
        code=3)
    with open("still.html", encoding="utf-8") as file:
        page = file.read()
    expect(page, "the state of the snapshot")
    refuse(page, "the picture shows events")
    write("nothing.pickle", [], [[]])
    for command in ("top", "summary"):
        expect(run(command, "nothing.pickle", code=3),
               "nothing.pickle: device 0 has no events")


def check_devices():
    life = [entry("segment_alloc", 20 * MIB, BASE), entry("alloc", addr=BASE)]
    write("mixed.pickle", [segment(0, False), segment(2, False)],
          [[], life, []])
    text = run("validate", "mixed.pickle", code=6)
    expect(text, "device 0: not enough to judge", "device 1: exact",
           "device 2: not enough to judge", "device 2: the device has no history",
           "1 of 3 exact")
    rows = json.loads(run("validate", "-q", "mixed.pickle", "--json", "-",
                          code=6))["results"]
    assert [r["verdict"] for r in rows] == \
        ["no evidence", "exact", "no evidence"], rows
    assert "has no history" in rows[2]["notes"][-1], rows
    assert not any("device 1" in n for r in rows for n in r["notes"]), rows
    write("two.pickle", [], [life, [dict(e) for e in life]])
    text = run("explain", "two.pickle")
    expect(text, "\n\ntwo.pickle, device 1\n")
    expect(run("top", "two.pickle", "mixed.pickle"), "two, device 0, event 0",
           "two, device 1, event 0", "mixed, device 1, event 0", "imbalance")
    run("top", "two.pickle", "--folded", "-", code=2)
    refuse(text, "\\n")


def check_death():
    life = [entry("segment_alloc", 20 * MIB, BASE), entry("alloc", addr=BASE),
            entry("oom", 900 * MIB, 0, device_free=80 * MIB),
            entry("free_requested", addr=BASE),
            entry("free_completed", addr=BASE)]
    write("dead.pickle", [], [life])
    expect(run("summary", "dead.pickle"), "the job died at event 1",
           "--at oom")
    refuse(run("summary", "dead.pickle", "--at", "oom"), "the job died at event"
           " 1, and")
    expect(run("steps", "-q", "dead.pickle", "dead.pickle"), "event 1\n")
    # The failed request is not live: the peak is the block before it.
    expect(run("top", "-q", "dead.pickle"), "event 0 (peak): 1 block holds 4 M")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_late()
        check_without_history()
        check_devices()
        check_death()
    print("snapshots: late, without history, of two devices, of a dead job")
    return 0


if __name__ == "__main__":
    sys.exit(main())
