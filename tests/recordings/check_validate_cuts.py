#!/usr/bin/env python3
"""check_validate_cuts.py - `fragsim validate` on recordings that lack their
beginning, their end or their counters.

cuts: the first entries of a recording are dropped and the segments are kept, as
an overflowing history does it. Each cut is at a segment event, so that the first
request of the rest asks the device for memory.

ends: the last entries are dropped: the history ended before the snapshot. All
that is left is exact, and the numbers of blocks that the job freed and
allocated later are those of the whole recording. If the beginning is dropped
too, blocks that were live throughout the history are not known, so no verdict
is possible.

limits: recordings of jobs that died, without their file of counters. The limit
then comes from the oom entries, once as recorded and once with a device_free
that shows that the device refused.

moved: a block in the middle of the history lies 512 bytes higher than it did. What
comes after it explains that in no case: the history differs if its beginning or its
end is there, and is never exact.

evidence: snapshots with so little history that nothing can be compared.

The recordings are those of traces/bundled, and of ../shared if it is there.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
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
from harness import BUNDLED, DRIVER_KEEPS, FRAGSIM, SHARED, share

RECORDED = os.path.join(SHARED, "recorded")

# folder: recordings, without limits and expandable segments
CUT = {
    BUNDLED: ["leak", "cudagraph", "multistream", "gpt2_train"],
    RECORDED: ["dev/lstm_varlen", "dev/gnn_sample", "batch/gpt2_b004",
               "batch/resnet_b012", "causes/l_loss_history", "h100/audio",
               "h100/points"],
}
CUTS = 25  # of each recording
# A cut that differs holds a block that lived before the recording and whose
# size is uncertain. This many may differ; none may differ otherwise.
UNCERTAIN = {BUNDLED: 0, RECORDED: 1}

# folder: recordings of jobs that died
DEAD = {
    BUNDLED: ["lstm_varlen__cap_below", "lstm_varlen__cap_tight_exp"],
    RECORDED: ["batch/gpt2_b032", "batch/llama_ckpt_b032",
               "batch/llama_ckpt_b064", "causes/o_demand",
               "causes/o_fragmentation", "dev/gnn_sample__cap_below_exp",
               "dev/gnn_sample__cap_tight", "dev/moe_train__cap_below",
               "dev/moe_train__cap_tight_exp", "dev/rcnn_train__cap_tight_exp",
               "dev/unet_multires__cap_below", "dev/unet_multires__cap_tight"],
}


def load(folder, name):
    with lzma.open(os.path.join(folder, name + ".pickle.xz")) as file:
        return pickle.load(file)


def store(snapshot):
    with open("run.pickle", "wb") as file:
        pickle.dump(snapshot, file)


def validate(*options):
    """The exit code, the row and stderr."""
    done = subprocess.run([FRAGSIM, "validate", "run.pickle", "--json", "-",
                           *options], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 1, 6):
        raise SystemExit(f"exit code {done.returncode}: {done.stderr}")
    row = json.loads(done.stdout)["results"][0]
    agrees = row["verdict"].startswith(("exact", "equal"))
    code = 0 if agrees else 6 if row["verdict"] == "no evidence" else 1
    if done.returncode != code or \
            row["exact"] != (row["verdict"] == "exact"):
        raise SystemExit(f"exit code {done.returncode} contradicts {row}")
    for note in row["notes"]:
        expect(note in done.stderr, f"the note on stderr: {note}")
    return row


def expect(holds, what):
    if not holds:
        raise SystemExit(f"expected {what}")


def is_segment(entry):
    return entry["action"].startswith("segment_")


def cuts_of(entries):
    """Indexes of entries that begin a run of segment events."""
    at = [i for i in range(1, len(entries))
          if is_segment(entries[i]) and not is_segment(entries[i - 1])]
    return at[::max(1, len(at) // CUTS)]


def check_cuts(folder, names):
    exact = total = 0
    for name in names:
        snapshot = load(folder, name)
        entries = snapshot["device_traces"][0]
        for at in share(list(cuts_of(entries)), 5):
            store(dict(snapshot, device_traces=[entries[at:]]))
            row = validate()
            exact += row["exact"]
            total += 1
            if not row["exact"]:
                first = row["first_divergence"]
                print(f"{name} from entry {at}: {first}")
                expect("uncertain" in " ".join(row["notes"]) and
                       first["expected"].startswith("block"),
                       "a block of uncertain size")
    print(f"cuts: {exact} of {total} exact in {folder}")
    expect(exact >= total - UNCERTAIN[folder], "more exact cuts")


def reserved_at(snapshot):
    """Yields each entry with the bytes that are reserved after it."""
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1,
             "segment_unmap": -1}
    held = 0
    for entry in snapshot["device_traces"][0]:
        held += signs.get(entry["action"], 0) * entry["size"]
        yield entry, held


def check_limit(folder, name):
    snapshot = load(folder, name)
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        cap = json.load(file)["cap"]
    store(snapshot)
    row = validate()
    note = " ".join(row["notes"])
    expect(row["exact"] and row["limit_source"] == "inferred", f"exact: {row}")
    expect("--recorded-limit states the exact limit" in note, f"--recorded-limit in {note}")
    expect(not any("limit is not known" in n for n in row["notes"]), row["notes"])
    least, most = [int(size) for size in re.findall(
        r"\((\d+) bytes\)", note.split("it lay between ")[1])][:2]
    expect(least <= row["limit_bytes"] <= most and least <= cap <= most,
           f"{name}: {least} to {most} to hold {cap} and {row['limit_bytes']}")
    row = validate("--recorded-limit", str(cap))
    expect(row["exact"] and row["limit_source"] == "given" and
           row["limit_bytes"] == cap, f"exact with the limit: {row}")


def check_device(folder, name):
    """The rest of the limit could be had of the device at each OOM. With expandable
    segments, a device maps pages until it refuses one, and a limit does not, so
    such recordings cannot be turned into each other."""
    snapshot = load(folder, name)
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        cap = json.load(file)["cap"]
    for entry, held in reserved_at(snapshot):
        if entry["action"] == "oom":
            entry["device_free"] = cap - held + DRIVER_KEEPS
    store(snapshot)
    row = validate()
    expect(row["limit_source"] == "device" and row["limit_bytes"] == cap,
           f"{name}: the limit {cap} of the device: {row}")
    expect(f"({cap} bytes)" in " ".join(row["notes"]), f"{row['notes']}")
    expect(row["exact"], f"{name}: exact: {row}")


def entry_of(action, **more):
    return {"action": action, "addr": 0x7f0000000000, "size": 20 << 20,
            "stream": 0, "time_us": 1, "frames": [], **more}


def check_contradiction():
    """A request fails although much more was reserved before."""
    big = {"addr": 0x7f0010000000, "size": 400 << 20}
    store({"segments": [], "allocator_settings": {}, "device_traces": [[
        entry_of("segment_alloc", **big), entry_of("alloc", **big),
        entry_of("free_requested", **big), entry_of("free_completed", **big),
        entry_of("segment_free", **big),
        entry_of("oom", device_free=1 << 20)]]})
    row = validate()
    expect(row["limit_source"] == "contradicted" and not row["exact"], row)
    expect(row["limit_bytes"] is None, row)
    expect("no constant memory limit" in " ".join(row["notes"]), row)


def check_returned(snapshot):
    """A returned segment alone is no evidence: that it was free, and the call
    that returned it, are inferred from the entry."""
    free = entry_of("segment_free", size=2 << 20)
    for entries in [free], [free, entry_of("snapshot")]:
        store(dict(snapshot, segments=[], device_traces=[entries]))
        row = validate()
        expect(row["verdict"] == "no evidence" and row["segment_events"] ==
               row["segment_events_matched"] == 1, f"returned: {row}")


def live_at(entries):
    """The addresses of the blocks whose free has not completed."""
    live = set()
    for entry in entries:
        if entry["action"] == "alloc":
            live.add(entry["addr"])
        elif entry["action"] == "free_completed":
            live.discard(entry["addr"])
    return live


def later_than(entries, at):
    """The blocks that the rest of the entries frees, of those before it, and
    those that it allocates and keeps."""
    before, fresh = live_at(entries[:at]), set()
    gone = set()
    for entry in entries[at:]:
        if entry["action"] == "alloc":
            fresh.add(entry["addr"])
        elif entry["action"] == "free_completed":
            if entry["addr"] not in fresh and entry["addr"] in before:
                gone.add(entry["addr"])
            fresh.discard(entry["addr"])
    # A block at the address of one that is gone looks like that block.
    return len(gone - fresh), len(fresh - gone)


def check_ends(folder, names):
    total = 0
    for name in names:
        snapshot = load(folder, name)
        entries = snapshot["device_traces"][0]
        ends = [i for i in range(1, len(entries))
                if entries[i - 1]["action"] == "free_completed" and
                entries[i]["action"] == "alloc"]
        for at in ends[len(ends) // 3::max(1, len(ends) // 12)]:
            gone, fresh = later_than(entries, at)
            store(dict(snapshot, device_traces=[entries[:at]]))
            row = validate("--stats", "none")
            expect(row["verdict"] == "exact up to the last entry" and
                   row["allocs"] == row["addresses_matched"] and
                   row["first_divergence"] is None, f"{name} to {at}: {row}")
            expect((row["blocks_freed_later"], row["blocks_allocated_later"]) ==
                   (gone, fresh), f"{gone}, {fresh} later: {name} {at} {row}")
            expect("lacks the beginning" not in " ".join(row["notes"]), row)
            total += 1
        store(dict(snapshot, device_traces=[entries[at // 3:at]]))
        row = validate("--stats", "none")
        expect(row["verdict"] == "no evidence" or
               row["first_divergence"] is None, f"{name}, a middle: {row}")
    print(f"ends: {total} exact up to the last entry in {folder}")


def moved(entries, at):
    """The entries with the block of entry `at` 512 bytes higher."""
    out, place = list(entries), entries[at]["addr"]
    for i in range(at, len(entries)):
        if entries[i].get("addr") == place and not is_segment(entries[i]):
            out[i] = dict(entries[i], addr=place + 512)
            if entries[i]["action"] == "free_completed":
                break
    return out


def check_moved(folder, names):
    total = 0
    for name in names:
        snapshot = load(folder, name)
        entries = snapshot["device_traces"][0]
        count = len(entries)
        allocs = [i for i in range(count // 3, count // 2)
                  if entries[i]["action"] == "alloc" and
                  not any(e.get("addr") == entries[i]["addr"] + 512
                          for e in entries)]
        for at in share(allocs[::max(1, len(allocs) // 3)], 1):
            wrong = moved(entries, at)
            for first, last in (0, count * 9 // 10), (0, count), \
                    (count // 4, count), (count // 4, count * 9 // 10):
                store(dict(snapshot, device_traces=[wrong[first:last]]))
                row = validate("--stats", "none")
                open_ended = row["blocks_freed_later"] + row["blocks_allocated_later"]
                wanted = ["differs"] + ["no evidence"] * bool(first and open_ended)
                expect(row["verdict"] in wanted and row["first_divergence"] and
                       row["first_divergence"]["event"] < last, f"{name} {at}: {row}")
                total += 1
    expect(total, "a block that can be moved")
    print(f"moved: {total} not exact in {folder}")


def check_counters():
    """Counters that were read after the last entry are upper bounds of totals
    and peaks, and no bounds of what is current."""
    snapshot = load(BUNDLED, "leak")
    entries = snapshot["device_traces"][0]
    snapshot["device_traces"] = [entries[:len(entries) * 9 // 10]]
    store(snapshot)
    with open(os.path.join(BUNDLED, "leak.json"), encoding="utf-8") as file:
        counters = json.load(file)
    row = validate("--stats", os.path.join(BUNDLED, "leak.json"))
    expect(row["verdict"] == "exact up to the last entry", f"counters: {row}")
    expect(any("ended before they were read" in n for n in row["notes"]), row)
    stats = counters["stats"].get("0", counters["stats"])
    stats["allocation.all.peak"] = 1
    with open("less.json", "w", encoding="utf-8") as file:
        json.dump({"stats": stats}, file)
    row = validate("--stats", "less.json")
    expect(row["verdict"] == "differs" and "allocation.all.peak" in
           row["first_divergence"]["expected"], f"less: {row}")


def check_text():
    """What the text says of a history that ends early."""
    snapshot = load(BUNDLED, "gpt2_train")
    store(dict(snapshot, device_traces=[snapshot["device_traces"][0][:-1]]))
    done = subprocess.run([FRAGSIM, "validate", "run.pickle"], check=False,
                          capture_output=True, text=True)
    expect(done.returncode == 0 and
           "run.pickle, device 0: exact up to the last entry\n" in done.stdout
           and "  between the last of 15591 events and the snapshot: 1 blocks "
           "freed, 0 allocated, reserved 8.734 GiB -> 8.734 GiB\n"
           in done.stdout, done)
    expect("0 of 1 exact, 1 exact up to the last entry" in done.stderr and
           "the history ends before the snapshot" in done.stderr, done)


def check_evidence():
    snapshot = load(BUNDLED, "leak")
    entries = snapshot["device_traces"][0]
    frees = [i for i, e in enumerate(entries)
             if e["action"] == "free_completed"]
    for at, what in ((frees[-1], "a free"), (frees[-1] - 1, "its request")):
        store(dict(snapshot, device_traces=[[entries[at]]]))
        row = validate()
        expect(not row["exact"] and row["verdict"] == "no evidence", what)
        expect("could be compared" in " ".join(row["notes"]), what)
        expect("the history has one entry: _record_memory_history(True)" in
               " ".join(row["notes"]), what)
    done = subprocess.run([FRAGSIM, "validate", "run.pickle"], check=False,
                          capture_output=True, text=True)
    expect(done.returncode == 6 and "not enough to judge" in done.stdout and
           "0 of 1 exact, 1 no evidence" in done.stderr, f"the text: {done}")
    check_returned(snapshot)
    allocs = [i for i, e in enumerate(entries) if e["action"] == "alloc"]
    store(dict(snapshot, device_traces=[entries[allocs[-1]:]]))
    row = validate()
    expect(row["verdict"] == "exact" and row["allocs"] == 1, f"one: {row}")


def main():
    folders = [f for f in (BUNDLED, RECORDED) if os.path.isdir(f)]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for folder in folders:
            check_cuts(folder, CUT[folder])
            check_ends(folder, CUT[folder])
            check_moved(folder, CUT[folder])
            for name in DEAD[folder]:
                check_limit(folder, name)
            ordinary = [n for n in DEAD[folder] if "exp" not in n]
            for name in ordinary:
                check_device(folder, name)
            print(f"limits: {len(DEAD[folder])} inferred and {len(ordinary)} of "
                  f"a device exact in {folder}")
        check_contradiction()
        check_evidence()
        check_counters()
        check_text()
    return 0


if __name__ == "__main__":
    sys.exit(main())
