#!/usr/bin/env python3
"""fuzz_seeds.py: writes seeds and dictionaries for the fuzz programs: for each
format FOLDER/FORMAT/ and FOLDER/FORMAT.dict. Seeds are small inputs of each
format, the bundled recordings, exports of one of them, and the first lines of
the samples of ../shared where present. usage: FRAGSIM=TOOL fuzz_seeds.py FOLDER

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR (the samples).
"""
import glob
import io
import json
import lzma
import os
import pickle
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, SHARED, earlier

CUT = 6000  # bytes: larger seeds make a fuzzer slow


def kineto_event(name, time, **args):
    words = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "i", "name": name, "cat": "cpu_instant_event", "ts": time,
            "s": "t", "args": words}


KINETO = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [
    kineto_event("[memory]", 1, Device_Type=1, Device_Id=0, Bytes=512, Addr=16,
                 Total_Allocated=512, Total_Reserved=4096),
    {"ph": "X", "name": "aten::add", "ts": 1.5, "dur": 2, "args": {"k": [1]}},
    kineto_event("[memory]", 2.25, Device_Type=1, Device_Id=0, Bytes=-512,
                 Addr=16, Total_Allocated=0, Total_Reserved=4096),
    kineto_event("[memory]", 3, Device_Type=0, Device_Id=-1, Bytes=64, Addr=32,
                 Total_Allocated=64, Total_Reserved=0),
    kineto_event("[OutOfMemory]", 4, Device_Type=1, Device_Id=0, Bytes=1 << 30,
                 Total_Allocated=0, Total_Reserved=4096)]}


# The words of each format, for its dictionary.
WORDS = {
    "csv": ["op", "id", "bytes", "stream", "alloc", "free", "empty_cache", ",",
            "\"", "\r\n", "\n", "18446744073709551615"],
    "static": ["id", "lower", "upper", "end", "size", "offset", "alignment",
               ",", "\n", "9223372036854775807"],
    "rmm": ["Thread,Time,Action,Pointer,Size,Stream", "allocate", "free",
            "allocate failure", "(nil)", "0x0", ",23:59:59.999999,", "\n"],
    "kineto": ["\"traceEvents\"", "\"[memory]\"", "\"[OutOfMemory]\"",
               "\"args\"", "\"Device Type\"", "\"Device Id\"", "\"Bytes\"",
               "\"Addr\"", "\"Total Allocated\"", "\"Total Reserved\"",
               "\"ts\"", "\"ph\"", "\"i\"", "{", "}", "[", "]", "1e308",
               "\"deviceProperties\"", "\"schemaVersion\"", "\\u0041"],
    "torch": ["device_traces", "segments", "blocks", "action", "addr", "size",
              "stream", "frames", "alloc", "free_requested", "free_completed",
              "segment_alloc", "segment_free", "segment_map", "oom",
              "allocator_settings", "time_us", "state", "active_allocated",
              "segment_pool_id", "\x80\x04", "q\x00", "h\x00", "u.", "(lp"],
    "record": ["fragrec\n"],
    "files": ["call,fixed_ns,ns_per_mib", "\"reserved_bytes.all.peak\"",
              "\"num_ooms\"", "copy", "map", "{", "[", "]", "}"],
    "settings": ["expandable_segments:True", "max_split_size_mb:",
                 "roundup_power2_divisions:[", "garbage_collection_threshold:",
                 "backend:cudaMallocAsync", "]", ",", ":"],
    "grid": ["trace", "policy", "capacity", "edit", "#"],
    "build": [], "calls": [], "trace_file": [], "results": [],
    "any": [],
}
# Seeds that are texts.
TEXTS = {
    "csv": ["op,id,bytes,stream\nalloc,1,4096,0\nalloc,2,1,7\nfree,1,,\n"
            "empty_cache,,,\nfree,2,,\n",
            "\"id\", op ,bytes\r\n1,alloc,\"18\"\r\n1,free,\r\n"],
    "static": ["id,lower,upper,size\n0,4,9,512\n1,0,4,1024\n",
               "alignment,id,lower,end,size,offset\n8,a,0,4,3,0\n1,b,2,9,5,7\n"],
    "rmm": ["Thread,Time,Action,Pointer,Size,Stream\n"
            "7,23:59:59.900000,allocate,0x10,256,0\n"
            "7,00:00:00.000001,free,0x10,256,0\n"
            "8,00:00:01:000001,allocate failure,(nil),99999,0x1\n"],
    "kineto": [json.dumps(KINETO)],
    "files": ["call,fixed_ns,ns_per_mib\nmap,1000,2.5\ncopy,1,0\n",
              "{\"num_ooms\": 1, \"reserved_bytes.all.peak\": 4096}"],
    "grid": ["trace in1\ntrace in2\npolicy torch\npolicy best_fit\n"
             "capacity inf,0.9x\npolicy best_fit:segment=2MiB\n"
             "edit scale:factor=2\n"],
    "settings": ["expandable_segments:True,max_split_size_mb:128",
                 "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
                 "garbage_collection_threshold:0.8"],
}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True,
                          **options).stdout


def unpacked(path):
    tools = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}
    tool = tools.get(os.path.splitext(path)[1])
    if not tool:
        with open(path, "rb") as file:
            return file.read()
    return run(tool, "-dc", path)


def first_lines(data, room=CUT):
    """The first whole lines, and for JSON of one document its first bytes."""
    return data[:data.rfind(b"\n", 0, room) + 1] or data[:room]


def record_call(kind, device=0, result=0, values=(0, 0, 0, 0), time=1,
                context=0):
    return struct.pack("<IiiI4QQQ", kind, result, device, 0, *values, time,
                       context)


def record_calls():
    """One call of each kind, the one with a name last, then frees (see
    traces/record_log.h)."""
    kinds = [*range(1, 23), *range(24, 30), 23]
    calls = [record_call(kind, values=(0x1000 * kind, 64, 9, 5 + kind),
                         time=kind) for kind in kinds]
    return b"".join(calls + [record_call(4, values=(0x1000, 0, 0, 0))])


def record_log():
    return struct.pack("<8sIIQQQ64s", b"fragrec\n", 2, 64, 7, 1, 0,
                       b"program").ljust(4096, b"\0") + record_calls()


def samples(name):
    """The first lines of the samples of a format."""
    for path in sorted(glob.glob(os.path.join(SHARED, "formats", "samples",
                                              name, "*"))):
        words = os.path.basename(path)
        if not words.startswith(("NOTES", "LICENSE", "expected")):
            yield first_lines(unpacked(path))


def small_kineto():
    """The first memory events of a sample, as a complete document."""
    path = os.path.join(SHARED, "formats", "samples", "kineto",
                        "train_cpu.json.xz")
    if os.path.exists(path):
        whole = json.loads(unpacked(path))
        whole["traceEvents"] = whole["traceEvents"][:30]
        yield json.dumps(whole).encode()


def exports():
    """A bundled trace in each format that fragsim writes and reads."""
    trace = os.path.join(BUNDLED, "leak.pickle.xz")
    small = os.path.join(BUNDLED, "late_start.pickle.xz")
    for form, to in [("csv", "csv"), ("static", "minimalloc")]:
        yield form, first_lines(run(FRAGSIM, "export", "-q", trace, "--to", to))
    yield "torch", run(FRAGSIM, "export", "-q", small, "--to", "snapshot")


def plain(value):
    """The value as a pickle without a memo: each value stands at its place."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 4)
    pickler.fast = True
    pickler.dump(value)
    return out.getvalue()


def with_few_frames(snapshot):
    for entries in snapshot["device_traces"] + [snapshot["segments"]]:
        for entry in entries:
            for block in [entry] + entry.get("blocks", []):
                if "frames" in block:
                    block["frames"] = block["frames"][:3]
    return snapshot


def cuts():
    """The beginnings and ends of the bundled snapshots."""
    for path in sorted(glob.glob(os.path.join(BUNDLED, "*.pickle.xz"))):
        if ".cpp." in path:
            continue
        whole = with_few_frames(pickle.loads(unpacked(path)))
        traces = whole["device_traces"]
        part = dict(whole, segments=[],
                    device_traces=[trace[:100] for trace in traces])
        yield plain(part)
        for count in 20, 80:
            part = dict(whole, segments=whole["segments"][:8],
                        device_traces=[trace[-count:] for trace in traces])
            yield plain(part)
        yield pickle.dumps(part, 2)
        yield plain(dict(part, device_traces=[[] for _ in traces]))


# Commands that make result files: the texts of an HDF5 file differ by policy,
# its tables by what happened, and runs of a sweep without details are bare.
RESULTS = [
    ["replay", "-p", "torch"], ["replay", "-p", "best_fit", "-c", "1KiB"],
    ["replay", "-p", "rmm_pool", "--check"],
    ["replay", "-p", "stitch", "-p", "plan", "-c", "inf,1MiB"],
    ["replay", "-p", "torch:expandable_segments:True", "--stop-at-oom"],
    ["sweep", "-p", "buddy", "-p", "cupy", "-c", "0.5x,inf"],
    ["sweep", "-p", "tlsf", "-p", "cuda_async", "-c", "inf", "--points", "2000"],
]


def hdf5_files(folder):
    events = os.path.join(folder, "events.csv")
    path = os.path.join(folder, "made.h5")
    late = os.path.join(BUNDLED, "late_start.pickle.xz")
    with open(events, "w", encoding="ascii") as file:
        file.write(TEXTS["csv"][0])
    commands = [("trace_file", ["import", source]) for source in (events, late)]
    commands += [("results", words + [events]) for words in RESULTS]
    commands += [("results", ["sweep", late, "-p", "torch"])]
    for form, words in commands:
        run(FRAGSIM, *words, "-q", "-o", path)
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        yield form, data
    os.unlink(events)
    yield "results", earlier("results-1.0")


def seeds(folder):
    """Every seed: the format and its bytes."""
    for form, texts in TEXTS.items():
        for text in texts:
            yield form, text.encode()
    for data in samples("rmm"):
        yield "rmm", data
    for data in small_kineto():
        yield "kineto", data
    for path in glob.glob(os.path.join(SHARED, "foreign", "minimalloc", "A*")):
        yield "static", first_lines(unpacked(path))
    recorded = os.path.join(BUNDLED, "recorded")
    yield "rmm", first_lines(unpacked(
        os.path.join(recorded, "rmm_query.dev0.csv.xz")))
    for path in glob.glob(os.path.join(SHARED, "formats", "samples", "viewers",
                                       "*.pickle")):
        yield "torch", unpacked(path)
    with open(os.path.join(BUNDLED, "late_start.pickle.xz"), "rb") as file:
        yield "torch", file.read()
    for data in cuts():
        yield "torch", data
    with open(os.path.join(BUNDLED, "leak.json"), "rb") as file:
        yield "files", file.read()
    with open(os.path.join(ROOT, "real", "data", "nvidia-h100-calls.csv"),
              "rb") as file:
        yield "timings", first_lines(file.read())
    yield from exports()
    yield from hdf5_files(folder)
    yield "record", record_log()
    yield "calls", record_calls()
    yield "build", bytes(range(64))


def quoted(word):
    return '"' + "".join(c if c.isalnum() or c in " ,.:[](){}+-<>!@=_%"
                         else f"\\x{ord(c):02x}" for c in word) + '"\n'


def write(folder, form, number, data):
    os.makedirs(os.path.join(folder, form), exist_ok=True)
    with open(os.path.join(folder, form, f"seed{number}"), "wb") as file:
        file.write(data)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for number, (form, data) in enumerate(seeds(folder)):
        write(folder, form, number, data)
        if form in TEXTS and form not in ("files", "settings", "grid"):
            write(folder, form, f"{number}.xz", lzma.compress(data))
            write(folder, "any", number, data)
        if form in ("trace_file", "results"):
            write(folder, "any", number, data)
    for form, words in WORDS.items():
        with open(os.path.join(folder, form + ".dict"), "w",
                  encoding="ascii") as file:
            file.writelines(quoted(word) for word in words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
