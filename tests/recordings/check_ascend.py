#!/usr/bin/env python3
"""check_ascend.py: checks replays of snapshots of torch_npu for Ascend, whose
allocator adds 32 bytes to each request before it rounds the size, and in
expandable segments lets large blocks start at multiples of 16 KiB.

The snapshots are made of recordings of PyTorch: each request becomes one of 32
bytes less. Padded and rounded, it needs the block that PyTorch recorded, so the
recorded addresses are those of an allocator with padding. The made-up trace is
always checked, the recordings of ../shared only if they are there.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import lzma
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHARED, attempt, run, results

PAD, BLOCK = 32, 512
MADE = "made-up"
# Recordings, and whether the settings of the job stay in the snapshot.
# torch_npu does not write them.
RECORDED = {"gnn_sample": False, "multistream__exp": False,
            "lstm_varlen__cap_below": False, "leak_cpp": False,
            "gnn_sample__cap_below_exp": False, "cudagraph": False,
            "lstm_varlen__cap_split": True, "lstm_varlen__cap_mid_gc6": True}
FRAME = {"name": "wrap", "filename": "/lib/torch_npu/npu/utils.py", "line": 1}


def rounded(size):
    return (size + BLOCK - 1) // BLOCK * BLOCK


def made_up():
    """A snapshot of the policy torch, of small and of large requests, many of
    which are nearly multiples of 512 bytes."""
    sizes = [512, 1024, 480, 481, 1 << 20, (1 << 20) + 1, (2 << 20) + 7,
             10 << 20, (10 << 20) - 512, (3 << 20) + 1, 31, 100]
    with open("made.csv", "w", encoding="utf-8") as file:
        file.write("op,id,bytes,stream\n")
        for i in range(600):
            file.write(f"alloc,{i},{sizes[i * 7 % 12] + 512 * (i % 5)},0\n")
            if i % 3 == 2:
                file.write(f"free,{i - i % 11 // 3 * 3 - 1},0,0\n"
                           if i % 11 < 3 else f"free,{i},0,0\n")
    run("export", "-q", "made.csv", "--to", "snapshot", "-p", "torch@2.11", "-o",
        "made.snapshot")
    with open("made.snapshot", "rb") as file:
        return pickle.load(file)


def recorded(name):
    path = os.path.join(SHARED, "recorded", "dev", name + ".pickle.xz")
    with lzma.open(path) as file:
        return pickle.load(file)


def padded(snapshot, keeps_settings, frame=FRAME):
    """The snapshot as torch_npu writes it."""
    for trace in snapshot["device_traces"]:
        for entry in trace:
            for key in ("time_us", "compile_context", "user_metadata"):
                entry.pop(key, None)
            if entry["action"] in ("alloc", "free_requested", "free_completed"):
                entry["size"] = max(entry["size"] - PAD, 1)
        trace[0]["frames"] = [frame] if frame else []
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block.get("requested_size"):
                block["requested_size"] = max(block["requested_size"] - PAD, 1)
    keys = ["segments", "device_traces"]
    if keeps_settings:
        keys.append("allocator_settings")
    return {key: snapshot[key] for key in keys}


def limit_of(name):
    path = os.path.join(SHARED, "recorded", "dev", name + ".json")
    cap = 0
    if name != MADE:
        with open(path, encoding="utf-8") as file:
            cap = json.load(file).get("cap")
    return ["--recorded-limit", f"{cap}B"] if cap else []


def check_exact(name, file):
    """All recorded addresses, segments and OOMs repeat."""
    row, = results("validate", "-q", file, *limit_of(name))
    assert row["verdict"] == "exact", (name, row)
    row, = results("info", "-q", file)
    assert "padding:32" in row["settings"], (name, row["settings"])
    assert row["releases"] is None, (name, row["releases"])
    assert ("expandable_segments:True" in row["settings"]) == \
        ("_exp" in name), (name, row["settings"])
    run("replay", "-q", "--check", file, "-p", "torch@recorded")


def check_kept(name, file):
    """Other settings keep the padding, other policies do not have it."""
    texts = ["torch", "torch:max_split_size_mb:64", "torch@2.6",
             "torch@recorded", "torch:padding:0", "best_fit"]
    options = [part for text in texts for part in ("-p", text)]
    for text, row in zip(texts, results("replay", "-q", file, *options)):
        wanted = text not in ("torch:padding:0", "best_fit")
        assert ("padding:32" in row["params"]) == wanted, (name, text, row)
        notes = "\n".join(row["notes"])
        assert "adds 32 bytes to each request" in notes and \
            "with all settings (padding:32)" in notes, (name, notes)
    if name == MADE:
        by_text = dict(zip(texts, results("replay", "-q", file, *options)))
        assert by_text["torch"]["peak_allocated_bytes"] > \
            by_text["torch:padding:0"]["peak_allocated_bytes"]
        assert by_text["best_fit"]["peak_allocated_bytes"] < \
            by_text["torch"]["peak_allocated_bytes"]


def check_answers(file):
    """tune and explain keep the padding, and the text that they recommend does
    not have it, because torch_npu refuses it."""
    plain, bare = results("replay", "-q", file, "-p", "torch", "-p", "torch:padding:0")
    peak = plain["peak_reserved_bytes"]
    assert peak != bare["peak_reserved_bytes"], peak
    answer, = results("tune", "-q", file)
    assert answer["cases"][0]["replayed"]["peak_reserved_bytes"] == peak, answer
    assert "padding" not in answer["chosen"]["settings"], answer["chosen"]
    said = run("tune", "-q", file).stdout
    assert "PYTORCH_NPU_ALLOC_CONF" in said, said
    assert "PYTORCH_CUDA_ALLOC_CONF" not in said, said
    need = results("fit", "-q", file, "-p", "torch")[0]["need_bytes"]
    run("triage", "-q", file, "-c", str(need - 1), "-o", "page.html")
    with open("page.html", encoding="utf-8") as page:
        said = page.read()
    assert "PYTORCH_NPU_ALLOC_CONF=" in said, said
    assert "export PYTORCH_CUDA_ALLOC_CONF" not in said, said
    effect = results("replay", "-q", file, "-p", "torch:expandable_segments:False")
    assert effect[0]["peak_reserved_bytes"] == peak, effect


def check_failure(file):
    """The OOM has the padded and rounded size, the request 32 bytes less."""
    row, = results("explain", "-q", file)
    with open(file, "rb") as source:
        trace = pickle.load(source)["device_traces"][0]
    size = [e["size"] for e in trace if e["action"] == "oom"][-1]
    request = row["request"]
    assert request["requested_bytes"] == size - PAD, (request, size)
    assert request["rounded_bytes"] == size, (request, size)
    assert "padding:32" in row["settings"], row["settings"]
    for change in row["changes"]:
        assert "padding" not in change["change"], change


def check_capacity(file):
    """Also a request that fails only in a replay is padded and rounded."""
    peak = results("replay", "-q", file)[0]["peak_reserved_bytes"]
    grown = 0
    for part in range(2, 12):
        row, = results("explain", "-q", file, "-c", f"{peak // part}B")
        request = row["request"]
        size = request["requested_bytes"]
        assert request["rounded_bytes"] == rounded(size + PAD), request
        grown += rounded(size + PAD) > rounded(size)
    assert grown, "the padding changed the size of no request"


def check_again(file):
    """A run that is exported as a snapshot still has its padding."""
    run("export", "-q", file, "--to", "snapshot", "-p",
        "torch:expandable_segments:True", "-o", "again.pickle")
    with open("again.pickle", "rb") as source:
        written = pickle.load(source)["allocator_settings"]
    assert written["PYTORCH_CUDA_ALLOC_CONF"] == \
        "torch_version:2.11,padding:32,base_addr_aligned_kb:16," \
        "expandable_segments:True", written
    row, = results("info", "-q", "again.pickle")
    assert row["settings"].count("padding:32") == 1, row["settings"]
    row, = results("validate", "-q", "again.pickle")
    assert row["verdict"] == "exact", row
    run("import", "-q", file, "-o", "run.h5")
    row, = results("replay", "-q", "run.h5", "-p", "torch:garbage_collection_threshold:"
                "0.8")
    assert "padding:32" in row["params"], row


def check_one(name, snapshot, keeps_settings, frame=FRAME):
    file = write(name + ".pickle", padded(snapshot, keeps_settings, frame))
    check_exact(name, file)
    check_kept(name, file)
    if "cap_below" in name:
        check_failure(file)
    return file


class Range:
    """One expandable segment of torch_npu, by its rules and without speed:
    `parts` are [address, size, requested, is used], in address order."""

    def __init__(self, base, page, align):
        self.base, self.page, self.align = base, page, align
        self.end, self.parts = base, []

    def reach(self, part):
        """The size of a free part; its end may be that of the range, where more
        can be mapped."""
        last = part[0] + part[1] == self.end
        return part[1] + (1 << 50) * last

    def best(self, size):
        free = sorted((p for p in self.parts if not p[3] and p[1] >= size),
                      key=lambda p: (p[1], p[0]))
        for i, part in enumerate(free):
            if i + 1 == len(free) or \
                    self.reach(free[i + 1]) >= self.reach(part):
                return part
        return None

    def grow(self, size, log):
        tail = self.parts[-1] if self.parts and not self.parts[-1][3] else None
        missing = size - (tail[1] if tail else 0)
        more = (missing + self.page - 1) // self.page * self.page
        log("segment_map", self.end, more)
        if not tail:
            tail = [self.end, 0, 0, False]
            self.parts.append(tail)
        tail[1] += more
        self.end += more
        return tail

    def split(self, part, size):
        """Cuts the part to that size and returns the rest."""
        rest = [part[0] + size, part[1] - size, 0, False]
        part[1] = size
        self.parts.insert(self.parts.index(part) + 1, rest)
        return rest

    def alloc(self, requested, log):
        size = rounded(requested + PAD)
        part = self.best(size) or self.grow(size, log)
        front = -part[0] % self.align
        if size >= 2 << 20 and front and front + size <= part[1]:
            part = self.split(part, front)
        if part[1] > size:
            rest = self.split(part, size)
            rest[2], part[2] = part[2], 0  # the rest has the old record
        part[2:] = [requested, True]
        log("alloc", part[0], requested)
        return part

    def free(self, part, log):
        log("free_requested", part[0], part[2])
        log("free_completed", part[0], part[2])
        part[3] = False
        at = self.parts.index(part)
        for other in self.parts[at + 1:at + 2] + self.parts[max(at - 1, 0):at]:
            if not other[3]:
                part[0] = min(part[0], other[0])
                part[1] += other[1]
                self.parts.remove(other)


def aligned(align, lost):
    """A snapshot of torch_npu with expandable segments, whose history lacks the
    first `lost` entries."""
    ranges = Range(0x12c1c0000000, 2 << 20, align), \
        Range(0x12d300000000, 20 << 20, align)
    entries, live, state = [], [], 1

    def log(action, addr, size):
        entries.append({"action": action, "addr": addr, "size": size,
                        "stream": 0, "frames": [FRAME]})

    for i in range(1500):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        number = state >> 33
        if live and (number % 5 < 2 or len(live) > 60):
            live_range, part = live.pop(number // 5 % len(live))
            live_range.free(part, log)
        else:
            size = (number % 997 + 1 << number // 997 % 15) + number % 3 * 200
            large = rounded(size + PAD) > 1 << 20
            live.append((ranges[large], ranges[large].alloc(size, log)))
    segments = [
        {"device": 0, "address": r.base, "total_size": r.end - r.base,
         "stream": 0, "segment_type": kind, "is_expandable": True,
         "blocks": [{"address": a, "size": s, "requested_size": q, "state":
                     "active_allocated" if used else "inactive"}
                    for a, s, q, used in r.parts]}
        for r, kind in zip(ranges, ("small", "large"))]
    return {"segments": segments, "device_traces": [entries[lost:]]}


def write(name, snapshot):
    with open(name, "wb") as out:
        pickle.dump(snapshot, out, protocol=2)
    return name


def check_aligned(name, align, lost):
    """The addresses of the naive allocator repeat, also after a late start; a
    history of a release that did not align large blocks is recognized."""
    file = write(name, aligned(align, lost))
    row, = results("validate", "-q", file)
    assert row["verdict"] == "exact" and row["addresses_matched"] == \
        row["allocs"] > 400, row
    row, = results("info", "-q", file)
    assert ("base_addr_aligned_kb:16" in row["settings"]) == (align > 1), row
    assert any("do, so the policy torch" in note for note in row["notes"]), row
    for text, kept in {"torch:max_split_size_mb:64": True, "torch": True,
                       "torch:base_addr_aligned_kb:0": False}.items():
        row, = results("replay", "-q", file, "-p", text)
        assert ("base_addr_aligned_kb:16" in row["params"]) == \
            (kept and align > 1), row


def main():
    present = os.path.isdir(os.path.join(SHARED, "recorded", "dev"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        file = check_one(MADE, made_up(), False, None)
        check_answers(file)
        check_again(file)
        check_capacity(file)
        for align in 16 << 10, 1:
            for lost in 0, 400:
                check_aligned(f"aligned{align}_{lost}.pickle", align, lost)
        for name, keeps_settings in RECORDED.items() if present else ():
            check_one(name, recorded(name), keeps_settings)
        os.chdir(ROOT)
    print("exact with padding:", 1 + len(RECORDED) * present)
    return 0


if __name__ == "__main__":
    sys.exit(main())
