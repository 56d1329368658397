#!/usr/bin/env python3
"""check_changes.py: recordings of an H200 (PyTorch 2.11) whose programs change the
settings of the allocator while they run; tests/gpu/settings/programs.py made them.

With the changes, which traces/pytorch_record.py wrote into the snapshot, `validate`
calls them exact. Without these keys, as PyTorch alone records, the changes between
ordinary and expandable segments are found, and a program with no others is exact; a
program with others is not called exact. No answer offers fragsim's own word for the
changes as a setting.
Environment: FRAGSIM.
"""
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT

RECORDED = os.path.join(ROOT, "traces", "bundled", "recorded")
# name: changes that are recorded, that are found, and whether these are all
CHANGES = {"train_and_generate": ("6 changes", "exact with 5 changes", 0),
           "rescue": ("1 change", "DIFFERS with 1 change", 1),
           "two_streams": ("4 changes", "DIFFERS", 1)}
OWN_KEY = "follows_changes"


def fragsim(*words):
    done = subprocess.run([FRAGSIM, *words], text=True, capture_output=True, check=False)
    return done.returncode, done.stdout


def without_changes(path, folder):
    """The snapshot without what traces/pytorch_record.py added."""
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    for key in "fragsim_start", "fragsim_settings":
        del snapshot[key]
    out = os.path.join(folder, "plain.pickle")
    with open(out, "wb") as file:
        pickle.dump(snapshot, file)
    return out


def main():
    for name, (count, found, status) in CHANGES.items():
        path = os.path.join(RECORDED, "changes_%s.pickle.xz" % name)
        code, said = fragsim("validate", path)
        words = "exact with %s of settings (recorded)" % count
        assert code == 0 and words in said, (name, code, said)
        with tempfile.TemporaryDirectory() as folder:
            code, said = fragsim("validate", without_changes(path, folder))
            assert code == status and ": " + found in said, (name, code, said)
            assert ("(found)" in said) == ("change" in found), (name, said)
        for answer in "tune", "triage":
            code, said = fragsim(answer, path)
            assert OWN_KEY not in said and "unlimited" not in said, (name, answer, said)
            assert answer == "triage" or "own changes, as recorded" in said, said
    print("%d recordings with changes of settings are exact" % len(CHANGES))


main()
