#!/usr/bin/python3
"""check_edit.py: checks `fragsim edit' and `sweep --edit' on bundled recordings:
edits that change nothing, repetitions, the examples of the manual, and sweeps
against replays of edited files. With the shared recordings it also checks that a program edited to
call empty_cache in every step has the peak of the program that did. Skipped
(77) without h5py.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, SHARED, need, results, run

try:
    import h5py
except ImportError:
    print("check_edit: h5py is missing; skipped")
    sys.exit(77)

NAMES = ["leak", "leak_frames", "multistream", "gpt2_train", "cudagraph"]
ALLOC, FREE = 0, 1


def bundled(name):
    return os.path.join(BUNDLED, name + ".pickle.xz")


def edited(folder, path, *edits):
    out = os.path.join(folder, "edited.h5")
    args = sum((["-e", edit] for edit in edits), [])
    run("edit", "-q", path, *args, "-f", "-o", out)
    return out


class Trace:
    """The events of device 0 of a trace file, with a block for each event."""

    def __init__(self, path):
        file = h5py.File(path, "r")
        events = file["devices/0/events"]
        self.op = events["op"][:].tolist()
        slots = events["id"][:].tolist()
        self.bytes = events["bytes"][:].tolist()
        self.block, holder, count = [], {}, 0
        for op, slot in zip(self.op, slots):
            if op == ALLOC:
                holder[slot] = count
                count += 1
            self.block.append(holder.get(slot))


def imported(folder, name):
    out = os.path.join(folder, name + ".h5")
    run("import", "-q", bundled(name), "-f", "-o", out)
    return out


def check_identities(folder):
    """Edits that change nothing change no result of a replay."""
    for name in NAMES:
        wanted = results("replay", "-q", bundled(name), "-p", "torch",
                         "-p", "best_fit")
        for edit in ("slice:events=0..", "scale:factor=1", "keep:min=1",
                     "repeat:times=3;slice:events=..%d" %
                     (wanted[0]["events"] - 1)):
            path = edited(folder, bundled(name), edit)
            for a, b in zip(wanted, results("replay", "-q", path, "-p",
                                            "torch", "-p", "best_fit")):
                for key in ("events", "peak_requested_bytes",
                            "peak_reserved_bytes", "num_segment_alloc",
                            "num_segment_free", "peak_segments"):
                    assert a[key] == b[key], (name, edit, key, a[key], b[key])


def check_repeat(folder):
    """Blocks that are live at the end are freed between two repetitions."""
    one = Trace(imported(folder, "multistream"))
    live = one.op.count(ALLOC) - one.op.count(FREE)
    both = Trace(edited(folder, bundled("multistream"), "repeat:times=3"))
    for name, between in (("op", FREE), ("bytes", 0)):
        once = getattr(one, name)
        assert getattr(both, name) == (once + [between] * live) * 2 + once, name
    assert live and len(set(both.block)) == 3 * len(set(one.block))


def check_validate(folder):
    """validate refuses an edited trace, and the note says why."""
    path = edited(folder, bundled("leak"), "scale:factor=1")
    done = run("validate", path, code=3)
    assert "was edited" in done.stderr and "answers" in done.stderr, \
        done.stderr
    notes = results("replay", "-q", path)[0]["notes"]
    assert any("scale:factor=1" in note for note in notes), notes


def check_sites(folder):
    """A site is the text that top prints."""
    text = run("top", bundled("leak_frames")).stdout
    sites = re.findall(r"  (\S+ \([^():]+:\d+\))", text)
    assert sites, text
    path = edited(folder, bundled("leak_frames"), "keep:site=" + sites[0])
    kept = run("top", path).stdout
    assert sites[0] in kept, kept
    size = os.path.getsize(path)
    assert size < os.path.getsize(imported(folder, "leak_frames"))


def check_manual(folder):
    """Every example of the manual is an edit that works."""
    folder = os.path.join(folder, "manual")
    os.mkdir(folder)
    shutil.copy(bundled("multistream"), os.path.join(folder, "run.pickle.xz"))
    words = shlex.split(run("help", "edit").stdout.split("Example: ")[1])
    run(*words[1:], cwd=folder)
    examples = re.findall(r"^    example: (.*)$", run("help", "edits").stdout,
                          re.M)
    assert len(examples) >= 9, examples
    for example in examples:
        done = subprocess.run(
            [FRAGSIM, "edit", "run.pickle.xz", "-e", example, "-f", "-o",
             "x.h5"], capture_output=True, text=True, cwd=folder, check=False)
        # The recording has no stacks, no changes and other handles of streams.
        unfit = re.search("site=|stream=|change=", example)
        assert done.returncode == (2 if unfit else 0), (example, done.stderr)
        assert f'edit "{example}"' in done.stderr, (example, done.stderr)


def check_sweep(folder):
    """A cell of a sweep is a replay of the edited file; shards, chunks and
    the number of threads do not change the result."""
    edits = ["none", "slice:steps=2..4", "scale:factor=1.5", "empty-cache:every=50;scale:factor=2"]
    common = ["sweep", "-q", bundled("leak"), bundled("gpt2_train"), "-p",
              "torch", "-p", "best_fit"]
    for edit in edits:
        common += ["--edit", edit]
    out = os.path.join(folder, "sweep.h5")
    rows = json.loads(run(*common, "-j", "1", "-o", out, "--json",
                          "-").stdout)["results"]
    assert len(rows) == 2 * 2 * len(edits), len(rows)
    for name in ("leak", "gpt2_train"):
        for edit in edits:
            path = bundled(name) if edit == "none" else \
                edited(folder, bundled(name), edit)
            for wanted in results("replay", "-q", path, "-p", "torch", "-p",
                                  "best_fit"):
                row = [r for r in rows if r["trace"] == name and
                       r["policy"] == wanted["policy"] and
                       r["edit"] == ("" if edit == "none" else edit)]
                assert len(row) == 1, (name, edit, len(row))
                for key in ("events", "peak_requested_bytes",
                            "peak_reserved_bytes", "num_segment_alloc"):
                    assert row[0][key] == wanted[key], (name, edit, key)
    parts = []
    for index in ("1/3", "2/3", "3/3"):
        parts.append(os.path.join(folder, index[0] + ".h5"))
        run(*common, "--shard", index, "-j", "4", "-o", parts[-1])
    merged = os.path.join(folder, "merged.h5")
    run("merge", "-q", merged, *parts)
    with open(out, "rb") as a, open(merged, "rb") as b:
        assert a.read() == b.read(), "shards and the whole differ"
    file = h5py.File(out, "r")
    assert "edit" in file["summary"].dtype.names
    assert {file[f"runs/{n}"].attrs["edit"].decode() for n in range(len(rows))} == \
        {"" if edit == "none" else edit for edit in edits}
    listed = run(*common, "--list").stdout.split("\n")
    assert listed[2].endswith("\tinf\t" + edits[1]), listed


def check_plot(folder):
    """A figure tells edited traces apart."""
    if not shutil.which("gnuplot"):
        return
    out = os.path.join(folder, "figure.svg")
    run("plot", "-q", os.path.join(folder, "sweep.h5"), "heatmap", "-o", out)
    with open(out, encoding="utf-8") as file:
        assert "slice" in file.read()


def check_real(folder):
    """llama_empty is llama_varlen with a call of empty_cache in every step."""
    paths = [os.path.join(SHARED, "recorded", "dev", name + ".pickle.xz")
             for name in ("llama_varlen", "llama_empty")]
    if not all(os.path.exists(path) for path in paths):
        print("check_edit: the shared recordings are missing; their part is "
              "skipped")
        return
    path = edited(folder, paths[0], "empty-cache:every-steps=1")
    real, mine = results("replay", "-q", paths[1])[0], \
        results("replay", "-q", path)[0]
    for key in ("peak_reserved_bytes", "num_segment_alloc",
                "num_segment_free"):
        assert real[key] == mine[key], (key, real[key], mine[key])


def main():
    need(FRAGSIM)
    checks = [check_identities, check_repeat, check_validate,
              check_sites, check_manual, check_sweep, check_plot,
              check_real]
    with tempfile.TemporaryDirectory() as folder:
        for check in checks:
            check(folder)
    print("check_edit:", len(checks), "checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
