#!/usr/bin/env python3
"""check_explain.py: explains every recording that ran out of memory.

For each of them the replay must fail where the recording failed, live and
cached bytes must be those of PyTorch's own message, and a change must serve the
request. No setting may serve a request that is demand. Where the cause is known, the answer must name it. The leaks
must be explained as growth at a capacity that they exceed.
Environment: FRAGSIM, FRAG_SHARED_DIR. Exit code 77: there are no recordings.
"""
import importlib.util
import os
import shutil
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
RECORDED = os.path.join(os.environ.get(
    "FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared")), "recorded")
LEAKS = {"leak": None, "leak_frames": "(train.py:164)",
         "leak_cpp": "(train.py:164)"}


def load_table():
    spec = importlib.util.spec_from_file_location(
        "explain_table", os.path.join(ROOT, "paper", "explain_table.py"))
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


def check_picture():
    """The picture is an SVG that shows the failure."""
    snapshot = os.path.join(ROOT, "traces", "bundled",
                            "lstm_varlen__cap_below.pickle.xz")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "map.svg")
        table.explain(FRAGSIM, snapshot, "-o", path)
        with open(path, encoding="utf-8") as file:
            expect("picture", "no OOM is shown", "1 OOM" in file.read())


def main():
    if shutil.which("gnuplot"):
        check_picture()
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
