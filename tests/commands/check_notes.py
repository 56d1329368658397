#!/usr/bin/env python3
"""check_notes.py: checks that an incomplete recording is not taken for a whole.

From a bundled recording it makes one that lost its beginning and snapshots
without history. Every command that answers from a trace passes on the notes of
its reader, in text and in JSON, and states that the need is a lower bound. fit
and tune refuse a device without history, with exit 3 and the remedy.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import copy
import json
import lzma
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, need, run

WHOLE = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
FIRST = ("device 0: the recording lacks the beginning of the job: before the "
         "first entry, 648 blocks (3.709 GiB) were live and 189 segments "
         "(8.734 GiB) were held")
BOUND = ("device 0: the peak before the recording began is not known, so the "
         "need that is stated for this trace is a lower bound")
LIVE = ("the run does not start from the recorded segments (8.734 GiB): all "
        "runs that are compared start from the live blocks")
REMEDY = ("record with torch.cuda.memory._record_memory_history() before the "
          "job starts")


def make_traces():
    """late: the last 3,000 entries. bare: no entries. half: device 1 has no
    entries."""
    with lzma.open(WHOLE) as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    both = snapshot["segments"] + [
        dict(copy.deepcopy(segment), device=1)
        for segment in snapshot["segments"]]
    for name, changes in {
            "late": {"device_traces": [entries[-3000:]]},
            "bare": {"device_traces": [[]]},
            "half": {"device_traces": [entries, []], "segments": both},
    }.items():
        with open(name + ".pickle", "wb") as file:
            pickle.dump({**snapshot, **changes}, file)


def notes_of(trace):
    text = run("info", "-q", trace, "--json", "-").stdout
    return json.loads(text)["results"][0]["notes"]


def rows_of(*arguments):
    return json.loads(run(*arguments, code=None).stdout)["results"]


def check_late():
    notes = notes_of("late.pickle")
    assert notes[:2] == [FIRST, BOUND], notes
    assert not any("\n" in note for note in notes)
    said = [f"late.pickle: {note}\n" for note in notes]
    for verb in ("fit", "replay"):
        done = run(verb, "late.pickle")
        assert done.stderr.startswith("".join(said)), done.stderr
        row = rows_of(verb, "-q", "late.pickle", "--json", "-")[0]
        own = row["notes"][len(notes):]
        assert row["notes"][:len(notes)] == notes, row
        assert (row["start"] == "adopted") == (not own), row
        assert all(f"late.pickle: {note}\n" in done.stderr for note in own)
    text = run("tune", "-q", "late.pickle").stdout
    assert text.startswith(
        "".join(f"# note on late: {note}\n" for note in notes)), text
    best = rows_of("tune", "-q", "late.pickle", "--json", "-")[0]
    own = best["cases"][0]["notes"][len(notes):]
    assert best["cases"][0]["notes"][:len(notes)] == notes, best
    assert len(own) == 1 and own[0].endswith(LIVE), best
    done = run("sweep", "late.pickle", "-o", "late.h5", "--json",
               "sweep.json")
    assert done.stderr.startswith("".join(said)), done.stderr
    with open("sweep.json", encoding="utf-8") as file:
        assert json.load(file)["results"][0]["notes"] == notes
    check_cells(notes)


def check_cells(notes):
    """Notes of cells: those of torch on a device without room for the recorded
    segments."""
    reason = ("the run does not start from the recorded segments (8.734 GiB): "
              "they do not fit in the device")
    cells = ["-p", "torch", "-p", "torch:max_split_size_mb:64", "-p",
             "best_fit", "-c", "7GiB,8GiB,20GiB"]
    text = ("late.pickle: device 0: 4 cells, the first one torch, capacity "
            f"7 GiB: {reason}\n")
    for verb, more in ("replay", []), ("sweep", ["-o", "cells.h5", "-f"]):
        done = run(verb, "late.pickle", *cells, *more)
        assert done.stderr.count(reason) == 1 and text in done.stderr, \
            done.stderr
    run("sweep", "-q", "late.pickle", *cells, "-o", "cells.h5", "-f", "--json",
        "cells.json")
    with open("cells.json", encoding="utf-8") as file:
        found = json.load(file)["cell_notes"]
    own = [n for n in found if n["device"] is not None]
    assert own == [{
        "trace": "late.pickle", "device": 0, "cells": 4, "note": reason,
        "first": "torch, capacity 7 GiB"}], found
    assert [(n["note"], n["cells"]) for n in found if n not in own] == \
        [(note, 9) for note in notes], found
    said = f"device 0: torch, capacity 7 GiB: {reason}"
    row = rows_of("replay", "-q", "late.pickle", *cells, "--json", "-")[0]
    assert row["notes"] == notes + [said], row
    late = ["tune", "late.pickle", "-c", "8GiB", "-q"]
    text = run(*late, code=None).stdout
    row = rows_of(*late, "--json", "-")[0]["cases"][0]
    own = row["notes"][len(notes):]
    assert len(own) == 1 and own[0].endswith(LIVE), row
    assert f"# note on late: {own[0]}\n" in text, text


def check_collection():
    """A threshold of garbage collection does nothing without a limit."""
    words = "garbage_collection_threshold has no effect"
    policy = ["-p", "torch:garbage_collection_threshold:0.5", "-f", "-o", "gc.h5"]
    for bound, said in (("-c", 1), ("--process-limit", 0)):
        assert run("sweep", "late.pickle", *policy, bound,
                   "20GiB").stderr.count(words) == said, bound
        run("report", "-q", "gc.h5", "-f", "-o", "gc.html")
        with open("gc.html", encoding="utf-8") as file:
            assert file.read().count(words) == said, bound


def check_whole():
    assert notes_of(WHOLE) == []
    for verb, more in ("fit", []), ("replay", []), ("tune", []):
        done = run(verb, WHOLE, *more)
        assert "lower bound" not in done.stderr + done.stdout
        row = rows_of(verb, "-q", WHOLE, *more, "--json", "-")[0]
        assert row.get("cases", [row])[0]["notes"] == [], row


def check_bare():
    for verb, more in ("fit", []), ("tune", []):
        done = run(verb, "-q", "bare.pickle", *more, code=3)
        assert not done.stdout and REMEDY in done.stderr, done
    done = run("replay", "bare.pickle", code=3)
    assert "the snapshot has no history: it shows what was held" in done.stderr
    assert "no event was recorded; 3 blocks (65 MiB)" in done.stderr


def check_half():
    done = run("fit", "-q", "half.pickle", code=3)
    assert "device 1 has no history; --device 0 selects" in done.stderr, done
    row = rows_of("fit", "-q", "half.pickle", "--device", "0", "--json", "-")[0]
    whole = rows_of("fit", "-q", WHOLE, "--json", "-")[0]
    assert row["fit_bytes"] == whole["fit_bytes"]
    assert not any("lower bound" in note for note in row["notes"]), row


NEWER = {"user_metadata", "compile_context", "external_annotations"}


def older(name, **settings):
    """A bundled snapshot as PyTorch 2.3 or 2.4 writes it, with these settings.
    """
    with lzma.open(os.path.join(BUNDLED, name)) as file:
        snapshot = pickle.load(file)
    settings = {**snapshot["allocator_settings"], **settings}
    del settings["graph_capture_record_stream_reuse"]
    traces = [[{k: v for k, v in e.items() if k not in NEWER} for e in t]
              for t in snapshot["device_traces"]]
    return {"segments": snapshot["segments"], "device_traces": traces,
            "allocator_settings": settings}


def check_releases():
    """An older release wrote the recording: the rules are those of the newest
    that may have, and a note says where these releases differ."""
    for name, snapshot in {
            # Since 2.5, private pools use expandable segments.
            "pools": older("cudagraph.pickle.xz", expandable_segments=True),
            # Until 2.3, one division is no rounding.
            "divided": older("gpt2_train.pickle.xz", roundup_power2_divisions={
                str(1 << i): 1 for i in range(16)})}.items():
        with open(name + ".pickle", "wb") as file:
            pickle.dump(snapshot, file)
    for command in ["replay", "-p", "torch@recorded"], ["explain"], ["validate"]:
        for name, words in ("pools", None), ("divided", "follows 2.4, which may"):
            done = run(*command, name + ".pickle", code=None)
            assert ("PyTorch 2.3 to 2.4 wrote the recording" in done.stderr) == \
                bool(words) and (words or "") in done.stderr, (command, name, done)
            row = rows_of(*command, "-q", name + ".pickle", "--json", "-")[0]
            assert any(words in note for note in row["notes"]) if words else \
                row.get("torch_version", "2.4") == "2.4", row
    assert "follows 2.11, which places otherwise" in run(
        "replay", "-p", "torch@recorded:torch_version:2.11", "pools.pickle").stderr
    assert "PyTorch 2.3 to 2.4; policy torch follows 2.4\n" in run(
        "info", "pools.pickle").stdout
    for command in "explain", "validate":
        assert "wrote the recording" not in run(command, WHOLE).stderr


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_traces()
        check_late()
        check_collection()
        check_whole()
        check_bare()
        check_half()
        check_releases()
        os.chdir(ROOT)
    print("every answer has its notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
