#!/usr/bin/env python3
"""check_bound.py [all]: compares lower bounds with a naive judge.

The judge adds up the live requests of a trace, event by event, each rounded up
to a quantum, and shares no code with fragsim. For every policy, on traces whose
sizes lie between the quanta of policies: the bound of a run that serves every
request is that of the judge, no run reserves less, no run survives where a
report says that no policy can, and a run is called optimal only if no other run
of the same command serves the trace with less memory of the device. A policy
alone has the bound of its own quantum; in a comparison all have that of the
smallest. A few recordings of ../shared are judged too if they are there; `all`
judges every one.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import glob
import io
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, SHARED, need, output, share

MIB = 2 ** 20
# 6144 blocks of 256 bytes: 1.5 MiB, or 3 MiB in quanta of 512 bytes.
HALVES = "op,id,bytes,stream\n" + "".join(
    f"alloc,{i},256,0\n" for i in range(6144))
# Without a small effort, plan searches for seconds.
SHORT = {"plan": "plan:effort=1000", "plan_online": "plan_online:effort=1000"}
# Before PyTorch 2.4, one division switched rounding off.
UNROUNDED = "torch@2.3:roundup_power2_divisions:1"


def quanta():
    """The quantum of each policy in bytes, as its table states it. torch_host
    is for the host's memory."""
    listed = json.loads(output("policies", "--json", "-"))["policies"]
    found = {SHORT.get(p["name"], p["name"]): p["quantum_bytes"]
             for p in listed if p["name"] != "torch_host"}
    assert set(found.values()) == {256, 512}, found
    assert {p for p, q in found.items() if q == 256} == {
        "bfc", "rmm_pool", "rmm_arena", "rmm_binning"}, found
    return {**found, UNROUNDED: 1}


def judge(path, units):
    """The peak of the live requests in each unit."""
    live, sums, peaks = {}, dict.fromkeys(units, 0), dict.fromkeys(units, 0)
    for event in csv.DictReader(io.StringIO(output("export", "-q", path))):
        if event["op"] == "alloc":
            live[event["id"]] = int(event["bytes"])
        sizes = live[event["id"]] if event["op"] == "alloc" else \
            -live.pop(event["id"], 0) if event["op"].startswith("free") else 0
        for unit in units:
            whole = -(-abs(sizes) // unit) * unit
            sums[unit] += whole if sizes > 0 else -whole
            peaks[unit] = max(peaks[unit], sums[unit])
    return peaks


def replay(path, policies, capacities):
    words = [word for p in policies for word in ("-p", p)]
    return json.loads(output("replay", "-q", path, *words, "-c", capacities,
                          "--as-recorded", "--json", "-"))["results"]


def check_rows(rows, peaks, quantum):
    served = [row for row in rows if not row["num_ooms"]]
    for row in rows:
        what = [row[name] for name in (
            "trace", "policy", "capacity_bytes", "quantum_bytes",
            "lower_bound_bytes", "demand_bytes", "peak_reserved_bytes")]
        assert row["quantum_bytes"] == quantum, what
        assert row["gap_to_bound"] >= 0, what
        assert row["lower_bound_bytes"] <= row["peak_reserved_bytes"], what
        assert row["peak_device_bytes"] >= row["peak_reserved_bytes"] or \
            row["policy"] in ("remap", "compact", "paged"), what
        assert row["demand_bytes"] == peaks[quantum], (what, peaks)
        if not row["num_ooms"]:
            assert row["lower_bound_bytes"] == peaks[quantum], (what, peaks)
            assert row["capacity_bytes"] is None or \
                row["capacity_bytes"] >= row["demand_bytes"], what
        if row["optimal"]:
            assert not row["num_ooms"], what
            assert row["peak_reserved_bytes"] == peaks[quantum], what
            assert row["peak_device_bytes"] == min(
                other["peak_device_bytes"] for other in served), what


def check_trace(path, own):
    """All policies in one comparison, then each alone. Returns the number of
    runs."""
    peaks = judge(path, {1, 256, 512})
    capacities = f"inf,{peaks[512]}B,{peaks[256] + 2 * MIB}B,{peaks[1]}B"
    named = [p for p in own if p != UNROUNDED]
    rows = replay(path, named, capacities)
    check_rows(rows, peaks, 256)
    alone = 0
    for policy, quantum in own.items():
        found = replay(path, [policy], "inf")
        check_rows(found, peaks, quantum)
        alone += len(found)
    return len(rows) + alone


def check_sentences(folder):
    """What is said of a trace that 256-byte blocks let live in 2 MiB."""
    halves = os.path.join(folder, "halves.csv")
    one, two = (os.path.join(folder, name) for name in ("1.h5", "2.h5"))
    page = os.path.join(folder, "page.html")

    def impossible(*files):
        output("report", *files, "-o", page, "-f", "-q")
        with open(page, encoding="utf-8") as file:
            found = re.search(r"(\d+) of \d+ runs are under a bound that no "
                              r"policy with a quantum of (\d+) bytes or more "
                              r"can survive", file.read())
        return found and [int(n) for n in found.groups()]

    output("replay", "-q", halves, "-p", "rmm_pool", "-p", "torch",
        "-c", "1MiB,2MiB,inf", "-o", one)
    assert impossible(one) == [2, 256], impossible(one)
    output("replay", "-q", halves, "-p", "torch", "-c", "1MiB,2MiB,inf",
        "-o", two)
    assert impossible(two) == [2, 512], impossible(two)
    assert impossible(one, two) == [3, 1], impossible(one, two)
    for shard in ("1/2", "2/2"):  # each has one of the two policies
        text = output("sweep", "-q", "-f", halves, "-p", "rmm_pool", "-p", "plan",
                   "--shard", shard, "-o", one, "--csv", "-")
        row, = csv.DictReader(io.StringIO(text))
        assert row["quantum_bytes"] == "256", row
    fits = json.loads(output("fit", "-q", halves, "-p", "rmm_pool", "-p", "plan",
                          "--json", "-"))["results"]
    assert [row["fit_bytes"] for row in fits] == [2 * MIB, 4 * MIB], fits
    assert {row["lower_bound_bytes"] for row in fits} == {3 * MIB // 2}, fits
    for exact in (["--process-limit", "inf"], ["--address-rule", "exact"]):
        row, = json.loads(output("fit", "-q", halves, "-p", "rmm_pool", *exact,
                              "--json", "-"))["results"]
        assert row["fit_bytes"] == 3 * MIB // 2, row
    for capacity, hopeless in (("1MiB", True), ("2MiB", False)):
        done = subprocess.run([FRAGSIM, "tune", "-q", halves, "-c", capacity],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        assert ("no allocator can help" in done.stdout) == hopeless, done.stdout


def main():
    need(FRAGSIM)
    own = quanta()
    some = "*" if "all" in sys.argv[1:] else "*__cap_below"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "halves.csv"), "w",
                  encoding="ascii") as file:
            file.write(HALVES)
        paths = [file.name,
                 os.path.join(BUNDLED, "recorded/fragsim_leaks.csv.xz"),
                 os.path.join(BUNDLED, "two_streams.pt"),
                 os.path.join(BUNDLED, "late_start.pickle.xz"),
                 os.path.join(BUNDLED, "cudagraph.pickle.xz"),
                 *share(sorted(glob.glob(os.path.join(
                     SHARED, "recorded/dev", some + ".pickle.xz"))), 6)]
        runs = 0
        for path in paths:
            runs += check_trace(path, own)
            print(f"{os.path.basename(path)}: {runs} runs so far")
        check_sentences(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
