#!/usr/bin/env python3
"""check_verdict.py: the verdict of `fragsim triage` for each cause.

Small traces are built so that their cause is known, and recordings of programs
whose cause is known are in recorded/causes (shared): the verdict names that
cause in its own words and no other, in at most 25 words with one number. What
it says to do is checked by replays: a setting serves the job where the default
fails, the need is that of `fragsim fit`, a batch, a leak that is mended and a
block save bytes. A job that fits gets nothing to do and its headroom.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import pickle
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, DRIVER_KEEPS, SHARED, output, results, run, share

MIB = 1 << 20
# What the sentence of each cause has, and no other.
WORDS = {
    "demand": "its own data ",
    "growth": ", a leak",
    "fragmentation": "no free piece fitted its request of ",
    "cache": "reserved for other streams or pools",
    "outside": "memory outside PyTorch",
}
GPUS = {"h200": 150109880320, "t4": 14.56 * (1 << 30)}


def verdict(trace, bound, *more):
    row, = results("triage", "-q", trace, "-c", bound, *more, code=(0, 1))
    happened = row["happened"]["text"]
    sizes = re.findall(r"\d[\d.]*", happened)
    assert len(happened.split()) <= 25 and len(sizes) <= 1, happened
    assert row["sure"] and row["action"]["text"], row
    found = [c for c, words in WORDS.items() if words in happened]
    assert len(found) <= 1, (happened, found)
    if row["happened"]["cause"] != "none":
        assert found == [row["happened"]["cause"]], row
    return row


def csv(folder, name, rows):
    path = os.path.join(folder, name + ".csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("op,id,bytes,stream\n")
        for op, block, mib, stream in rows:
            file.write(f"{op},{block},{mib * MIB},{stream}\n")
    return path


def crowded(folder):
    """A snapshot of a job that died on a GPU that others had filled."""
    size, addr = 100 * MIB, 1 << 30
    block = {"address": addr, "size": size, "requested_size": size,
             "state": "active_allocated", "frames": []}
    events = [("segment_alloc", addr, size), ("alloc", addr, size),
              ("oom", 50 * MIB, 200 * MIB)]
    path = os.path.join(folder, "crowded.pickle")
    with open(path, "wb") as file:
        pickle.dump({
            "segments": [{"address": addr, "total_size": size, "stream": 0,
                          "device": 0, "segment_type": "large",
                          "allocated_size": size, "active_size": size,
                          "blocks": [block]}],
            "device_traces": [[{"action": a, "size": n, "stream": 0,
                                "device_free" if a == "oom" else "addr": at,
                                "frames": []} for a, at, n in events]]}, file)
    with open(path.replace(".pickle", ".json"), "w", encoding="utf-8") as file:
        json.dump({"stats": {}, "total_memory": 80 << 30}, file)
    return path


# Blocks 1 and 2 take turns, so that what is free is known: the trace, its
# bound, and its cause there.
BUILT = {
    "demand": ([("alloc", 1, 512, 0), ("alloc", 2, 600, 0)], "1GiB"),
    "fragmentation": ([("alloc", 1, 1024, 0), ("free", 1, 0, 0),
                       ("alloc", 2, 700, 0), ("alloc", 3, 400, 0)], "1200MiB"),
    "cache": ([("alloc", 1, 1024, 1), ("free", 1, 0, 1), ("alloc", 2, 512, 1),
               ("alloc", 3, 256, 0)], "1126MiB"),
}


def check_built(folder):
    for cause, (rows, bound) in BUILT.items():
        row = verdict(csv(folder, cause, rows), bound)
        assert row["happened"]["cause"] == cause, (cause, row)
        assert row["happened"]["state"] == "would_fail", row
        assert row["action"]["kind"] != "nothing", row
    row = verdict(crowded(folder), "2GiB")
    assert row["happened"]["cause"] == "outside", row
    assert row["happened"]["state"] == "died", row
    assert row["action"]["kind"] == "free_device", row
    assert "nvidia-smi" in row["action"]["text"], row
    os.unlink(os.path.join(folder, "crowded.json"))
    row = verdict(os.path.join(folder, "crowded.pickle"), "2GiB")
    assert "other programs held memory of the GPU is not known" in row["sure"]
    row = verdict(csv(folder, "fits", BUILT["cache"][0]), "2GiB")
    assert (row["happened"]["state"], row["action"]["kind"]) == \
        ("fits", "nothing"), row
    # A T4 has 14,759 MiB beside a context, of which the driver keeps 3.
    one, = results("triage", "-q", csv(folder, "one", [("alloc", 1, 9, 0)]),
                   "-c", "1GiB", code=3)
    assert one["action"]["kind"] == "record" and one["happened"]["state"] == \
        "no_history", one
    for mib, suffices in ((14754, True), (14758, False)):
        row = verdict(csv(folder, f"edge{mib}", [
            ("alloc", 1, mib, 0), ("free", 1, 0, 0)]), "20GiB")
        assert ("t4" in row["fits"][0]["gpus"]) == suffices, row["fits"]


def check_recorded():
    """The causes of programs whose cause their author knows."""
    for path in share(sorted(glob.glob(os.path.join(SHARED, "recorded", "causes",
                                                    "*.json")))):
        with open(path, encoding="utf-8") as file:
            truth = json.load(file)
        row = verdict(path.replace(".json", ".pickle.xz"),
                      f"{truth['cap'] or 80 << 30}B")
        if "cause" in truth:
            assert row["happened"]["cause"] == truth["cause"], (path, row)
            assert row["happened"]["state"] == "died", row
        else:
            assert row["happened"]["growth"] == \
                ("leak" if truth["leak"] else "none"), (path, row)
            assert row["happened"]["state"] == "fits", row


def check_need(trace, row):
    """The need is that of fit, and the GPUs are those that have it."""
    for fits in row["fits"]:
        policy = "torch:" + fits["setting"] if fits["setting"] else "torch"
        found, = results("fit", "-q", trace, "-p", policy, "--total",
                         f"{row['bound_bytes']}B")
        assert found["need_bytes"] == fits["need_bytes"], (fits, found)
        assert fits["is_least"], fits
        assert "h200" in fits["gpus"], fits
        assert ("t4" in fits["gpus"]) == (fits["need_bytes"] + (150 << 20) +
                                          DRIVER_KEEPS <= GPUS["t4"]), fits


def check_cut():
    """The need of a large recording is an upper bound, and said to be one."""
    trace = os.path.join(SHARED, "recorded", "large", "generate_long.pickle.xz")
    if not os.path.exists(trace):
        print("check_verdict: no large recording; the cut is not checked")
        return
    row = verdict(trace, "80GiB")
    fits = row["fits"][0]
    assert not fits["is_least"] and "needs at most " in \
        row["happened"]["text"], row
    assert ooms(trace, "torch", f"{fits['need_bytes']}B") == 0, row
    found, = results("fit", "-q", trace, "-p", "torch")
    assert found["need_bytes"] < fits["need_bytes"] < \
        found["need_bytes"] * 1.1, (found, fits)


def ooms(trace, policy, bound):
    row, = results("replay", "-q", trace, "-p", policy, "-c", bound)
    return row["num_ooms"]


def check_actions():
    gpt2 = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
    row = verdict(gpt2, "8.4GiB")
    action = row["action"]
    assert action["kind"] == "setting" and action["saved_bytes"] > 0, row
    assert action["command"] == "export PYTORCH_CUDA_ALLOC_CONF='" + \
        action["setting"] + "'", action
    assert ooms(gpt2, "torch:" + action["setting"], "8.4GiB") == 0
    assert ooms(gpt2, "torch", "8.4GiB") > 0
    check_need(gpt2, row)
    row = verdict(gpt2, "80GiB")
    need = row["fits"][0]["need_bytes"]
    assert row["action"]["kind"] == "nothing", row
    assert row["action"]["text"].startswith("Nothing to do. "), row
    free = re.search(r"Of 80 GiB, ([\d.]+) GiB stay free", row["action"]["text"])
    assert abs(float(free.group(1)) * (1 << 30) - ((80 << 30) - need)) < MIB
    row = verdict(gpt2, "8GiB")
    assert row["happened"]["cause"] == "demand", row
    assert row["action"]["change_kind"] == "batch", row
    assert row["action"]["saved_bytes"] > 0, row
    # A job that died fits a larger device, and no setting a smaller one. How sure
    # that is was counted.
    dead = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
    row = verdict(dead, "24GiB")
    assert row["happened"]["state"] == "died", row
    assert row["action"]["kind"] == "nothing", row
    assert "after 10 complete steps" in row["sure"], row
    assert re.search(r"Of \d+ recorded jobs in this state \d+ lived", row["sure"])
    # At its limit the GPU had memory left. 6 GiB serve what was recorded, but are
    # not enough for further steps without a setting.
    assert "reached the memory limit of its process" in row["happened"]["text"]
    row = verdict(dead, "6GiB")
    assert row["action"]["kind"] == "setting", row
    assert row["action"]["odds"] == "enough", row
    # At its own limit a setting serves what was recorded: the sure way comes first,
    # and what is worth trying is a comment.
    own, = results("triage", "-q", dead, code=1)
    assert own["bound_source"] == "recorded_limit", own
    assert own["action"]["kind"] in ("change_program", "larger_device"), own
    assert own["action"]["odds"] == "worth trying" and own["action"]["of"] > 9, own
    assert own["action"]["command"].startswith("# export "), own
    assert "lived" in own["action"]["text"], own
    row = verdict(os.path.join(BUNDLED, "late_start.pickle.xz"), "80GiB")
    assert "record from the start" in row["action"]["text"], row
    row = verdict(dead, "1GiB")
    assert row["action"]["kind"] in ("change_program", "larger_device"), row


def check_leak():
    leak = os.path.join(BUNDLED, "leak_frames.pickle.xz")
    row = verdict(leak, "24GiB")
    assert (row["happened"]["state"], row["action"]["kind"]) == \
        ("fits", "fix_leak"), row
    assert "keeps what w_leak (train.py:164) allocates" in \
        row["action"]["text"], row
    row = verdict(leak, "442MiB")
    assert row["happened"]["cause"] == "growth", row
    assert row["action"]["change_kind"] == "step_free", row
    assert row["action"]["saved_bytes"] > 0, row
    row = verdict(os.path.join(BUNDLED, "gpt2_train.pickle.xz"), "80GiB")
    assert row["happened"]["growth"] == "unknown", row
    assert re.search(r"could not be judged: \w[\w ]+\.", row["sure"]), row


def check_text():
    """The terminal shows the same."""
    dead = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
    row = verdict(dead, "6GiB")
    text = output("triage", "-q", dead, "-c", "6GiB")
    assert f"What happened: {row['happened']['text']}\n" in text, text
    assert f"What to do now: {row['action']['text']}\n" in text, text
    assert f"How sure: {row['sure']}\n" in text, text
    assert "the smallest GPU that has it: t4" in text, text
    assert "For: capacity of 6 GiB, the capacity that was asked for\n" in text, text
    run("triage", "-q", dead, "-c", "6GiB", "--device", "3", code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_built(folder)
    check_recorded()
    check_actions()
    check_leak()
    check_cut()
    check_text()
    print("each cause has its words and its action")


if __name__ == "__main__":
    main()
