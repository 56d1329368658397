#!/usr/bin/env python3
"""check_xpu.py: snapshots of PyTorch for XPU are recognized and repeat.

No snapshot of an XPU was at hand. Two substitutes have the keys that
torch/csrc/xpu/Module.cpp writes (pytorch/pytorch, commit 6430a5dbd7c7): a naive
allocator by the rules of c10/xpu/XPUCachingAllocator.cpp (commit 00d512aed753),
which ignores all settings but expandable_segments, and recordings of CUDA
without such settings, whose rules are equal. The naive allocator is always
checked, the recordings of ../shared only if they are there.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import lzma
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHARED, run, results

MIB = 1 << 20
# Settings that the parser of all devices accepts and the allocator of XPU does
# not read.
UNUSED = ("max_split_size_mb:24,garbage_collection_threshold:0.5,"
          "roundup_power2_divisions:8,large_segment_size_mb:24")
# Recordings without settings but expandable_segments.
RECORDED = ["gnn_sample", "multistream__exp", "leak_cpp", "lstm_varlen"]
FRAME = {"name": "f", "filename": "/lib/torch/xpu/memory.py", "line": 1}


class Pool:
    """The segments of one pool of one queue, without speed; a part is [address,
    size, requested, used], and the parts of a segment are in address order."""

    def __init__(self, is_small, base, log):
        self.is_small, self.base, self.log = is_small, base, log
        self.segments = []

    def segment_size(self, size):
        if self.is_small:
            return 2 * MIB
        return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    def find(self, size):
        fits = [(p[1], p[0], i, k) for i, s in enumerate(self.segments)
                for k, p in enumerate(s) if not p[3] and p[1] >= size]
        if fits:
            return min(fits)[2:]
        whole = self.segment_size(size)
        self.log("segment_alloc", self.base, whole)
        self.segments.append([[self.base, whole, 0, False]])
        self.base += whole + 2 * MIB
        return len(self.segments) - 1, 0

    def alloc(self, requested):
        size = -(-requested // 512) * 512
        i, k = self.find(size)
        segment = self.segments[i]
        part = segment[k]
        rest = part[1] - size
        if rest >= 512 if self.is_small else rest > MIB:
            # The rest keeps the record.
            segment.insert(k + 1, [part[0] + size, rest, part[2], False])
            part[1] = size
        part[2:] = [requested, True]
        self.log("alloc", part[0], requested)
        return segment, part

    def free(self, segment, part):
        self.log("free_requested", part[0], part[2])
        self.log("free_completed", part[0], part[2])
        part[3] = False
        at = next(k for k, p in enumerate(segment) if p is part)
        for other in segment[at + 1:at + 2] + segment[max(at - 1, 0):at]:
            if not other[3]:
                part[0] = min(part[0], other[0])
                part[1] += other[1]
                segment[:] = [p for p in segment if p is not other]


def naive(settings):
    """A snapshot of the naive allocator under settings."""
    entries, live, state = [], [], 1

    def log(action, addr, size):
        entries.append({"action": action, "addr": addr, "size": size, "stream":
                        0x5500, "time_us": len(entries), "frames": []})

    pools = Pool(False, 0xff0000000000, log), Pool(True, 0xffe000000000, log)
    for _ in range(2000):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        number = state >> 33
        if live and (number % 5 < 2 or len(live) > 80):
            pool, segment, part = live.pop(number // 5 % len(live))
            pool.free(segment, part)
        else:
            size = (number % 997 + 1 << number // 997 % 16) + number % 3 * 200
            pool = pools[-(-size // 512) * 512 <= MIB]
            live.append((pool, *pool.alloc(size)))
    segments = [
        {"device": 0, "address": s[0][0], "total_size": sum(p[1] for p in s),
         "allocated_size": sum(p[1] for p in s if p[3]), "stream": 0x5500,
         "active_size": sum(p[1] for p in s if p[3]), "is_expandable": False,
         "segment_type": "small" if pool.is_small else "large",
         "segment_pool_id": (0, 0), "frames": [],
         "blocks": [{"address": a, "size": z, "requested_size": q, "frames": [],
                     "state": "active_allocated" if used else "inactive"}
                    for a, z, q, used in s]}
        for pool in pools for s in pool.segments]
    return {"segments": segments, "device_traces": [entries],
            "allocator_settings": {"PYTORCH_ALLOC_CONF": settings,
                                   "expandable_segments": False}}


def recorded(name):
    """A recording of CUDA, as PyTorch for XPU writes it."""
    path = os.path.join(SHARED, "recorded", "dev", name + ".pickle.xz")
    with lzma.open(path) as file:
        snapshot = pickle.load(file)
    for trace in snapshot["device_traces"]:
        for entry in trace:
            for key in ("compile_context", "user_metadata", "pool_id"):
                entry.pop(key, None)
    expandable = snapshot["allocator_settings"]["expandable_segments"]
    return {"segments": snapshot["segments"],
            "device_traces": snapshot["device_traces"],
            "allocator_settings": {
                "PYTORCH_ALLOC_CONF":
                    "expandable_segments:True" if expandable else "",
                "expandable_segments": expandable}}


def check(name, snapshot):
    with open(name, "wb") as file:
        pickle.dump(snapshot, file, protocol=2)
    row, = results("validate", "-q", name)
    assert row["verdict"] == "exact" and \
        row["addresses_matched"] == row["allocs"] > 100, (name, row)
    row, = results("info", "-q", name)
    assert row["settings"].startswith("platform:xpu"), (name, row["settings"])
    assert row["releases"] is None, (name, row["releases"])
    assert any("PyTorch for XPU" in n for n in row["notes"]), (name, row)
    rows = results("replay", "-q", "--check", name, "-p", "torch@recorded", "-p",
                   "torch", "-p", "torch:" + UNUSED, "-p", "torch:platform:cuda,"
                   "roundup_power2_divisions:8")
    for row in rows[:3]:
        assert row["params"].startswith("torch_version:2.11,platform:xpu"), row
    assert rows[1]["peak_reserved_bytes"] == rows[2]["peak_reserved_bytes"], rows
    assert "platform" not in rows[3]["params"], rows[3]
    assert rows[3]["peak_allocated_bytes"] > rows[1]["peak_allocated_bytes"]
    return rows[0]


def check_frames():
    """Without settings, the frames show where a snapshot comes from."""
    made = naive("")
    del made["allocator_settings"]
    with open("plain.pickle", "wb") as file:
        pickle.dump(made, file)
    assert "platform" not in (results("info", "-q", "plain.pickle")[0]["settings"]
                              or "")
    made["device_traces"][0][0]["frames"] = [FRAME]
    check("frames.pickle", made)


def check_answers():
    """The variable of XPU is named, and not that of CUDA."""
    said = run("tune", "-q", "naive.pickle").stdout
    assert "PYTORCH_CUDA_ALLOC_CONF" not in said, said
    run("export", "-q", "naive.pickle", "--to", "snapshot", "-p", "torch", "-o",
        "again.pickle")
    row, = results("validate", "-q", "again.pickle")
    assert row["verdict"] == "exact", row
    assert results("info", "-q", "again.pickle")[0]["settings"].count(
        "platform:xpu") == 1


def main():
    present = os.path.isdir(os.path.join(SHARED, "recorded", "dev"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check("naive.pickle", naive(""))
        check("unused.pickle", naive(UNUSED))
        check_frames()
        check_answers()
        for name in RECORDED if present else ():
            check(name + ".pickle", recorded(name))
        os.chdir(ROOT)
    print("exact as XPU:", 3 + len(RECORDED) * present)
    return 0


if __name__ == "__main__":
    sys.exit(main())
