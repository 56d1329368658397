#!/usr/bin/env python3
"""check_unread.py: a trace that cannot be used does not discard the answers for
the others.

Each command that takes several traces is run on two good ones with bad ones
between them: a snapshot that is cut off, a folder, a name that no file has. The
bad ones are reported, the answers are those for the good ones alone, every
output is whole, and the exit code is that of the first bad one: 3 if it is
malformed, 4 if it cannot be read. If all are bad, no output is written. A name
that is a policy's is wrong use, and nothing is read.

Environment: FRAGSIM (the tool; default build/fragsim).
"""
import copy
import json
import lzma
import os
import pickle
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, attempt, need

GOOD = "leak.pickle", "multistream.pickle"
# command: its options, beside the traces
COMMANDS = {
    "info": [], "validate": [], "replay": ["-p", "torch", "-p", "best_fit"],
    "fit": ["-p", "best_fit"], "tune": [], "steps": [],
    "leaks": [], "top": [],
    "sweep": ["-p", "best_fit", "-o", "sweep.h5", "-f"],
}
REPORT = "traces could not be used; the answers are those of the others"


def answer(verb, traces, code):
    """The results as JSON, and stderr."""
    if os.path.exists("out.json"):
        os.remove("out.json")
    done = attempt(verb, *traces, *COMMANDS[verb], "--json", "out.json")
    assert done.returncode == code, (verb, traces, done)
    if not os.path.exists("out.json"):
        return None, done.stderr
    with open("out.json", encoding="utf-8") as file:
        found = json.load(file)
    text = json.dumps({key: value for key, value in found.items()
                       if key not in ("command", "cell_notes", "faults")})
    return text, done.stderr


def timeless(text):
    """Without the measured times of a replay."""
    rows = json.loads(text)
    for row in rows["results"]:
        row.pop("ns_per_event", None)
    return rows


def check(verb):
    wanted, _ = answer(verb, GOOD, attempt(verb, *GOOD, *COMMANDS[verb]).returncode)
    for bad, code in (("cut.pickle", 3), ("folder", 4), ("none.pickle", 4)):
        found, said = answer(verb, (GOOD[0], bad, GOOD[1]), code)
        assert timeless(found) == timeless(wanted), (verb, bad)
        assert said.count(f"fragsim {verb}: {bad}:") == 1 or \
            verb == "sweep" and bad in said, (verb, said)
        if verb != "sweep":
            assert f"fragsim {verb}: 1 of 3 {REPORT}\n" in said, (verb, said)
    found, said = answer(verb, ("cut.pickle", "none.pickle"), 4
                         if verb != "sweep" else 3)
    assert found is None, (verb, found)
    assert "cut.pickle" in said and "none.pickle" in said, (verb, said)


def check_without_history():
    """Snapshots without history, of one device or of the second of two."""
    with open(GOOD[0], "rb") as file:
        snapshot = pickle.load(file)
    life = snapshot["device_traces"][0]
    other = [{**s, "device": 1} for s in copy.deepcopy(snapshot["segments"])]
    for name, change in (("bare.pickle", {"device_traces": []}),
                         ("half.pickle", {"device_traces": [life, []],
                                          "segments": snapshot["segments"] +
                                          other})):
        with open(name, "wb") as file:
            pickle.dump({**snapshot, **change}, file)
    for verb in "replay", "fit", "tune", "steps", "leaks":
        wanted, _ = answer(verb, GOOD, attempt(verb, *GOOD,
                                           *COMMANDS[verb]).returncode)
        found, said = answer(verb, (GOOD[0], "bare.pickle", GOOD[1]), 3)
        assert timeless(found) == timeless(wanted), verb
        assert f"1 of 3 {REPORT}" in said, said
    wanted, _ = answer("tune", GOOD, 0)
    found, said = answer("tune", ("half.pickle", *GOOD), 3)
    assert timeless(found) == timeless(wanted), said


def check_text():
    """The text on stdout is that of the good ones, too."""
    for verb in COMMANDS:
        if verb in ("sweep", "replay"):
            continue
        plain = attempt(verb, "-q", *GOOD, *COMMANDS[verb])
        mixed = attempt(verb, "-q", "cut.pickle", *GOOD, "none.pickle",
                    *COMMANDS[verb])
        assert mixed.stdout == plain.stdout and mixed.returncode == 4, \
            (verb, mixed)
        assert f"2 of 4 {REPORT}" in mixed.stderr, (verb, mixed.stderr)


def check_outputs():
    """The files of a replay hold the runs of the good ones."""
    done = attempt("replay", *GOOD, "cut.pickle", "-o", "r.h5", "--csv", "r.csv")
    assert done.returncode == 3 and "written to r.h5" in done.stderr, done
    with open("r.csv", encoding="utf-8") as file:
        rows = file.read().split("\n")
    assert [row.split(",")[0] for row in rows[1:3]] == ["leak", "multistream"]
    assert attempt("report", "r.h5", "-o", "r.html").returncode in (0, 1)


def check_no_snapshot():
    """A readable trace that validate cannot compare is reported too."""
    with open("plain.csv", "w", encoding="utf-8") as file:
        file.write("op,id,bytes,stream\nalloc,0,512,0\n")
    done = attempt("validate", "plain.csv", *GOOD)
    assert done.returncode == 3 and done.stdout.count(": exact") == 2, done
    assert "plain.csv: expected a PyTorch snapshot" in done.stderr, done
    assert attempt("validate", "plain.csv").returncode == 3


def check_wrong_use():
    done = attempt("replay", GOOD[0], "best_fit")
    assert done.returncode == 2 and not done.stdout, done
    assert "a policy follows -p" in done.stderr, done


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in GOOD:
            with lzma.open(os.path.join(BUNDLED, name + ".xz")) as file, \
                    open(name, "wb") as out:
                shutil.copyfileobj(file, out)
        with open(GOOD[0], "rb") as file, open("cut.pickle", "wb") as out:
            out.write(file.read()[:50000])
        os.mkdir("folder")
        for verb in COMMANDS:
            check(verb)
        check_without_history()
        check_text()
        check_outputs()
        check_no_snapshot()
        check_wrong_use()
        os.chdir(ROOT)
    print(f"{len(COMMANDS)} commands answer beside bad traces")
    return 0


if __name__ == "__main__":
    sys.exit(main())
