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
    stays below the limit, and prints how many jobs in its state lived, as
    paper/tables/calibrate.py counts them;
  - `info` says how far a recording reaches.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHARED, results, run, share
sys.path.insert(0, os.path.join(ROOT, "paper", "tables"))
import calibrate

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
    run("replay", "-q", BUNDLED, "--step-mark", "nobody", code=(2,))


def check_peaks():
    for name, error in share(list(EXACT.items())):
        found, true = (peak(os.path.join(RECORDED, some + ".pickle.xz"))
                       for some in (name, name.split("__")[0]))
        assert abs(found / true - 1) <= error, (name, found, true)


def check_exports():
    """A setting is exported if what is said to be enough fits, and only then; how many
    lived in this state is printed."""
    best = results("tune", "-q", BUNDLED, code=(1,))[0]["cases"][0]["best"]
    for limit, odds in ((best["enough_bytes"], "enough"),
                        (best["enough_bytes"] - 1, "worth trying"),
                        (best["need_bytes"] - 1, "not enough")):
        options = "-q", BUNDLED, "--without", "max_split_size_mb", "--process-limit", \
            f"{limit}B"
        is_enough = odds == "enough"
        told, = results("tune", *options, code=(not is_enough,))
        assert told["best"]["odds"] == odds and bool(told["chosen"]) == is_enough, told
        text = run("tune", *options, code=(not is_enough,)).stdout
        assert ("\nexport PYTORCH" in text) == is_enough, text
        lived = f"of {told['best']['of']} recorded jobs in this state " \
            f"{told['best']['lived']} lived"
        assert odds == "not enough" or lived in text, (lived, text)


def check_counts():
    """The counts that are printed are those of paper/pages/dead.md. The first state,
    a job that went on after other failures, was counted on the jobs held out."""
    source = os.path.join(ROOT, "sim", "experiments", "tune", "odds.c")
    with open(source, encoding="ascii") as file:
        printed = re.findall(r"ODDS_\w+, (\d+), (\d+)\}", file.read())
    rows = calibrate.once(sum((calibrate.decided(calibrate.read(path))
                               for path in calibrate.TABLES[:2]), []))
    counted = [calibrate.share([r for r in rows if calibrate.state_of(r) == name])
               for name, _, _ in calibrate.STATES]
    went_on = [r for r in calibrate.read(calibrate.TABLES[2])
               if r["failed_requests"] > 1 and r["of"] == 200]
    counted.insert(0, f"{sum(r['outcome'] == 'survived' for r in went_on)} of "
                   f"{len(went_on)}")
    assert [" of ".join(pair) for pair in printed] == counted, (printed, counted)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_commands(folder)
    check_exports()
    check_counts()
    if not os.path.isdir(RECORDED):
        print(f"check_dead: no folder {RECORDED}; the bundled recording only")
        return
    check_peaks()
    print(f"{len(EXACT)} completed traces need what the complete runs need")


if __name__ == "__main__":
    sys.exit(main())
