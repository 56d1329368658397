#!/usr/bin/env python3
"""check_changes.py: recordings of an H200 (PyTorch 2.11) whose programs change the
settings of the allocator while they run; tests/gpu/settings/programs.py made them.

With the changes, which traces/pytorch_record.py wrote into the snapshot, `validate`
calls them exact. Without these keys, as PyTorch alone records, the changes between
ordinary and expandable segments are found, and a program with no others is exact; a
program with others is not called exact. The limit is that of the changes, also without the file
of counters. `tune`, `fit` and `triage` say whether their sentence means the settings
as recorded, one setting, or an edited trace, and say nothing of it where there is no
change. No answer offers fragsim's own word for the
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


def check_meaning(path, count):
    """Which settings an answer means."""
    kept = "the settings as recorded, with %s of settings (recorded)" % count
    one = "one setting for the whole run, in place of %s of settings (recorded)" % count
    for words, said in ((["triage", path], "It holds for %s." % kept),
                        (["tune", path], "the run has %s\n" % kept),
                        (["fit", path, "-p", "torch@recorded"], "the run has %s\n" % kept),
                        (["fit", path], "%s, which torch@recorded follows\n" % one),
                        (["fit", path, "-p", "best_fit"], None)):
        done = subprocess.run([FRAGSIM, *words], text=True, capture_output=True,
                              check=False)
        text = done.stdout + done.stderr
        assert (said or "") in text and (said or "for the whole run" not in text), (words, text)


def check_setting(path):
    """The answer is a setting."""
    code, said = fragsim("triage", path, "-c", "3GiB")
    assert code == 0 and "It holds for one setting for the whole run, in place of 1 " \
        "change of settings (recorded)." in said, said


def check_edited(path, folder):
    """One change is left out, or all."""
    out = os.path.join(folder, "edited.h5")
    for edit, said in (("no-settings:change=2", "the settings of the edited trace, with "
                        "3 changes of settings (edited)"), ("no-settings", None)):
        code, text = fragsim("import", path, "-q", "-f", "-o", out, "-e", edit)
        assert code == 0, text
        for answer in "triage", "tune":
            code, text = fragsim(answer, out, "-c", "3GiB")
            assert (said in text) if said else ("of settings" not in text), (answer, text)


def main():
    for name, (count, found, status) in CHANGES.items():
        path = os.path.join(RECORDED, "changes_%s.pickle.xz" % name)
        code, said = fragsim("validate", path)
        words = "exact with %s of settings (recorded)" % count
        assert code == 0 and words in said, (name, code, said)
        with tempfile.TemporaryDirectory() as folder:
            check_meaning(path, count)
            if name == "two_streams":
                check_edited(path, folder)
            if name == "rescue":
                check_setting(path)
            with lzma.open(path) as file, \
                    open(os.path.join(folder, "alone.pickle"), "wb") as out:
                out.write(file.read())
            code, said = fragsim("validate", out.name, "--json", "-")
            assert code == 0 and '"limit_source": "given"' in said, (name, said)
            code, said = fragsim("validate", without_changes(path, folder))
            assert code == status and ": " + found in said, (name, code, said)
            assert ("(found)" in said) == ("change" in found), (name, said)
        for answer in "tune", "triage":
            code, said = fragsim(answer, path)
            assert OWN_KEY not in said and "unlimited" not in said, (name, answer, said)
            assert answer == "triage" or "own changes, as recorded" in said, said
    print("%d recordings with changes of settings are exact" % len(CHANGES))


main()
