#!/usr/bin/env python3
"""check_explain.py: explains every recording that ran out of memory.

For each of them the replay must fail where the recording failed, live and
cached bytes must be those of PyTorch's own message, and a change must serve the
request. No setting may serve a request that is demand. Where the cause is known, the answer must name it. The leaks
must be explained as growth at a capacity that they exceed.
Environment: FRAGSIM, FRAG_SHARED_DIR. Exit code 77: there are no recordings.
"""
import copy
import importlib.util
import lzma
import os
import pickle
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
RECORDED = os.path.join(os.environ.get(
    "FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared")), "recorded")
LEAKS = {"leak": None, "leak_frames": "(train.py:164)",
         "leak_cpp": "(train.py:164)"}


def load_table():
    sys.path.insert(0, os.path.join(ROOT, "paper", "tables"))
    spec = importlib.util.spec_from_file_location(
        "explain_table", os.path.join(ROOT, "paper", "tables", "explain_table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


table = load_table()
wrong = []


def expect(name, what, holds):
    if not holds:
        wrong.append(f"{name}: {what}")


def check_death(snapshot, facts):
    name = os.path.basename(snapshot)
    answer = table.explain(FRAGSIM, snapshot)
    expect(name, "not reproduced", answer["request"]["reproduced"])
    expect(name, "bytes differ from PyTorch's message",
           table.agrees(answer, facts))
    expect(name, f"limit {answer['limit_bytes']} is not {facts['cap']}",
           answer["limit_bytes"] == facts["cap"])
    expect(name, "no change serves the request",
           answer["smallest"] and answer["smallest"]["served"])
    expect(name, "the bytes of the spaces do not sum up",
           sum(s["reserved_bytes"] for s in answer["spaces"])
           == answer["reserved_bytes"])
    expect(name, f"cause {answer['cause']}, known to be {facts.get('cause')}",
           facts.get("cause", answer["cause"]) == answer["cause"])
    demand = answer["requested_bytes"] + answer["request"]["requested_bytes"] \
        > answer["limit_bytes"]
    expect(name, "demand is served by a setting", not demand or not any(
        c["served"] for c in answer["changes"] if c["kind"] == "setting"))
    expect(name, "demand is not said", demand == (answer["cause"] == "demand"))


def check_leak(name, site):
    snapshot = os.path.join(ROOT, "traces", "bundled", name + ".pickle.xz")
    answer = table.explain(FRAGSIM, snapshot, "-c", "300MiB")
    expect(name, f"cause {answer['cause']}", answer["cause"] == "growth")
    expect(name, "the smallest change is no free",
           answer["smallest"]["kind"] == "step_free")
    expect(name, f"site {answer['grown_site']}",
           site is None or answer["grown_site"].endswith(site))


def cells(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split("\t") for line in file.read().splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def check_holes(name, kept, answer):
    """The picture of the holes shows the bytes of the answer, to scale."""
    facts, = cells(os.path.join(kept, "holes.facts.tsv"))
    scale = int(facts["row_bytes"]) / int(facts["wide"])
    rows = int(facts["rows"])
    kinds = [0] * 4
    for run in cells(os.path.join(kept, "holes.tsv"))[1:]:
        expect(name, f"{run} lies outside", int(run["row"]) < rows and
               0 <= int(run["from"]) < int(run["to"]) <= int(facts["wide"]))
        kinds[int(run["kind"])] += (int(run["to"]) - int(run["from"])) * scale
    room = 0.02 * answer["reserved_bytes"]
    for what, shown in (("live", kinds[0]), ("pending", kinds[1]),
                        ("cached", kinds[2] + kinds[3])):
        expect(name, f"{what}: {shown:.0f} bytes are drawn",
               abs(shown - answer[what + "_bytes"]) <= room)
    request = answer["request"]
    useful = sum(s["cached_bytes"] for s in answer["spaces"] if not request or
                 (s["pool"], s["stream"], s["blocks"]) ==
                 (request["pool"], request["stream"],
                  "large" if request["rounded_bytes"] > 1 << 20 else "small"))
    expect(name, f"{kinds[2]:.0f} bytes of {useful} are drawn as usable",
           abs(kinds[2] - useful) <= room and int(facts["usable"]) == useful)
    frames = {}
    for frame in cells(os.path.join(kept, "holes.frames.tsv"))[1:]:
        frames.setdefault(frame["kind"], 0)
        frames[frame["kind"]] += (float(frame["to"]) - float(frame["from"])) \
            * scale
    largest, own = answer["largest_hole_bytes"], \
        answer["own_largest_hole_bytes"]
    expect(name, f"frames {frames}, not {largest} and {own}",
           abs(frames.get("usable", 0) - own) <= 3 * scale and
           ("largest" in frames) == (largest > own) and
           abs(frames.get("largest", largest) - largest) <= 3 * scale)
    expect(name, "the segments are not all framed",
           frames["segment"] <= answer["reserved_bytes"] * 1.001 and
           frames["segment"] >= 0.5 * answer["reserved_bytes"])
    labels = cells(os.path.join(kept, "holes.spaces.tsv"))
    expect(name, f"{len(labels)} labels", len(labels) ==
           min(len(answer["spaces"]), 13))
    expect(name, "bytes of the labels", len(answer["spaces"]) > 12 or
           sum(int(l["reserved"]) for l in labels) == answer["reserved_bytes"])
    request = (request or {}).get("rounded_bytes", 0)
    expect(name, "a row is shorter than the request",
           int(facts["row_bytes"]) >= request == int(facts["request"]))
    expect(name, f"{rows} rows", rows <= 24)


def check_pictures(folder):
    """The pictures show the failure, or the end of a job that did not fail."""
    for name, more, heading in (
            ("lstm_varlen__cap_below", (), "Holes at the failed request"),
            ("gpt2_train", (), "Holes at the end"),
            ("cudagraph", (), "Holes at the end"),
            ("leak_frames", ("-c", "300MiB"), "Holes at the failed request"),
            ("multistream", ("-c", "740MiB"), "Holes at the failed request"),
            ("cudagraph", ("-c", "700MiB"), "Holes at the failed request"),
            ("late_start", (), "Holes at the end")):
        holes, map_, kept = (os.path.join(folder, "-".join((name, *more)) + end)
                             for end in (".svg", "_map.svg", ".kept"))
        answer = table.explain(
            FRAGSIM, os.path.join(ROOT, "traces", "bundled",
                                  name + ".pickle.xz"),
            "-o", holes, "--map", map_, "--keep", kept, *more)
        check_holes(name, kept, answer)
        with open(holes, encoding="utf-8") as file:
            expect(name, "no heading", heading in file.read().replace(
                "\xa0", " "))
        with open(map_, encoding="utf-8") as file:
            expect(name, "no map, or no OOM is shown", ("OOM" in file.read()) ==
                   ("failed" in heading))


def check_devices(folder):
    """A picture shows one device of a snapshot of two."""
    with lzma.open(os.path.join(ROOT, "traces", "bundled",
                                "cudagraph.pickle.xz")) as file:
        snapshot = pickle.load(file)
    others, trace = copy.deepcopy(([s for s in snapshot["segments"]
                                    if s["device"] == 0],
                                   snapshot["device_traces"][0]))
    for segment in others:
        segment["device"] = 1
    snapshot["segments"] += others
    snapshot["device_traces"] = [snapshot["device_traces"][0], trace]
    path, out = (os.path.join(folder, n) for n in ("two.pickle", "two.svg"))
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)

    def run(*more):
        return subprocess.run([FRAGSIM, "explain", path, "-q", *more],
                              capture_output=True, text=True, check=False)

    lines = run().stdout.split("\n")
    expect("two devices", f"lines {lines[:3]}",
           [l for l in lines if "two.pickle" in l] ==
           [f"{path}, device 0", f"{path}, device 1"] and
           lines[lines.index(f"{path}, device 1") - 1] == "")
    done = run("-o", out)
    expect("two devices", f"drawn: {done}", done.returncode == 2 and
           "choose one with --device" in done.stderr and
           not os.path.exists(out))
    expect("device 1", "not drawn", run("-o", out, "--device", "1")
           .returncode == 0 and os.path.exists(out))


def main():
    if shutil.which("gnuplot"):
        with tempfile.TemporaryDirectory() as folder:
            check_pictures(folder)
            check_devices(folder)
    for name, site in LEAKS.items():
        check_leak(name, site)
    deaths = [d for folder in ("dev", "causes")
              for d in table.died(os.path.join(RECORDED, folder))]
    for snapshot, facts in deaths:
        check_death(snapshot, facts)
    for text in wrong:
        print(text)
    if not wrong and not deaths:
        print("no recordings")
        return 77
    print(f"{len(deaths)} recordings that ran out of memory, {len(wrong)} "
          "differences")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
