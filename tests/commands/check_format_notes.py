#!/usr/bin/env python3
"""check_format_notes.py: checks that the notes of a format arrive in every
answer, in text and in JSON, and that a snapshot of torch_npu or of PyTorch for
ROCm is recognized, and a snapshot of CUDA is not taken for one.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, run

# A note of the format, and one about the file.
PLACE = "the sizes in the log are those at the place"
CUT = "row at the end of the log is incomplete"
MIB = 1 << 20


def notes_in(value):
    """The notes anywhere in a JSON value, joined."""
    if isinstance(value, list):
        return "\n".join(map(notes_in, value))
    if not isinstance(value, dict):
        return ""
    return "\n".join(value.get("notes", []) +
                     [notes_in(part) for part in value.values()])


def make_log():
    lines, time = ["Thread,Time,Action,Pointer,Size,Stream"], "05:50:42.600000"
    for i in range(40):
        lines.append(f"7,{time},allocate,0x{4096 + i:x},4096,0")
        if i % 3 == 2:
            lines.append(f"7,{time},free,0x{4096 + i - 1:x},4096,0")
    with open("run.rmm.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n7,05:50")


def check_answers():
    """In text, the notes are on stdout or on stderr."""
    make_log()
    answers = [["info"], ["replay", "-p", "first_fit"], ["fit"], ["explain"],
               ["summary"], ["top"], ["leaks"], ["steps"],
               ["tune"]]
    for verb, *options in answers:
        done = run(verb, "run.rmm.csv", *options)
        text = done.stdout + done.stderr
        assert PLACE in text and CUT in text, (verb, text)
        document = run(verb, "-q", "run.rmm.csv", *options, "--json", "-").stdout
        for row in json.loads(document)["results"]:
            notes = notes_in(row)
            assert PLACE in notes and CUT in notes, (verb, row)


def check_files():
    """The notes stay in a trace file, a result file and the pages made of
    them."""
    run("import", "run.rmm.csv", "-o", "run.h5")
    run("replay", "-q", "run.h5", "-p", "first_fit", "-o", "results.h5")
    run("report", "results.h5", "-o", "report.html")
    run("triage", "run.rmm.csv", "-c", "64KiB", "-o", "triage.html", code=1)
    row = json.loads(run("info", "--json", "-", "run.h5").stdout)["results"][0]
    assert PLACE in "".join(row["notes"]), row
    for page in ("report.html", "triage.html"):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        assert PLACE in text and CUT in text, page


def snapshot(sizes, frame=None, settings=None, segment_type="small"):
    """A snapshot with a live block for each (requested, size)."""
    blocks = [{"size": size, "requested_size": requested,
               "state": "active_allocated"} for requested, size in sizes]
    total = 20 * MIB if segment_type == "large" else 2 * MIB
    blocks.append({"size": total - sum(size for _, size in sizes),
                   "requested_size": 0, "state": "inactive"})
    made = {
        "segments": [{"device": 0, "address": 1 << 30, "total_size": total,
                      "stream": 0, "segment_type": segment_type,
                      "segment_pool_id": (0, 0), "blocks": blocks}],
        "device_traces": [[]],
    }
    at = 1 << 30
    for requested, size in sizes:
        made["device_traces"][0].append(
            {"action": "alloc", "addr": at, "size": requested, "stream": 0,
             "frames": [frame] if frame else []})
        at += size
    if settings:
        made["allocator_settings"] = settings
    return made


def frame_of(function, file):
    return {"name": function, "filename": file, "line": 1}


ASCEND, PADDED = "torch_npu for Ascend", "adds 32 bytes to each request"
UNPROVED = "no block of the snapshot proves the 32 bytes"
ROCM, XPU = "PyTorch for ROCm", "PyTorch for XPU"
CASES = [ # name, snapshot, words in the notes, words not in them
    ("padded", snapshot([(512, 1024), (100, 512), (1000, 1536)]),
     [ASCEND, PADDED], [ROCM, UNPROVED]),
    ("31 bytes below a multiple", snapshot([(993, 1536)]),
     [ASCEND, PADDED], []),
    ("32 bytes beyond a request are enough for the padding",
     snapshot([(512, 1024), (480, 512)]), [ASCEND, PADDED], []),
    ("32 bytes below a multiple", snapshot([(992, 1024)]), [], [ASCEND]),
    ("plain", snapshot([(512, 512), (100, 512)]), [], [ASCEND, ROCM]),
    ("plain and padded", snapshot([(512, 512), (512, 1024)]), [], [ASCEND]),
    ("a remainder of a large segment that was not split off",
     snapshot([(512 * 4096, 512 * 4097)], segment_type="large"), [], [ASCEND]),
    ("divisions",
     snapshot([(4608, 5120)], settings={
         "roundup_power2_divisions": {"1": 4}}), [], [ASCEND]),
    ("frames of Python",
     snapshot([(100, 512)], frame_of("f", "/lib/torch_npu/npu/utils.py")),
     [ASCEND, PADDED, UNPROVED], []),
    ("frames of C++",
     snapshot([(100, 512)], frame_of("c10_npu::NPUCachingAllocator::f", "")),
     [ASCEND, PADDED], []),
    ("a newer Ascend", snapshot([(512, 512)], frame_of("c10_npu::f", "")),
     [ASCEND], [PADDED]),
    ("a function that asks for torch_npu",
     snapshot([(100, 512)],
              frame_of("is_torch_npu_available", "/lib/accelerate/imports.py")),
     [], [ASCEND]),
    ("ROCm",
     snapshot([(512, 512)],
              frame_of("c10::hip::HIPCachingAllocator::malloc", "??")),
     [ROCM, "ROCm 7.0"], [ASCEND, XPU]),
    ("XPU by a frame of C++",
     snapshot([(512, 512)],
              frame_of("c10::xpu::XPUCachingAllocator::malloc", "??")),
     [XPU], [ASCEND, ROCM]),
    ("XPU by its settings",
     snapshot([(512, 512)], settings={"PYTORCH_ALLOC_CONF": "",
                                      "expandable_segments": False}),
     [XPU], [ASCEND, ROCM]),
]


def check_convolutions():
    """Below the need of a program with convolutions, cuDNN may do with less."""
    words = "the program has convolutions"
    for file, bound, expected in (("/lib/torch/nn/modules/conv.py", "2MiB", True),
                                  ("/lib/torch/nn/modules/conv.py", "inf", False),
                                  ("/lib/torch/nn/modules/linear.py", "2MiB",
                                   False)):
        with open("conv.pickle", "wb") as out:
            pickle.dump(snapshot([(512, 512)] * 2, frame_of("forward", file)), out)
        said = run("replay", "conv.pickle", "-c", bound).stderr
        assert (words in said) == expected, (file, bound, said)
        row = json.loads(run("fit", "-q", "conv.pickle", "--json",
                             "-").stdout)["results"][0]
        assert (words in "".join(row["notes"])) == ("conv.py" in file), row


def check_limits():
    """The pool of cuda_async may hold more than the limit of its process."""
    with open("pool.csv", "w", encoding="utf-8") as out:
        out.write("op,id,bytes,stream\nalloc,1,1048576,0\n")
    for policy, expected in (("cuda_async", True), ("torch", False)):
        done = run("replay", "pool.csv", "-p", policy, "--process-limit", "24MiB")
        words = "counts the bytes of live requests here, so the run holds 32 MiB"
        assert (words in done.stdout + done.stderr) == expected, (policy, done)


def check_origins():
    for name, made, wanted, unwanted in CASES:
        with open("case.pickle", "wb") as file:
            pickle.dump(made, file)
        row = json.loads(run("replay", "-q", "case.pickle", "--json",
                             "-").stdout)["results"][0]
        notes = "\n".join(row["notes"])
        for words in wanted:
            assert words in notes, (name, notes)
        for words in unwanted:
            assert words not in notes, (name, notes)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_answers()
        check_files()
        check_origins()
        check_convolutions()
        check_limits()
        os.chdir(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
