#!/usr/bin/env python3
"""check_limit_expandable.py: checks the limit that OOM entries show, without
NAME.json, on the recordings with expandable segments that ran out of memory.

As recorded, a limit of the process caused the OOMs: it must be inferred, and
the recorded limit (`cap' of NAME.json) must lie between the stated bounds.

Rewritten, the device caused them: `device_free' of each OOM entry becomes what
a device of which `cap' bytes can be had reports as free: cap less the segments that
were mapped, and what the driver keeps. The limit must then be taken from the entry and
equal `cap'.

Both must be exact, apart from the recordings that FULLER names, where the
device maps what the limit refused: a limit is compared with the request's whole
segment, a device only with the pages that are mapped. Exit 1 if anything
differs, 77 if the recordings or the tool are absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import DRIVER_KEEPS, FRAGSIM, SHARED

FULLER = {"gnn_sample__cap_below_exp", "llama_varlen__cap_tight_exp",
          "lstm_varlen__cap_tight_exp", "moe_train__cap_tight_exp",
          "rcnn_train__cap_tight_exp", "unet_multires__cap_below_exp"}
MIB = 1 << 20


def validate(path):
    done = subprocess.run([FRAGSIM, "validate", path, "-q", "--json", "-"],
                          capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), (path, done.stderr)
    return json.loads(done.stdout)["results"][0]


def held_at_ooms(snapshot):
    """(OOM entry, bytes of all segments then), by a walk back from the end."""
    held = sum(s["total_size"] for s in snapshot["segments"])
    found = []
    for entry in reversed(snapshot["device_traces"][0]):
        if entry["action"] in ("segment_alloc", "segment_map"):
            held -= entry["size"]
        elif entry["action"] in ("segment_free", "segment_unmap"):
            held += entry["size"]
        elif entry["action"] == "oom":
            found.append((entry, held))
    return found


def bounds(row):
    note = next(n for n in row["notes"] if "oom entries show" in n)
    least, most = re.findall(r"(\d+) (?:bytes|B)\b", note)[:2]
    return int(least), int(most)


def check(path, folder):
    """None if the recording has no OOM; else whether the device's is exact."""
    name = os.path.basename(path).replace(".xz", "")
    with lzma.open(path) as stream:
        snapshot = pickle.load(stream)
    with open(path.replace(".pickle.xz", ".json"), encoding="utf-8") as stream:
        cap = json.load(stream)["cap"]
    ooms = held_at_ooms(snapshot)
    if not ooms:
        return None
    copy = os.path.join(folder, name)
    with open(copy, "wb") as out:
        pickle.dump(snapshot, out)
    row = validate(copy)
    least, most = bounds(row)
    assert row["limit_source"] == "inferred" and row["exact"], (name, row)
    assert least <= cap <= most, (name, least, cap, most)

    for entry, held in ooms:
        entry["device_free"] = cap - held + DRIVER_KEEPS
    with open(copy, "wb") as out:
        pickle.dump(snapshot, out)
    row = validate(copy)
    assert row["limit_source"] == "device", (name, row["limit_source"])
    assert row["limit_bytes"] == cap, (name, row["limit_bytes"], cap)
    assert any("device" in n for n in row["notes"]), (name, row["notes"])
    first = row["first_divergence"]
    assert row["exact"] or first["found"].startswith("segment_map"), first
    return row["exact"]


def main():
    paths = sorted(glob.glob(os.path.join(
        SHARED, "recorded", "dev", "*__cap_*_exp.pickle.xz")))
    if not paths or not os.access(FRAGSIM, os.X_OK):
        print("check_limit_expandable: no recordings or no tool; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        exact = {p: check(p, folder) for p in paths}
    exact = {p: x for p, x in exact.items() if x is not None}
    print(f"{len(exact)} of {len(exact)}: the limit of the process is within "
          f"the bounds, that of the device is equal; {sum(exact.values())} of "
          f"{len(exact)} runs on the device are exact")
    wrong = {os.path.basename(p).split(".")[0]
             for p, x in exact.items() if not x}
    return 0 if len(exact) >= 12 and wrong == FULLER else 1


if __name__ == "__main__":
    sys.exit(main())
