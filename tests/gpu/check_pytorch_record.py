#!/usr/bin/env python3
"""check_pytorch_record.py: checks that traces/pytorch_record.py runs a script
as python3 does, and writes a complete snapshot and its counters when memory
runs out and at the end; and that no failure of the recorder hides one of the
program. tests/gpu/python/torch.py stands for PyTorch 2.1 and 2.11."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT

RECORDER = os.path.join(ROOT, "traces", "pytorch_record.py")
NAME = os.path.join(ROOT, "traces", "bundled", "lstm_varlen__cap_below")
CAP = 5418724131  # bytes, the limit of that recording
STANDIN = {
    "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "tests", "gpu", "python"),
                                   os.path.join(ROOT, "traces")]),
    "STANDIN_SNAPSHOT": NAME + ".pickle.xz", "STANDIN_STATS": NAME + ".json",
    "PYTHONDONTWRITEBYTECODE": "1"}

SCRIPT = '''
import sys, torch, beside
assert __name__ == "__main__" and sys.argv[1:] == ["a", "-b"], sys.argv
if sys.argv[0] == "job/oom.py":
    torch.run_out()
'''

BEGIN = '''
import os, sys, torch
from pytorch_record import Recording, start
'''

# name: (program, exit code, files, words on stderr)
PROGRAMS = {
    "caught, and the job continues": ("""
with Recording("a", stacks="python", max_entries=9) as recording:
    try:
        torch.run_out()
    except torch.OutOfMemoryError:
        pass
assert recording.files == ["a.rank0.oom.pickle", "a.rank0.exit.pickle"]
assert torch.calls[0] == {"enabled": "all", "context": "all",
                          "stacks": "python", "max_entries": 9}, torch.calls
assert torch.calls[1]["enabled"] is None and len(torch.calls) == 2
""", 0, ["a.rank0.exit", "a.rank0.oom"], ""),
    "after the end, memory runs out unrecorded": ("""
with Recording("a"):
    pass
torch.run_out()
""", 1, ["a.rank0.exit"], "OutOfMemoryError"),
    "the program's error goes first": ("""
with Recording("missing/a"):
    torch.run_out()
""", 1, [], "OutOfMemoryError: CUDA out of memory"),
    "an end that cannot be written is an error": ("""
with Recording("missing/a"):
    pass
""", 1, [], "FileNotFoundError"),
    "two at one time": ("""
with Recording("a"):
    with Recording("b"):
        pass
""", 1, ["a.rank0.exit"], "expected no active recording, found that of 'a'"),
    "two in a row": ("""
for name in "ab":
    with Recording(name) as recording:
        try:
            torch.run_out()
        except torch.OutOfMemoryError:
            pass
    assert len(recording.files) == 2, recording.files
assert len(torch._observers) == 1
""", 0, ["a.rank0.exit", "a.rank0.oom", "b.rank0.exit", "b.rank0.oom"], ""),
    "a rank of torch.distributed": ("""
os.environ["RANK"] = "5"
with Recording("a"):
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_rank = lambda: 2
""", 0, ["a.rank2.exit"], ""),
    "until the process ends": ("""
start("a")
sys.exit(3)
""", 3, ["a.rank0.exit"], ""),
    "a forked process writes nothing": ("""
start("a")
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert not os.path.exists("a.rank0.exit.pickle")
os._exit(0)
""", 0, [], ""),
    "stop without start": ("Recording('a').stop()", 0, [], ""),
}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def python(arguments, environment):
    return subprocess.run([sys.executable, *arguments], check=False,
                          env={**os.environ, **STANDIN, **environment},
                          capture_output=True, text=True)


def judge(what, done, code, names, words=""):
    """The exit code, the words in the last line of stderr, and the files, which
    are removed. Returns the counters by name."""
    found = sorted(name for name in os.listdir(".") if name[:3] != "job")
    wanted = sorted(name + end for name in names for end in (".json", ".pickle"))
    assert (done.returncode, found) == (code, wanted), \
        (what, done.returncode, found, done.stderr)
    assert words in (done.stderr.splitlines() or [""])[-1] and \
        (words or not done.stderr), \
        (what, done.stderr)
    counters = {}
    for name in names:
        with open(f"{name}.pickle", "rb") as copy, \
                open(STANDIN["STANDIN_SNAPSHOT"], "rb") as snapshot:
            assert copy.read() == snapshot.read(), what
        with open(f"{name}.json", encoding="utf-8") as file:
            counters[name] = json.load(file)
        os.remove(f"{name}.pickle")
        os.remove(f"{name}.json")
    return counters


def check_scripts():
    write("job/beside.py", "")
    write("job/well.py", SCRIPT)
    write("job/oom.py", SCRIPT)
    done = python([RECORDER, "job/well.py", "a", "-b"], {})
    judge("well.py", done, 0, ["snapshot.rank0.exit"])
    done = python([RECORDER, "job/oom.py", "a", "-b"],
                  {"RANK": "3", "FRAGSIM_RECORD": "mine"})
    judge("oom.py", done, 1, ["mine.rank3.exit", "mine.rank3.oom"],
          "OutOfMemoryError")
    done = python([RECORDER, "job/well.py", "a", "-b"], {"STANDIN_GPUS": "0"})
    judge("no GPU", done, 1, [], "No CUDA GPUs are available")


def check_counters(version):
    """The limit is that of the process, where PyTorch tells it: 2.11 at any
    time, 2.1 when memory runs out. Without a limit there is none."""
    program = BEGIN + ('torch.LIMIT = {}\n'
                       'with Recording("a"):\n'
                       '    try:\n'
                       '        torch.{}\n'
                       '    except torch.OutOfMemoryError:\n'
                       '        pass\n')
    both = ["a.rank0.exit", "a.rank0.oom"]
    environment = {"STANDIN_TORCH": version, "STANDIN_GPUS": "2",
                   "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    for limit, action, names, cap in [
            (CAP, "run_out()", both, CAP), (None, "run_out()", both, None),
            (CAP, "work()", both[:1], None if version == "2.1" else CAP)]:
        write("job/counters.py", program.format(limit, action))
        done = python(["job/counters.py"], environment)
        found = judge(("counters", version, limit), done, 0, names)
        with open(STANDIN["STANDIN_STATS"], encoding="utf-8") as file:
            stats = json.load(file)["stats"]
        for counters in found.values():
            assert counters["cap"] == cap, (version, limit, counters["cap"])
            assert counters["total_memory"] == 150109880320
            assert counters["stats"] == {"0": stats}  # the other GPU is unused
            assert counters["late"] == []
            assert counters["conf"] == "max_split_size_mb:64"
            assert counters["torch"].startswith(version + ".")


def check_late():
    """Totals and peaks of a process that was at work before the recording are
    not those of the recording; what it holds is."""
    write("job/late.py", BEGIN + "torch.work()\nwith Recording('a'):\n    pass\n")
    done = python(["job/late.py"], {})
    counters = judge("late", done, 0, ["a.rank0.exit"])["a.rank0.exit"]
    assert counters["late"] == ["0"]
    names = counters["stats"]["0"]
    assert "reserved_bytes.all.current" in names and len(names) > 20, names
    assert all(name.endswith(".current") for name in names), names


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("job")
        check_scripts()
        check_late()
        for version in ("2.1", "2.11"):
            check_counters(version)
            for what, (program, code, names, words) in PROGRAMS.items():
                write("job/program.py", BEGIN + program)
                done = python(["job/program.py"], {"STANDIN_TORCH": version})
                judge((version, what), done, code, names, words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
