#!/usr/bin/env python3
"""check_changes.py: recordings of an H200 (PyTorch 2.11) whose programs change the
settings of the allocator while they run; tests/gpu/settings/programs.py made them.

With the changes, which traces/pytorch_record.py wrote into the snapshot, `validate`
calls them exact. Without these keys, as PyTorch alone records, the changes are found.
Each stands in the interval of events that the answer names, as the program's own do. A
change at the ends of the interval is exact, and one beyond them is not. One request that
was served in another way is no change. The limit is that of the changes, also without
the file of counters. `tune`, `fit` and `triage` say whether their sentence means the
settings as recorded, one setting, or an edited trace. No answer offers fragsim's own word for the
changes as a setting.
Environment: FRAGSIM.
"""
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM

RECORDED = os.path.join(BUNDLED, "recorded")
# name: changes that are recorded, that are found, and what the answer says of these
CHANGES = {
    "train_and_generate": (6, 5, []),
    "rescue": (1, 1, ["expandable_segments:True"]),
    "two_streams": (4, 1, ["max_split_size_mb:24 from the start, or at the latest from "
                           "event 503 on; ambiguous, as well: max_split_size_mb:32",
                           "no max_split_size_mb"]),
    "load_and_profile": (1, 1, ["max_split_size_mb:20 from the start, or at the latest from "
                                "event 83 on",
                                "no max_split_size_mb"]),
    "rounding": (2, 2, ["no roundup_power2_divisions from the start",
                        "roundup_power2_divisions:4",
                        "roundup_power2_divisions:[1:8,16:2,>:1]"]),
    "fraction_lowered": (2, 2, ["memory limit such as 1.547 GiB", "no memory limit"])}
FOUND = re.compile(r"does not tell: (.*?) from (?:one of the events (\d+) to (\d+)|the start)")
MEANT = "train_and_generate", "rescue", "two_streams"
OWN_KEY = "follows_changes"


def fragsim(*words):
    done = subprocess.run([FRAGSIM, *words], text=True, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def load(name):
    with lzma.open(os.path.join(RECORDED, "changes_%s.pickle.xz" % name)) as file:
        return pickle.load(file)


def written(snapshot, folder):
    path = os.path.join(folder, "plain.pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    return path


def without_changes(name, folder):
    """The snapshot without what traces/pytorch_record.py added."""
    snapshot = load(name)
    for key in "fragsim_start", "fragsim_settings":
        del snapshot[key]
    return written(snapshot, folder)


def places(path):
    """The events of the changes in mid-run."""
    code, said, _ = fragsim("info", "-q", "--json", "-", path)
    assert code == 0, said
    return [row["event"] for row in json.loads(said)["results"][0]["devices"][0]
            ["settings_changes"] if row["event"]]


def intervals(said):
    """Of the changes in mid-run that the answer names, and the text of each."""
    return [(row[0], int(row[1]), int(row[2])) for row in FOUND.findall(said) if row[1]]


def check_found(name, folder):
    recorded, count, texts = CHANGES[name]
    truth = places(os.path.join(RECORDED, "changes_%s.pickle.xz" % name))
    path = without_changes(name, folder)
    code, said, notes = fragsim("validate", path)
    words = ": exact with %d change%s of settings (found)" % (count, "s"[:count != 1])
    assert code == 0 and words in said, (name, code, said)
    for text in texts:
        assert "does not tell: " + text in notes, (name, text, notes)
    found = intervals(notes)
    for (text, low, high), event in zip(found, places(path)):
        assert low <= event <= high, (name, text, low, event, high)
        assert any(low <= own <= high for own in truth), (name, text, low, high, truth)
    assert len(truth) == recorded, (name, truth)
    return found


def calls_after(path, event):
    """Requests and frees from an event on."""
    _, said, _ = fragsim("export", "--to", "csv", "-q", path, "-o", "-")
    rows = [line.split(",")[0] for line in said.splitlines()[1:]]
    assert "free_requested" not in rows
    return sum(row in ("alloc", "free") for row in rows[event:])


def check_ends(name, low, high, folder):
    """A recorded change is exact from `low` to `high` and nowhere else."""
    source = os.path.join(RECORDED, "changes_%s.pickle.xz" % name)
    for event, exact in (low - 1, False), (low, True), (high, True), (high + 1, False):
        snapshot = load(name)
        snapshot["fragsim_settings"][-1]["calls_after"] = calls_after(source, event)
        code, said, _ = fragsim("validate", written(snapshot, folder))
        assert (code == 0) == exact, (name, event, exact, said)


def check_damage(folder):
    """Two blocks that change places: settings for one request would explain them."""
    with lzma.open(os.path.join(BUNDLED, "cudagraph.pickle.xz")) as file:
        snapshot = pickle.load(file)
    entries = [entry for entry in snapshot["device_traces"][0]
               if entry["action"] == "alloc"]
    one, two = entries[873:875]
    one["addr"], two["addr"] = two["addr"], one["addr"]
    code, said, notes = fragsim("validate", written(snapshot, folder))
    assert code == 1 and ": DIFFERS" in said and "(found)" not in said, said
    assert "does not tell" not in notes, notes


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
    code, said, _ = fragsim("triage", path, "-c", "3GiB")
    assert code == 0 and "It holds for one setting for the whole run, in place of 1 " \
        "change of settings (recorded)." in said, said


def check_edited(path, folder):
    """One change is left out, or all."""
    out = os.path.join(folder, "edited.h5")
    for edit, said in (("no-settings:change=2", "the settings of the edited trace, with "
                        "3 changes of settings (edited)"), ("no-settings", None)):
        code, text, _ = fragsim("import", path, "-q", "-f", "-o", out, "-e", edit)
        assert code == 0, text
        for answer in "triage", "tune":
            code, text, _ = fragsim(answer, out, "-c", "3GiB")
            assert (said in text) if said else ("of settings" not in text), (answer, text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, (count, _, _) in CHANGES.items():
            path = os.path.join(RECORDED, "changes_%s.pickle.xz" % name)
            code, said, _ = fragsim("validate", path)
            words = "exact with %d change%s of settings (recorded)" % (
                count, "s"[:count != 1])
            assert code == 0 and words in said, (name, code, said)
            words = "%d change%s" % (count, "s"[:count != 1])
            if name in MEANT:
                check_meaning(path, words)
            if name == "two_streams":
                check_edited(path, folder)
            if name == "rescue":
                check_setting(path)
            alone = written(load(name), folder)
            code, said, _ = fragsim("validate", alone, "--json", "-")
            assert code == 0 and '"limit_source": "given"' in said, (name, said)
            found = check_found(name, folder)
            if name == "load_and_profile":
                check_ends(name, *found[0][1:], folder)
            for answer in "tune", "triage":
                code, said, _ = fragsim(answer, path)
                assert OWN_KEY not in said, (name, answer, said)
                assert name == "fraction_lowered" or "unlimited" not in said, said
                assert answer == "triage" or "own changes, as recorded" in said, said
        check_damage(folder)
    print("%d recordings with changes of settings are exact" % len(CHANGES))


main()
