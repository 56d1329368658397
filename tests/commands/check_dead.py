#!/usr/bin/env python3
"""check_dead.py: what the commands say of a job that died.

Recordings of jobs that died are compared with recordings of the same jobs that
did not (../shared; a bundled one without it):
  - replay, fit, tune and sweep judge the completed trace, unless --as-recorded
    is given, and say so in text and JSON; the results that both make differ in
    their settings, so that they are not merged;
  - the completed trace needs what the complete run needs in the step in which
    the job died;
  - tune exports a setting only where its need, with the spread of the steps,
    stays below the limit; what it says to be enough is so in nine of ten
    complete runs, and what fails fails there;
  - `check` fails a recording that died, whatever its rules are, unless they
    allow a death, and no other one;
  - `info` says how far a recording reaches, and `import --complete` writes the
    completed trace.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHARED, results, run, share

RECORDED = os.path.join(SHARED, "recorded", "dev")
BUNDLED = os.path.join(ROOT, "traces", "bundled",
                       "lstm_varlen__cap_below.pickle.xz")
# The recordings whose last step is the largest of the complete run, and the
# peak requested of that run.
EXACT = {"rcnn_train__cap_below": 0.006, "unet_multires__cap_below": 0.001,
         "gnn_sample__cap_tight_exp": 0.001,
         "llama_varlen__cap_tight_exp": 0.001, "moe_train__cap_tight_exp": 0.001,
         "lstm_varlen__cap_tight": 0.001}


def peak(path, *options):
    return results("replay", "-q", path, *options)[0]["peak_requested_bytes"]


def check_commands(folder):
    """A bundled recording: every command completes it and says so."""
    recorded, = results("replay", "-q", BUNDLED, "--as-recorded")
    completed, = results("replay", "-q", BUNDLED)
    longer, = results("replay", "-q", BUNDLED, "--further-steps", "40")
    assert recorded["events"] < completed["events"] < longer["events"]
    assert recorded["peak_reserved_bytes"] < completed["peak_reserved_bytes"]
    for row, words in ((recorded, "ends where the job died"),
                       (completed, "was completed"),
                       (longer, "40 steps like")):
        notes = " ".join(row["notes"])
        assert words in notes and "the job died at event 1226" in notes, notes
        assert "10 complete steps" in notes, notes
    said = run("replay", BUNDLED).stderr
    assert all(note in said for note in completed["notes"]), said

    fit = results("fit", "-q", BUNDLED)[0]
    fit_recorded = results("fit", "-q", BUNDLED, "--as-recorded")[0]
    assert fit["notes"] == completed["notes"]
    assert fit_recorded["fit_bytes"] <= fit["fit_bytes"]

    sweep = [os.path.join(folder, name) for name in ("c.h5", "r.h5", "m.h5")]
    run("sweep", "-q", BUNDLED, "-o", sweep[0])
    run("sweep", "-q", BUNDLED, "--as-recorded", "-o", sweep[1])
    both = run("merge", "-q", sweep[2], sweep[0], sweep[1], code=(2, 3))
    assert "settings" in both.stderr, both

    tune = run("tune", "-q", BUNDLED, "-c", "4GiB", code=(1,)).stdout
    assert "no allocator can help at 4 GiB" in tune and "# note on" in tune, tune
    assert all(line.startswith("#") for line in tune.splitlines()), tune

    info = run("info", BUNDLED).stdout
    assert "ends where the job died" in info, info
    whole = os.path.join(folder, "whole.h5")
    run("import", "-q", BUNDLED, "--complete", "-o", whole)
    again, = results("replay", "-q", whole)
    for name in ("events", "peak_requested_bytes", "peak_reserved_bytes"):
        assert again[name] == completed[name], name
    run("replay", "-q", BUNDLED, "--step-mark", "nobody", code=(2,))


def complete_of(name):
    return os.path.join(RECORDED, name.split("__")[0] + ".pickle.xz")


def check_peaks():
    for name, error in share(list(EXACT.items())):
        found = peak(os.path.join(RECORDED, name + ".pickle.xz"))
        true = peak(complete_of(name))
        assert abs(found / true - 1) <= error, (name, found, true)


def spread(dead):
    """How many times what the completed trace needs is enough with 90 %: the
    peaks are drawn from an interval whose upper end is not known; a step that
    repeats the one before is no draw."""
    steps = [part["peak_requested_bytes"] for part in
             results("steps", "-q", dead)[0]["parts"] if part["part"] == "step"]
    draws = 1 + sum(abs(a - b) > 1e-3 * b for a, b in zip(steps, steps[1:]))
    least = min(steps) / peak(dead)
    return least + (1 - least) * 0.2 ** (-2 / draws)


def answer(dead, *options):
    """The exit status of tune, its answer, the setting and what is said of it."""
    done = run("tune", "-q", dead, "--json", "-", *options,
                   code=(0, 1))
    told, = json.loads(done.stdout)["results"]
    word = "nearest" if done.returncode else "chosen"
    assert told["nearest" if word == "chosen" else "chosen"] is None, told
    case, = told["cases"]
    assert case[word]["outcome"] in ("fails", "serves what was recorded"), case
    assert (case[word]["enough_bytes"] is None) == bool(case["enough_unknown"])
    return done.returncode, case["process_limit_bytes"], told[word]["settings"], \
        case[word], case["enough_unknown"]


def survives(path, setting, limit, *options):
    run, = results("replay", "-q", path, "-p", f"torch:{setting}", "--process-limit",
                f"{limit}B", "--stop-at-oom", *options)
    return run["num_ooms"] == 0


def need(path, setting):
    return results("fit", "-q", "--process-limit", "inf", path, "-p",
                f"torch:{setting}")[0]["need_bytes"]


def check_answer(dead, *options):
    """The figures of an answer, by replay, fit and the peaks of steps."""
    status, limit, setting, said, _ = answer(dead, *options)
    name = os.path.basename(dead)
    assert (said["outcome"] == "fails") != survives(
        dead, setting, limit, "--as-recorded"), name
    if said["need_bytes"]:
        assert said["need_bytes"] == need(dead, setting), name
    enough = said["enough_bytes"]
    if enough:
        assert abs(enough / said["need_bytes"] / spread(dead) - 1) < 1e-6, name
    assert status == int(not enough or enough > limit), (name, said)
    return status, limit, setting, said


def check_exports():
    """A setting is exported if what is enough fits, and only then."""
    _, _, _, said = check_answer(BUNDLED)
    enough = said["enough_bytes"]
    for limit, status in ((enough, 0), (enough - 1, 1)):
        options = "--without", "max_split_size_mb", "--process-limit", f"{limit}B"
        assert check_answer(BUNDLED, *options)[0] == status, limit
        text = run("tune", "-q", BUNDLED, *options, code=(status,)).stdout
        assert ("\nexport PYTORCH" in text) == (status == 0), text
        assert ("# not exported: PYTORCH" in text) == (status == 1), text
        assert "with a probability of 90 % no further step needs" in text, text


def check_promises():
    """On complete runs: fails is right, what is exported survives, and nine in
    ten of what is enough are."""
    held = told = 0
    for dead in share(sorted(glob.glob(os.path.join(
            RECORDED, "*__cap_*.pickle.xz")))):
        with open(dead.replace(".pickle.xz", ".json"), encoding="utf-8") as file:
            if not json.load(file)["oom"]:
                continue
        status, limit, setting, said = check_answer(dead)
        complete = complete_of(os.path.basename(dead))
        true = survives(complete, setting, limit)
        assert not (true and said["outcome"] == "fails"), dead
        assert true or status, (dead, setting)
        if said["enough_bytes"]:
            told += 1
            held += need(complete, setting) <= said["enough_bytes"]
    assert told and held >= 0.9 * told, (held, told)
    print(f"what is said to be enough is: {held} of {told}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_commands(folder)
        check_exports()
    if not os.path.isdir(RECORDED):
        print(f"check_dead: no folder {RECORDED}; the bundled recording only")
        return
    check_peaks()
    check_promises()
    print(f"{len(EXACT)} completed traces need what the complete runs need")


if __name__ == "__main__":
    sys.exit(main())
