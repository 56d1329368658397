#!/usr/bin/env python3
"""check_start.py: checks how runs begin on a recording that begins late.

The bundled recordings are cut off as an overflowing history would cut them, at
many places. For each of them:
  - torch with the recorded settings adopts the recorded layout where the
    segments are ordinary: it holds at once what the recorded allocator held,
    and its peak equals the recorded one, or a note of its row says that it
    does not, in the JSON and on stderr;
  - best_fit starts from the same live blocks, so both rows have one lower
    bound, unless a block was pending;
  - torch with the other setting of expandable_segments starts from the live
    blocks, a note says so, and it needs no more than for the whole recording;
  - on a device that cannot hold the recorded segments, torch starts from the
    live blocks, and a note says so;
  - `steps` reserves and allocates at most what `replay` does;
  - `fit`: a replay at both ends of a span has the outcome and the start of the
    span.
The word is the same in the table, JSON, CSV, the result file and the page. A
snapshot without history has no row. The inputs that are no trace have words of
their own.
Exit 1 if anything differs. Environment: FRAGSIM (the tool; default
build/fragsim).
"""
import bz2
import copy
import csv
import io
import json
import lzma
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, SANITIZED, need, run

ORDINARY = ("gpt2_train", "leak", "leak_cpp", "leak_frames", "multistream",
            "lstm_varlen__cap_tight_exp")

CUTS = 21  # of each recording
UNIT = 2 << 20


def rows(*words):
    done = run("replay", *words, "--json", "-")
    return json.loads(done.stdout)["results"], done.stderr


def cut(snapshot, share, path):
    traces = [t[int(len(t) * share):] for t in snapshot["device_traces"]]
    with open(path, "wb") as out:
        pickle.dump({**snapshot, "device_traces": traces}, out)


def facts(path):
    trace = json.loads(run("info", path, "--json", "-").stdout)["results"][0]
    return trace["devices"][0]


def has_pending(path):
    """Whether a block was freed before the cut, but not yet reusable. It is
    pending in an adopted layout; otherwise it is a live block until its
    free_completed."""
    with open(path, "rb") as stream:
        entries = pickle.load(stream)["device_traces"][0]
    requested = set()
    for entry in entries:
        if entry["action"] == "free_requested":
            requested.add(entry["addr"])
        elif entry["action"] == "free_completed":
            if entry["addr"] not in requested:
                return True
            requested.discard(entry["addr"])
    return False


def check_counts(path, known):
    """Blocks that were live before the recording are no events of it."""
    with open(path, "rb") as stream:
        entries = pickle.load(stream)["device_traces"][0]
    asked = sum(entry["action"] in ("alloc", "oom") for entry in entries)
    requests = known["requests"]
    assert requests["alloc"] == asked, (path, requests, asked)
    assert known["events"] == sum(requests.values()), (path, known)
    judged, = json.loads(run("validate", path, "--json", "-",
                             code=(0, 1)).stdout)["results"]
    assert judged["events"] == known["events"], (path, judged, known)


def check_cut(path, adopts, counts):
    known = facts(path)
    check_counts(path, known)
    if not known["events"]:
        return
    (torch, best), stderr = rows(path, "--as-recorded", "-c", "inf", "-p",
                                 "torch@recorded", "-p", "best_fit")
    late = known["initial_blocks"] > 0
    held = known["start_segments"] > 0
    words = "live blocks" if late else "empty"
    assert best["start"] == words, (path, best["start"])
    assert torch["start"] == ("adopted" if adopts and held else words), \
        (path, torch["start"])
    if has_pending(path):
        assert torch["lower_bound_bytes"] <= best["lower_bound_bytes"], path
    else:
        assert torch["lower_bound_bytes"] == best["lower_bound_bytes"], path
    own = [n for n in torch["notes"] if n not in best["notes"]]
    for note in own:
        assert f"{path}: {note}" in stderr, (path, note)
    differs = torch["peak_reserved_bytes"] != \
        known["recorded_peak_reserved_bytes"]
    said = [n for n in own if "the recorded allocator reserved" in n]
    assert bool(said) == differs, (path, own, torch["peak_reserved_bytes"],
                                   known["recorded_peak_reserved_bytes"])
    if held and not adopts:
        assert any("does not start from the recorded segments" in n
                   for n in own), (path, own)
    counts["cuts"] += 1
    counts["adopted"] += torch["start"] == "adopted"
    counts["equal"] += not differs


def check_steps(path, counts):
    """Steps begin with the recorded segments, as replay does."""
    command = (path, "-p", "torch@recorded", "-q")
    torch, = rows(*command, "--as-recorded")[0]
    steps, = json.loads(run("steps", *command, "--json",
                            "-").stdout)["results"]
    parts = steps["parts"]
    assert max(p["peak_reserved_bytes"] for p in parts) == \
        torch["peak_reserved_bytes"], (path, parts, torch)
    assert max(p["peak_allocated_bytes"] for p in parts) == \
        torch["peak_allocated_bytes"], (path, parts, torch)
    assert all(p["seconds"] is None or p["seconds"] < 1e6 for p in parts), parts
    counts["steps"] += 1


def check_kind(name, counts):
    """Settings that make segments of another kind start from the live blocks:
    an adopted layout would hold memory that they cannot use. The run then needs
    about what the same settings need for the whole recording."""
    with lzma.open(os.path.join(BUNDLED, f"{name}.pickle.xz")) as file:
        snapshot = pickle.load(file)
    cut(snapshot, 0, "whole.pickle")
    cut(snapshot, 0.3, "cut.pickle")
    kinds = ("torch", "torch:expandable_segments:True")
    options = ("--as-recorded", "-p", kinds[0], "-p", kinds[1])
    whole = rows("whole.pickle", *options)[0]
    expandable = any(s["is_expandable"] for s in snapshot["segments"])
    for i, row in enumerate(rows("cut.pickle", *options)[0]):
        own = (i == 1) == expandable
        assert row["start"] == ("adopted" if own else "live blocks"), row
        said = any("segments of the other kind" in n for n in row["notes"])
        assert said == (not own), row
        peak = whole[i]["peak_reserved_bytes"]
        assert row["peak_reserved_bytes"] <= 1.05 * peak, (name, row, peak)
        counts["kinds"] += 1


def held_bytes(path):
    """What the recorded allocator held at the start of the cut."""
    with open(path, "rb") as stream:
        snapshot = pickle.load(stream)
    sizes = {s["address"]: s["total_size"] for s in snapshot["segments"]}
    for entry in reversed(snapshot["device_traces"][0]):
        if entry["action"] == "segment_alloc":
            del sizes[entry["addr"]]
        elif entry["action"] == "segment_free":
            sizes[entry["addr"]] = entry["size"]
    return sum(sizes.values())


def check_capacity(path):
    held = held_bytes(path)
    found, stderr = rows(path, "-c", f"{held - 1},{held}", "-p",
                         "torch@recorded")
    assert [r["start"] for r in found] == ["live blocks", "adopted"], found
    note = "they do not fit in the device"
    assert any(note in n for n in found[0]["notes"]) and note in stderr
    assert not any(note in n for n in found[1]["notes"])


def check_fit(path):
    spans = json.loads(run("fit", path, "-q", "-p", "torch@recorded",
                           "--frontier", "spans.csv", "--force", "--json",
                           "-").stdout)["results"][0]["frontier"]
    starts = set()
    for span in spans:
        ends = [span["from_bytes"]]
        if span["to_bytes"]:
            ends.append(span["to_bytes"] - 1)
        for row in rows(path, "-q", "--stop-at-oom", "-p", "torch@recorded",
                        "-c", ",".join(map(str, ends)))[0]:
            for key in ("start", "first_oom_event", "peak_reserved_bytes"):
                assert row[key] == span[key], (path, span, row[key])
        starts.add(span["start"])
    assert "adopted" in starts, (path, starts)
    return starts


def check_outputs(path):
    table = run("replay", path, "-q", "-p", "torch", "-p", "best_fit",
                "-o", "r.h5", "--force").stdout.splitlines()
    assert "start" in table[0] and "adopted" in table[1] and \
        "live blocks" in table[2], table
    out = run("replay", path, "-q", "-p", "torch", "-p", "best_fit", "--csv",
              "-").stdout
    assert [r["start"] for r in csv.DictReader(io.StringIO(out))] == \
        ["adopted", "live blocks"]
    run("merge", "merged.h5", "r.h5", "--force")
    run("report", "merged.h5", "-o", "page.html", "--force", code=(0, 1))
    with open("page.html", encoding="utf-8") as stream:
        page = stream.read()
    for word in ("adopted", "live blocks"):
        assert f'<td class="l">{word}</td>' in page, word
    run("sweep", path, "-q", "-p", "torch", "-o", "s.h5", "--force")
    run("report", "s.h5", "-o", "page.html", "--force", code=(0, 1))
    with open("page.html", encoding="utf-8") as stream:
        assert '<td class="l">adopted</td>' in stream.read()


def check_inputs(snapshot):
    """Files that are no trace, or nearly one."""
    def refused(name, data, words, *command):
        with open(name, "wb") as out:
            out.write(data)
        stderr = run(*(command or ("info", name)), code=(2, 3, 4)).stderr
        assert words in stderr, (name, stderr)

    plain = pickle.dumps(snapshot)
    back = json.loads(json.dumps(snapshot))
    refused("two.pickle", plain + plain, "such as a second trace")
    refused("run.pickle.bz2", bz2.compress(plain), "bzip2")
    refused("lfs.pickle", b"version https://git-lfs.github.com/spec/v1\n"
            b"oid sha256:00\nsize 5\n", "Git LFS")
    refused("run.json", json.dumps(back).encode(), "a snapshot of PyTorch as "
            "JSON")
    refused("back.pickle", pickle.dumps(back), "JSON turns tuples into lists")

    with open("own.pickle", "wb") as out:
        out.write(plain)
    with open("own.json", "wb") as out:
        out.write(b'{"loss": [1]}')
    for command in ("validate", "summary"):
        for more in (), ("--stats", "none"):
            assert "counters is ignored: own.json: expected" in \
                run(command, "own.pickle", *more).stderr, command
        refused("own.json", b'{"loss": [1]}', 'expected a JSON object with',
                command, "own.pickle", "--stats", "own.json")

    entries = snapshot["device_traces"][0]
    other = [{**entries[0], "action": "warp"}, {"action": "snapshot"}]
    with open("warp.pickle", "wb") as out:
        pickle.dump({**snapshot, "device_traces": [other + entries]}, out)
    notes = json.loads(run("info", "warp.pickle", "--json", "-").stdout)
    notes = notes["results"][0]["notes"]
    assert any(n.startswith('1 trace entries') and '"warp"' in n
               for n in notes), notes


def check_no_history(snapshot):
    cut(snapshot, 1, "bare.pickle")
    done = run("replay", "bare.pickle", "--json", "bare.json", code=(3,))
    assert "no history" in done.stderr and not os.path.exists("bare.json")
    entries = snapshot["device_traces"][0]
    with open("half.pickle", "wb") as out:
        pickle.dump({**snapshot, "device_traces": [entries, []], "segments":
                     snapshot["segments"] + copy.deepcopy([
                         {**snapshot["segments"][0], "device": 1}])}, out)
    found, _ = rows("half.pickle")
    assert [r["device"] for r in found] == [0] * len(found) and found
    run("replay", "half.pickle", "--device", "1", code=(3,))


def main():
    need(FRAGSIM)
    cuts = CUTS // 4 if SANITIZED else CUTS
    counts = {"cuts": 0, "adopted": 0, "equal": 0, "steps": 0, "kinds": 0}
    starts = set()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ORDINARY:
            with lzma.open(os.path.join(BUNDLED, f"{name}.pickle.xz")) as file:
                snapshot = pickle.load(file)
            for i in range(cuts):
                cut(snapshot, i / cuts, "cut.pickle")
                check_cut("cut.pickle", True, counts)
                if i % 5 == 0:
                    check_steps("cut.pickle", counts)
            if name in ORDINARY[:3]:
                cut(snapshot, 0.8, "cut.pickle")
                check_capacity("cut.pickle")
                starts |= check_fit("cut.pickle")
            if name == "leak":
                check_outputs("cut.pickle")
                check_inputs(snapshot)
                check_no_history(snapshot)
        for name in "gpt2_train", "lstm_varlen__cap_tight_exp":
            check_kind(name, counts)
        os.chdir(ROOT)
    assert starts == {"adopted", "live blocks"}, starts
    print(f"start: {counts['cuts']} cuts, {counts['adopted']} adopted, "
          f"{counts['equal']} with the recorded peak reserved; "
          f"{counts['steps']} tables of steps; {counts['kinds']} kinds")
    return 0 if counts["adopted"] else 1


if __name__ == "__main__":
    sys.exit(main())
