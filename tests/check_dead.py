#!/usr/bin/env python3
"""check_dead.py: what the commands say of a job that died.

Recordings of jobs that died are compared with recordings of the same jobs that
did not (../shared; a bundled one without it):
  - replay, fit, tune and sweep judge the completed trace, unless --as-recorded
    is given, and say so in text and JSON; the results that both make differ in
    their settings, so that they are not merged;
  - the completed trace needs what the complete run needs in the step in which
    the job died;
  - every setting that is promised and fails on the complete run comes with a
    note that says why it may;
  - `check` fails a recording that died, whatever its rules are, unless they
    allow a death, and no other one;
  - `info` says how far a recording reaches, and `import --complete` writes the
    completed trace.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
RECORDED = os.path.join(SHARED, "recorded", "dev")
BUNDLED = os.path.join(ROOT, "traces", "bundled",
                       "lstm_varlen__cap_below.pickle.xz")
# The recordings whose last step is the largest of the complete run, and the
# peak requested of that run.
EXACT = {"rcnn_train__cap_below": 0.006, "unet_multires__cap_below": 0.001,
         "gnn_sample__cap_tight_exp": 0.001,
         "llama_varlen__cap_tight_exp": 0.001, "moe_train__cap_tight_exp": 0.001,
         "lstm_varlen__cap_tight": 0.001}
# dead, and whether its promise may fail on the complete run
PROMISES = ["rcnn_train__cap_below", "rcnn_train__cap_tight",
            "gnn_sample__cap_below", "lstm_varlen__cap_below",
            "unet_multires__cap_below"]


def fragsim(*arguments, codes=(0,)):
    done = subprocess.run([FRAGSIM, *arguments], capture_output=True, text=True,
                          check=False)
    assert done.returncode in codes, (arguments, done.stderr)
    return done


def rows(*arguments, codes=(0,)):
    done = fragsim(*arguments, "--json", "-", codes=codes)
    return json.loads(done.stdout)["results"]


def peak(path, *options):
    return rows("replay", "-q", path, *options)[0]["peak_requested_bytes"]


def check_commands(folder):
    """A bundled recording: every command completes it and says so."""
    recorded, = rows("replay", "-q", BUNDLED, "--as-recorded")
    completed, = rows("replay", "-q", BUNDLED)
    longer, = rows("replay", "-q", BUNDLED, "--further-steps", "40")
    assert recorded["events"] < completed["events"] < longer["events"]
    assert recorded["peak_reserved_bytes"] < completed["peak_reserved_bytes"]
    for row, words in ((recorded, "ends where the job died"),
                       (completed, "was completed"),
                       (longer, "40 steps like")):
        notes = " ".join(row["notes"])
        assert words in notes and "the job died at event 1226" in notes, notes
        assert "10 complete steps" in notes, notes
    said = fragsim("replay", BUNDLED).stderr
    assert all(note in said for note in completed["notes"]), said

    fit = rows("fit", "-q", BUNDLED)[0]
    fit_recorded = rows("fit", "-q", BUNDLED, "--as-recorded")[0]
    assert fit["notes"] == completed["notes"]
    assert fit_recorded["fit_bytes"] <= fit["fit_bytes"]

    sweep = [os.path.join(folder, name) for name in ("c.h5", "r.h5", "m.h5")]
    fragsim("sweep", "-q", BUNDLED, "-o", sweep[0])
    fragsim("sweep", "-q", BUNDLED, "--as-recorded", "-o", sweep[1])
    both = fragsim("merge", "-q", sweep[2], sweep[0], sweep[1], codes=(2, 3))
    assert "settings" in both.stderr, both

    tune = fragsim("tune", "-q", BUNDLED, "-c", "4GiB", "--no-hold-out", codes=(1,)).stdout
    assert "no allocator can help at 4 GiB" in tune, tune
    assert "export" not in tune and "# note on" in tune, tune

    info = fragsim("info", BUNDLED).stdout
    assert "ends where the job died" in info, info
    whole = os.path.join(folder, "whole.h5")
    fragsim("import", "-q", BUNDLED, "--complete", "-o", whole)
    again, = rows("replay", "-q", whole)
    for name in ("events", "peak_requested_bytes", "peak_reserved_bytes"):
        assert again[name] == completed[name], name
    fragsim("replay", "-q", BUNDLED, "--step-mark", "nobody", codes=(2,))


def complete_of(name):
    return os.path.join(RECORDED, name.split("__")[0] + ".pickle.xz")


def check_peaks():
    for name, error in EXACT.items():
        found = peak(os.path.join(RECORDED, name + ".pickle.xz"))
        true = peak(complete_of(name))
        assert abs(found / true - 1) <= error, (name, found, true)


def check_promises():
    for name in PROMISES:
        dead = os.path.join(RECORDED, name + ".pickle.xz")
        with open(os.path.join(RECORDED, name + ".json"),
                  encoding="utf-8") as file:
            capacity = f"{json.load(file)['cap']}B"
        answer, = rows("tune", "-q", dead, "-c", capacity,
                       "--no-hold-out", codes=(0, 1))
        if answer["impossible"]:
            asked = answer["impossible"][0]["asked_bytes"]
            assert asked > int(capacity[:-1])
            assert answer["impossible"][0]["predicted"]
            text = fragsim("tune", "-q", dead, "-c", capacity, codes=(1,)).stdout
            assert "which is predicted" in text, text
            continue
        notes = " ".join(answer["cases"][0]["notes"])
        if not answer["chosen"]:
            continue
        run, = rows("replay", "-q", complete_of(name), "-c", capacity, "-p",
                    "torch:" + answer["chosen"]["settings"])
        assert not run["num_ooms"] or "a later step may ask for more" in notes, \
            (name, answer["chosen"], run["num_ooms"], notes)


def check_gates(folder):
    """The counters beside a recording say whether the job died."""
    strict, mild = (os.path.join(folder, name) for name in ("strict", "mild"))
    with open(strict, "w", encoding="ascii") as out:
        out.write("peak_reserved <= 4TiB\n")
    with open(mild, "w", encoding="ascii") as out:
        out.write("peak_reserved <= 4TiB\ndeaths <= 1\n")
    paths = glob.glob(os.path.join(SHARED, "recorded", "*", "*.pickle.xz"))
    found = set()
    for path in [BUNDLED] + [p for p in paths if os.path.getsize(p) < 1e6]:
        beside = path.replace(".pickle.xz", ".json")
        if not os.path.exists(beside):
            continue
        with open(beside, encoding="utf-8") as file:
            died = bool(json.load(file).get("oom"))
        fragsim("check", "-q", path, "-r", strict, codes=(int(died),))
        fragsim("check", "-q", path, "-r", mild)
        found.add(died)
    assert True in found and (False in found or not paths), found


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_commands(folder)
        check_gates(folder)
    if not os.path.isdir(RECORDED):
        print(f"check_dead: no folder {RECORDED}; the bundled recording only")
        return
    check_peaks()
    check_promises()
    print(f"{len(EXACT)} completed traces need what the complete runs need")


if __name__ == "__main__":
    sys.exit(main())
