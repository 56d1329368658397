#!/usr/bin/env python3
"""check_export.py: the files of `fragsim export` hold what the replay measures.

Snapshots: the opcodes are those that PyTorch's viewer reads; the entries run
backwards from the segments without a contradiction, with every block inside of
a segment at each step; the peaks equal those of `fragsim replay`; fragsim reads
its own file again and finds the same events. If FRAG_MEMORY_VIZ names the
viewer's code (MemoryViz.js, or process_alloc_data.js,MemoryViz.js) and node is
installed, the viewer itself must show these numbers too. Chrome traces, buffers
of minimalloc and CSV are compared with the trace and with replays. A refused export leaves no file and changes none.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR, FRAG_MEMORY_VIZ.
"""
import bisect
import collections
import json
import lzma
import os
import pickle
import pickletools
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED

VIEWER = os.environ.get("FRAG_MEMORY_VIZ")
ORACLE = os.path.join(SHARED, "formats", "scripts", "check_memory_viz.mjs")
# What unpickle() of MemoryViz.js has a case for.
OPCODES = set("""PROTO FRAME MARK STOP EMPTY_DICT EMPTY_LIST EMPTY_TUPLE SETITEM
    SETITEMS APPEND APPENDS LIST DICT TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWTRUE
    NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE
    MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET""".split())
SHOWN = ("gpt2_train", "cudagraph", "leak_frames")
POLICIES = ("torch", "best_fit", "buddy")
# Other runs: pending frees, moves, maps, OOMs and their retries.
OTHERS = (("multistream", "torch", "inf"), ("multistream", "direct", "inf"),
          ("multistream", "torch:expandable_segments:True", "inf"),
          ("multistream", "compact", "inf"), ("multistream", "paged", "inf"),
          ("multistream", "compact", "0.8x"),
          ("late_start", "torch", "1.05x"), ("cudagraph", "bfc", "1.1x"),
          ("lstm_varlen__cap_tight_exp", "torch", "0.9x"),
          ("lstm_varlen__cap_tight_exp", "cuda_async", "0.9x"),
          ("lstm_varlen__cap_tight_exp",
           "torch:expandable_segments:True", "0.9x"),
          ("lstm_varlen__cap_tight_exp", "remap", "1.2x"))
wrong = []


def expect(name, what, holds):
    if not holds:
        wrong.append(f"{name}: {what}")


def bundled(name):
    return os.path.join(ROOT, "traces", "bundled", name + ".pickle.xz")


def run(*args, code=0):
    done = subprocess.run([FRAGSIM, *args], capture_output=True, text=True)
    expect(" ".join(args), f"exit code {done.returncode}, not {code}: "
           f"{done.stderr[:300]}", done.returncode == code)
    return done


def replay(trace, policy, capacity="inf"):
    done = run("replay", trace, "-p", policy, "-c", capacity, "-q",
               "--as-recorded", "--json", "-")
    return json.loads(done.stdout)["results"][0]


def events(path, also=()):
    """The CSV of a trace without the operations that a snapshot shows only by
    their effect."""
    lines = run("export", "-q", path).stdout.split("\n")
    return [line for line in lines if not line.startswith(also)]


# -- snapshots ---------------------------------------------------------------


def check_opcodes(name, data):
    """The opcodes, and the size of the batches: what lies between a MARK and
    its APPENDS."""
    marks, items, most = [], 0, 0
    for op, _, at in pickletools.genops(data):
        if op.name not in OPCODES:
            expect(name, f"the viewer does not read {op.name} at {at}", False)
            return
        if op.name == "MARK":
            marks.append(items)
            items = 0
        elif op.name in ("APPENDS", "SETITEMS"):
            most = max(most, items if op.name == "APPENDS" else 0)
            items = marks.pop()
        elif op.name == "TUPLE2":
            items -= 1
        elif op.name not in ("PROTO", "STOP", "MEMOIZE"):
            items += 1
    expect(name, f"a batch of {most} items", most <= 1000)
    expect(name, "the protocol", data[:2] == b"\x80\x04")


class Ranges:
    """Disjoint ranges; with `joins`, adjacent ones are one."""

    def __init__(self, joins):
        self.starts, self.ends, self.joins, self.total = [], [], joins, 0

    def covers(self, at, end):
        i = bisect.bisect_right(self.starts, at) - 1
        return i >= 0 and end <= self.ends[i]

    def overlaps(self, at, end):
        i = bisect.bisect_left(self.starts, end) - 1
        return i >= 0 and self.ends[i] > at

    def add(self, at, end):
        assert not self.overlaps(at, end), f"{at:#x} is held twice"
        i = bisect.bisect_right(self.starts, at)
        self.starts.insert(i, at)
        self.ends.insert(i, end)
        self.total += end - at
        while self.joins and i + 1 < len(self.starts) \
                and self.ends[i] == self.starts[i + 1]:
            self.ends[i] = self.ends.pop(i + 1)
            self.starts.pop(i + 1)
        while self.joins and i and self.ends[i - 1] == self.starts[i]:
            self.ends[i - 1] = self.ends.pop(i)
            self.starts.pop(i)
            i -= 1

    def remove(self, at, end):
        i = bisect.bisect_right(self.starts, at) - 1
        assert i >= 0 and end <= self.ends[i], f"{at:#x} is not held"
        assert self.joins or (self.starts[i], self.ends[i]) == (at, end), \
            f"{at:#x} is part of a segment"
        parts = [(self.starts[i], at), (end, self.ends[i])]
        parts = [p for p in parts if p[0] < p[1]]
        self.starts[i:i + 1] = [p[0] for p in parts]
        self.ends[i:i + 1] = [p[1] for p in parts]
        self.total -= end - at


class Backwards:
    """The viewer's walk from the end of a snapshot to its beginning."""

    def __init__(self, snapshot, device):
        # The viewer joins maps of one stream only.
        self.segments = Ranges(False)
        self.maps = collections.defaultdict(lambda: Ranges(True))
        self.blocks = Ranges(False)
        self.live = {}  # address: [end, pending, requested]
        self.requested = self.shown = 0
        for s in snapshot["segments"]:
            if s["device"] == device:
                self.add_segment(s)
        self.end = (self.requested, self.reserved())
        self.peaks = [self.requested, self.shown, self.reserved()]
        for e in reversed(snapshot["device_traces"][device]):
            getattr(self, "undo_" + e["action"])(e)
            for k, now in enumerate((self.requested, self.shown,
                                     self.reserved())):
                self.peaks[k] = max(self.peaks[k], now)

    def reserved(self):
        return self.segments.total + sum(m.total for m in self.maps.values())

    def maps_overlap(self, at, end):
        return any(m.overlaps(at, end) for m in self.maps.values())

    def add_segment(self, s):
        at = s["address"]
        held = self.maps[s["stream"]] if s["is_expandable"] else self.segments
        held.add(at, at + s["total_size"])
        for b in s["blocks"]:
            assert b["address"] == at, "the blocks do not tile the segment"
            if b["state"] != "inactive":
                self.add_block(at, b["size"], b["requested_size"],
                               b["state"] == "active_pending_free")
            at += b["size"]
        assert at == s["address"] + s["total_size"], "a segment is not tiled"

    def add_block(self, at, size, requested, pending):
        assert self.segments.covers(at, at + size) or \
            any(m.covers(at, at + size) for m in self.maps.values()), \
            f"block {at:#x} is in no segment"
        assert requested <= size
        self.blocks.add(at, at + size)
        self.live[at] = [at + size, pending, requested]
        self.shown += requested
        self.requested += 0 if pending else requested

    def undo_alloc(self, e):
        end, pending, requested = self.live.pop(e["addr"])
        assert not pending and requested == e["size"], "another size"
        self.blocks.remove(e["addr"], end)
        self.shown -= requested
        self.requested -= requested

    def undo_free_completed(self, e):
        self.add_block(e["addr"], e["size"], e["size"], True)

    def undo_free_requested(self, e):
        assert self.live[e["addr"]][1], "the block is not pending"
        self.live[e["addr"]][1] = False
        self.requested += e["size"]

    def undo_segment_alloc(self, e):
        end = e["addr"] + e["size"]
        assert not self.blocks.overlaps(e["addr"], end), "a block remains"
        self.segments.remove(e["addr"], end)

    def undo_segment_free(self, e):
        assert not self.maps_overlap(e["addr"], e["addr"] + e["size"])
        self.segments.add(e["addr"], e["addr"] + e["size"])

    def undo_segment_map(self, e):
        end = e["addr"] + e["size"]
        assert not self.blocks.overlaps(e["addr"], end), "a block remains"
        self.maps[e["stream"]].remove(e["addr"], end)

    def undo_segment_unmap(self, e):
        assert not self.segments.overlaps(e["addr"], e["addr"] + e["size"])
        assert not self.maps_overlap(e["addr"], e["addr"] + e["size"])
        self.maps[e["stream"]].add(e["addr"], e["addr"] + e["size"])

    def undo_oom(self, e):
        assert "device_free" in e and "addr" not in e


def check_snapshot(name, path, begins_empty):
    """The walk, None if it fails."""
    with open(path, "rb") as file:
        data = file.read()
    check_opcodes(name, data)
    snapshot = pickle.loads(data)
    try:
        walk = Backwards(snapshot, len(snapshot["device_traces"]) - 1)
    except (AssertionError, KeyError) as fault:
        expect(name, f"backwards: {type(fault).__name__} {fault}", False)
        return None
    if begins_empty:
        expect(name, "something is left before the first entry",
               not walk.live and not walk.reserved())
    times = [e["time_us"] for e in snapshot["device_traces"][-1]]
    expect(name, "times run backwards", times == sorted(times))
    return walk


def check_run(folder, trace, policy, capacity):
    """The snapshot of a policy's run against the replay's numbers."""
    name = f"{trace} {policy} {capacity}"
    path = os.path.join(folder, f"{trace}.{policy}.{capacity}.pickle")
    said = run("export", bundled(trace), "--to", "snapshot", "-p", policy, "-c",
               capacity, "-o", path).stderr
    row = replay(bundled(trace), policy, capacity)
    walk = check_snapshot(name, path, True)
    if not walk:
        return path, None
    if row["start"] == "adopted":  # the export starts from the live blocks
        expect(name, "the other start is not said",
               "not from the recorded segments" in said)
        return path, walk
    if "mapped memory only" not in said:
        expect(name, "reserved at the end differs",
               walk.end[1] == row["end_reserved_bytes"])
        expect(name, f"peak reserved {walk.peaks[2]}, not "
               f"{row['peak_reserved_bytes']}", walk.peaks[2] == row["peak_reserved_bytes"])
    expect(name, "more reserved than the replay",
           walk.peaks[2] <= row["peak_reserved_bytes"])
    if not row["num_ooms"]:
        expect(name, f"peak requested {walk.peaks[0]}, not "
               f"{row['peak_requested_bytes']}",
               walk.peaks[0] == row["peak_requested_bytes"])
    with open(path, "rb") as file:
        entries = pickle.load(file)["device_traces"][-1]
    expect(name, "the number of OOMs differs", row["num_ooms"] == sum(
        e["action"] == "oom" for e in entries))
    return path, walk


def check_round_trip(folder):
    for trace in SHOWN + ("multistream", "late_start",
                          "lstm_varlen__cap_below",
                          "lstm_varlen__cap_tight_exp"):
        path = os.path.join(folder, trace + ".recording.pickle")
        run("export", bundled(trace), "--to", "snapshot", "-q", "-o", path)
        walk = check_snapshot(trace, path, trace != "late_start")
        expect(trace, "the recording's events differ after a round trip",
               events(bundled(trace)) == events(path))
        expect(trace, "no walk", walk)
    for trace in SHOWN + ("multistream",):
        for policy in POLICIES:
            path = os.path.join(folder, f"{trace}.{policy}.inf.pickle")
            also = ("empty_cache",) if policy != "torch" else ()
            expect(f"{trace} {policy}", "events differ after a round trip",
                   events(bundled(trace), also) == events(path, also))
            again = replay(path, "size_class")
            expect(f"{trace} {policy}", "a replay of the copy differs",
                   again["peak_reserved_bytes"] ==
                   replay(bundled(trace), "size_class")["peak_reserved_bytes"])
    path = os.path.join(folder, "cudagraph.torch.inf.pickle")
    expect("validate", "the run of torch is not exact",
           "1 of 1 exact" in run("validate", path).stderr)
    one, two = (run("top", "-q", p, "--folded", "-").stdout for p in (
        bundled("leak_frames"),
        os.path.join(folder, "leak_frames.best_fit.inf.pickle")))
    expect("leak_frames", "the stacks differ after a round trip",
           one == two and "w_leak" in one)


def check_full(folder):
    """The capacity of a run that ran out of memory can be read from its snapshot."""
    path = os.path.join(folder, "full.pickle")
    run("export", bundled("gpt2_train"), "--to", "snapshot", "-p", "torch", "-c", "8GiB",
        "-q", "-o", path)
    said = run("validate", path).stderr
    expect("full", f"another capacity: {said}", "together 8 GiB (" in said)


def check_settings(folder):
    path = os.path.join(folder, "settings.pickle")
    conf = ("expandable_segments:True,max_split_size_mb:200,"
            "garbage_collection_threshold:0.5,roundup_power2_divisions:4")
    run("export", bundled("leak_frames"), "--to", "snapshot", "-p",
        "torch:" + conf, "-q", "-o", path)
    expect("settings", "they differ after a round trip",
           f"recorded settings          torch_version:2.11,{conf}" in
           run("info", path).stdout)


def check_viewer(paths):
    if not VIEWER or not shutil.which("node") or not os.path.exists(ORACLE):
        print("check_export: the viewer itself was not run: it needs node, "
              "FRAG_MEMORY_VIZ and check_memory_viz.mjs")
        return
    done = subprocess.run(["node", ORACLE, VIEWER, *paths],
                          capture_output=True, text=True)
    shown = {}
    for line in done.stdout.strip().split("\n"):
        path, _, text = line.partition(" [")
        expect(path, line[:300], text)
        if text:
            shown[path] = json.loads("[" + text)[0]
    for path, walk in paths.items():
        view = shown.get(path)
        if not view or not walk:
            expect(path, "the viewer shows nothing", False)
            continue
        expect(path, f"the viewer's peak is {view['timeline_max']}, not "
               f"{walk.peaks[1]}", view["timeline_max"] == walk.peaks[1])
        last = view[f"at_{max(int(k[3:]) for k in view if k[:3] == 'at_')}"]
        expect(path, f"the viewer's reserved is {last['reserved']}, not "
               f"{walk.end[1]}", last["reserved"] == walk.end[1])
    print(f"check_export: the viewer shows the numbers of {len(shown)} runs")


def check_snapshots(folder):
    paths = {}
    for trace in SHOWN:
        for policy in POLICIES:
            path, walk = check_run(folder, trace, policy, "inf")
            paths[path] = walk
            if walk and trace != "cudagraph":
                expect(path, "the timeline's peak is not peak requested",
                       walk.peaks[0] == walk.peaks[1])
    for trace, policy, capacity in OTHERS:
        path, walk = check_run(folder, trace, policy, capacity)
        paths[path] = walk
    for policy in POLICIES[1:]:
        check_run(folder, "multistream", policy, "inf")
    check_round_trip(folder)
    check_full(folder)
    check_settings(folder)
    check_viewer(paths)


# -- Chrome traces -----------------------------------------------------------


def check_tracks(name, trace, rows, points):
    names, tracks = {}, collections.defaultdict(list)
    slices, ooms = collections.Counter(), collections.Counter()
    for e in trace["traceEvents"]:
        expect(name, f"an event {e}", {"ph", "name", "pid", "ts"} <= e.keys()
               and e["ph"] in "MCibe" and e["ts"] >= 0)
        if e["ph"] == "M" and e["name"] == "process_name":
            names[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "C":
            tracks[e["pid"], e["name"]].append((e["ts"], e["args"]["bytes"]))
        elif e["ph"] == "i":
            ooms[e["pid"]] += 1
        elif e["ph"] in "be":
            slices[e["name"], e["id"], e["cat"]] += 1 if e["ph"] == "b" else -1
    for (pid, counter), samples in tracks.items():
        row = rows[names[pid]]
        times = [s[0] for s in samples]
        expect(name, "times run backwards", times == sorted(times))
        expect(name, f"{len(samples)} samples", not points
               or len(samples) <= points + 2)
        expect(name, f"{names[pid]} {counter}: the peak is "
               f"{max(s[1] for s in samples)}, not {row[f'peak_{counter}_bytes']}",
               max(s[1] for s in samples) == row[f"peak_{counter}_bytes"]
               or (counter == "requested" and row["num_ooms"]))
        expect(name, f"OOMs of {names[pid]}", ooms[pid] == row["num_ooms"])
    expect(name, "tracks", len(tracks) == 3 * len(rows))
    expect(name, "a slice has no end", not any(slices.values()))
    return slices


def check_chrome(folder):
    for trace, capacity, policies in (
            ("gpt2_train", "inf", ("torch", "remap", "best_fit")),
            ("lstm_varlen__cap_below", "0.9x", ("torch", "direct")),
            ("multistream", "inf", ("stitch", "compact"))):
        rows = {p: replay(bundled(trace), p, capacity) for p in policies}
        for points in (0, 1, 100):
            path = os.path.join(folder, f"{trace}.{points}.json")
            run("export", bundled(trace), "--to", "chrome", "-q", "-c",
                capacity, "--points", str(points), "-o", path,
                *(word for p in policies for word in ("-p", p)))
            with open(path, encoding="utf-8") as file:
                slices = check_tracks(f"chrome {trace}", json.load(file), rows,
                                      points)
            expect(f"chrome {trace}", "no slices", slices)
    csv = os.path.join(folder, "small.csv")
    with open(csv, "w", encoding="utf-8") as file:
        file.write("op,id,bytes,stream\nalloc,1,1000,0\nalloc,2,512,0\n"
                   "free,1,,\n")
    done = run("export", csv, "--to", "chrome", "-p", "torch")
    trace = json.loads(done.stdout)
    expect("chrome small", "times are not event numbers", sorted(
        {e["ts"] for e in trace["traceEvents"]
         if e["name"] == "requested"}) == [0, 1, 2, 3])
    expect("chrome small", "no note on times", "microsecond" in done.stderr
           and "microsecond" in str(trace["otherData"]["export_notes"]))


# -- the trace itself --------------------------------------------------------


def lifetimes(path):
    """(first event, last event or the number of events, bytes) of each block."""
    rows = [line.split(",") for line in events(path)[1:] if line]
    begun, found = {}, []
    for i, (op, name, size, _) in enumerate(rows):
        if op == "alloc":
            begun[name] = (i, int(size))
        elif op == "free":
            at, size = begun.pop(name)
            found.append((at, i, size))
    return sorted(found + [(at, len(rows), size)
                           for at, size in begun.values()])


def order(spans):
    """Lifetimes as ranks: the order of all begins and ends. Ends after the last
    begin are one time: the copy frees there what was never freed."""
    last = max(a for a, _, _ in spans)
    spans = [(a, min(b, last + 1), size) for a, b, size in spans]
    rank = {t: k for k, t in enumerate(sorted(
        {t for a, b, _ in spans for t in (a, b)}))}
    return [(rank[a], rank[b], size) for a, b, size in spans]


def renamed(path):
    """The events, with blocks numbered in the order of their requests."""
    rows, names = [line.split(",") for line in events(path)[1:] if line], {}
    for k, row in enumerate(rows):
        if row[0] == "alloc":
            names[row[1]] = k
        rows[k] = [row[0], names.get(row[1]), *row[2:]]
    return rows


def check_trace_formats(folder):
    for trace in ("gpt2_train", "multistream", "late_start"):
        path = os.path.join(folder, trace + ".buffers.csv")
        run("export", bundled(trace), "--to", "minimalloc", "-q", "-o", path)
        want = [(a, b, -(-size // 512) * 512)
                for a, b, size in lifetimes(bundled(trace))]
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        expect(trace, "header", lines[0] == "id,lower,upper,size")
        rows = [tuple(map(int, line.split(","))) for line in lines[1:] if line]
        expect(trace, "the buffers differ", sorted(r[1:] for r in rows) == want)
        expect(trace, "an id occurs twice", len({r[0] for r in rows})
               == len(rows))
        expect(trace, "the buffers differ after a round trip",
               order(lifetimes(path)) == order(want))
        copy = os.path.join(folder, trace + ".events.csv")
        run("export", bundled(trace), "-q", "-o", copy)
        expect(trace, "CSV differs after a round trip",
               renamed(copy) == renamed(bundled(trace)))


# -- refusals ----------------------------------------------------------------


def check_refusals(folder):
    kept = os.path.join(folder, "kept")
    csv = os.path.join(folder, "small.csv")
    trace = bundled("lstm_varlen__cap_tight_exp")
    for words, args in (
            ("second address",
             (trace, "--to", "snapshot", "-p", "remap:slack=0")),
            ("second address", (trace, "--to", "snapshot", "-p", "stitch")),
            ("expected one -p", (trace, "--to", "snapshot", "-p", "torch",
                                 "-p", "best_fit")),
            ("no run of a policy", (trace, "--to", "csv", "-p", "torch")),
            ("expected -p", (trace, "--to", "chrome")),
            ("no policy is named", (trace, "--to", "snapshot", "-c", "1GiB")),
            ("no recording to show", (csv, "--to", "snapshot")),
            ("no device 3", (trace, "--to", "minimalloc", "--device", "3"))):
        with open(kept, "w", encoding="utf-8") as file:
            file.write("as it was")
        done = run("export", *args, "-f", "-o", kept, code=2)
        expect(" ".join(args), f"said {done.stderr}", words in done.stderr)
        with open(kept, encoding="utf-8", errors="replace") as file:
            expect(" ".join(args), "the file changed",
                   file.read() == "as it was")
        new = os.path.join(folder, "new")
        run("export", *args, "-o", new, code=2)
        expect(" ".join(args), "a file is left", not os.path.exists(new)
               and not [n for n in os.listdir(folder) if n.startswith("new")])


def check_devices(folder):
    """The list of a device lies at its number, and others are empty."""
    with lzma.open(bundled("leak_frames")) as file:
        snapshot = pickle.load(file)
    for s in snapshot["segments"]:
        s["device"] = 2
    snapshot["device_traces"] = [[], [], snapshot["device_traces"][0]]
    path = os.path.join(folder, "third.pickle")
    copy = os.path.join(folder, "third.copy.pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, 4)
    for more in (), ("-p", "tlsf"):
        run("export", path, "--to", "snapshot", "--device", "2", "-q", "-f",
            "-o", copy, *more)
        check_snapshot("device 2", copy, True)
        with open(copy, "rb") as file:
            lists = pickle.load(file)["device_traces"]
        expect("device 2", "its list is elsewhere", [len(t) > 0 for t in lists]
               == [False, False, True])


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_snapshots(folder)
        check_chrome(folder)
        check_trace_formats(folder)
        check_devices(folder)
        check_refusals(folder)
    for line in wrong:
        print(f"check_export: {line}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
