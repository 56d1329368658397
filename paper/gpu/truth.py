#!/usr/bin/env python3
"""truth.py: runs the programs of truth_programs.py on a GPU and keeps what is true of
them: the snapshot, every counter of PyTorch, and whether the program survived.

  truth.py record FOLDER [--seconds N] [--width N] [--only NAME,...]
               [--parts free,lim,dev] [--after SUMMARY]
    every program, each run in a process of its own: without a limit, under a limit of
    the process, and on a full device; with default settings and with expandable
    segments. --after skips what an earlier run has done and takes its peaks
  truth.py confirm JOBS.json FOLDER [--seconds N] [--width N]
    the runs of a JSON list: {"program", "conf", "bound": "none"|"process"|"device",
    "bytes", and anything else, which is copied}
  truth.py check [NAME...]
    two steps of each program on the CPU

Names: PROG, PROG__exp (expandable segments), PROG__lim106 (a limit of 1.06 times the
peak allocated of PROG), PROG__dev106 (the device refuses there), PROG__lim106_exp.
A program stops at its first OutOfMemoryError; its snapshot is taken there.

FOLDER gets summary.jsonl, a row for each run as it ends, and the files of the runs in
truth_N.tar: NAME.pickle.xz (the snapshot) and NAME.json:

  outcome           survived, died, failed (another error, see `error`), timeout,
                    crash and the exit status
  bound, cap        none, process or device, and its bytes
  steps, died_step  steps done; the step it died in, counted from 1
  marks             for each step the peaks of allocated and reserved bytes within it
  mark_times_us     when the step ended, on the clock of the snapshot
  free_start        free bytes of the device before the first request (cudaMemGetInfo);
                    other runs share the device, except with the bound device, where
                    memory that PyTorch's allocator does not know of fills the rest,
                    and the driver keeps some that it reports as free
  free_end          the same at the end
  outside_growth    on a full device: bytes that something else than PyTorch's
                    allocator took meanwhile
  left_before       bytes that the warm-up before a run on a full device left behind
  stats, oom, actions, allocator_settings, leak, site  as their names say

Before a run on a full device the program runs once without ballast and recorder, so
that kernels and libraries are loaded; then its memory is returned and the counters are
reset.
"""
import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import json
import lzma
import os
import pickle
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback

MIB, GIB = 1 << 20, 1 << 30
PAGE = 2 * MIB                    # what the driver hands out at a time
EXPANDABLE = "expandable_segments:True"
CONFS = {"": "", "_exp": EXPANDABLE}
LEVELS = (1.06, 1.02, 1.15)       # times the peak allocated, in the order of the runs
BELOW = 0.98                      # in place of levels at which nothing would happen
RUN_SECONDS = 60
ONLY_IN_JSON = ("stats", "marks", "mark_times_us", "actions", "allocator_settings")
ROOM = 40 * GIB                   # for contexts and warm-ups
TAR_BYTES, ALL_BYTES = 14 * MIB, 60 * MIB
PACKERS = 6


# ---- in the process of a run ----

def copy_peaks(best, stats):
    for key, value in stats.items():
        if key.endswith(".peak"):
            best[key] = max(best.get(key, 0), value)


class Marks:
    """Peaks of each step, and of the whole run in spite of the resets."""

    def __init__(self):
        self.rows, self.times, self.best = [], [], {}

    def add(self):
        import torch
        stats = torch.cuda.memory_stats()
        copy_peaks(self.best, stats)
        self.rows.append([stats["allocated_bytes.all.peak"],
                          stats["reserved_bytes.all.peak"]])
        self.times.append(time.time_ns() // 1000)
        torch.cuda.reset_peak_memory_stats()

    def stats(self):
        import torch
        now = dict(torch.cuda.memory_stats())
        copy_peaks(self.best, now)
        return now | self.best


class Ballast:
    """Memory of the device that PyTorch's allocator knows nothing of."""

    def __init__(self):
        import torch
        self.cuda = ctypes.CDLL("libcudart.so." + torch.version.cuda.partition(".")[0])
        torch.cuda.init()
        torch.cuda.synchronize()

    def take(self, size):
        """The address of so many bytes; 0 if the device refuses."""
        pointer = ctypes.c_void_p()
        self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        self.cuda.cudaGetLastError()
        return pointer.value or 0

    def leave(self, wanted):
        """Takes all that can be had but `wanted` bytes, whole pages. What the driver
        reports as free afterwards is more: it keeps a rest for itself."""
        kept, size = self.take(wanted), 64 * GIB
        assert kept or not wanted, f"{wanted} bytes cannot be had"
        while size >= PAGE:
            size = size if self.take(size) else size // 2
        self.cuda.cudaFree(ctypes.c_void_p(kept))


def fix_names(snapshot):
    """No path of the recording machine stays in the file."""
    lists = [e.get("frames") for t in snapshot["device_traces"] for e in t]
    for segment in snapshot["segments"]:
        lists.append(segment.get("frames"))
        lists += [b.get("frames") for b in segment["blocks"]]
    for frame in (f for frames in lists for f in frames or ()):
        name = frame["filename"]
        _, torch_, rest = name.rpartition("/torch/")
        frame["filename"] = "torch/" + rest if torch_ else name.rpartition("/")[2]
    return snapshot


def warm_up(program):
    """Loads kernels and libraries, and leaves PyTorch's allocator as if new."""
    import torch
    from truth_programs import Job
    collections.deque(program(Job()), maxlen=0)
    torch.cuda.synchronize()
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    return left


def bind(row, program):
    """Sets the bound, and notes what is free before the first request."""
    import torch
    row["total_memory"] = torch.cuda.get_device_properties(0).total_memory
    if row["bound"] == "process":
        # PyTorch rounds the product down: half a byte more keeps the last byte.
        torch.cuda.set_per_process_memory_fraction(
            (row["cap"] + 0.5) / row["total_memory"])
    if row["bound"] == "device":
        ballast = Ballast()
        row["left_before"] = warm_up(program)
        if row.get("policy"):
            row["inside"] = numbers_inside()
        ballast.leave(row["cap"])
        torch.cuda.empty_cache()  # a policy of fragsim reads then what is free
    row["free_start"] = torch.cuda.mem_get_info()[0]


def play(row, program, marks):
    """Runs the program to its end, or to its first OutOfMemoryError."""
    import torch
    from truth_programs import Job
    row["outcome"], row["oom"], row["error"] = "survived", None, None
    try:
        for _ in program(Job()):
            marks.add()
        torch.cuda.synchronize()
        return finish(row, marks)
    except torch.OutOfMemoryError as error:
        row["outcome"], row["oom"] = "died", str(error)
        return finish(row, marks)         # here the failing step's tensors still live
    except Exception:  # pylint: disable=broad-exception-caught
        row["outcome"], row["error"] = "failed", traceback.format_exc()[-3000:]
        return finish(row, marks)


def finish(row, marks):
    """Everything about the run; returns the snapshot."""
    import torch
    row["seconds"] = round(time.time() - row.pop("began"), 2)
    row |= {"steps": len(marks.rows), "marks": marks.rows, "mark_times_us": marks.times}
    row["died_step"] = None if row["outcome"] == "survived" else len(marks.rows) + 1
    row["free_end"] = torch.cuda.mem_get_info()[0]
    row["stats"] = marks.stats()
    if row["bound"] == "device":
        row["outside_growth"] = (row["free_start"] - row["free_end"] + row["left_before"]
                                 - row["stats"]["reserved_bytes.all.current"])
    snapshot = fix_names(torch.cuda.memory._snapshot())
    trace = snapshot["device_traces"][0]
    row["n_events"] = len(trace)
    row["actions"] = dict(collections.Counter(e["action"] for e in trace))
    row["allocator_settings"] = snapshot.get("allocator_settings")
    return snapshot


def every():
    from real_programs import REAL
    from truth_programs import EVERY
    return EVERY | REAL


def select(row):
    """Puts a policy of fragsim under PyTorch."""
    os.environ["FRAGSIM_POLICY"] = row["policy"]
    if row["bound"] == "capacity":
        os.environ["FRAGSIM_CAPACITY"] = f"{row['cap']}B"
    import fragsim_torch
    fragsim_torch.use()


def one_run(row, folder):
    """The child process: PROG in the state in which PyTorch was imported."""
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = row["conf"]
    import torch
    program = every()[row["workload"]]
    if row.get("policy"):
        select(row)
    torch.cuda.init()
    gc.collect()  # so that later collections come after the same requests
    bind(row, program)
    row |= {"torch": torch.__version__, "cuda": torch.version.cuda, "seed": 11,
            "device": torch.cuda.get_device_name(0), "began": time.time()}
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=1_000_000)
    snapshot = play(row, program, Marks())
    if row.get("policy"):
        row["inside"] = since(row.pop("inside", {}))
    with open(os.path.join(folder, row["name"] + ".pickle"), "wb") as out:
        pickle.dump(snapshot, out)
    write_row(row, folder)


def write_row(row, folder):
    with open(os.path.join(folder, row["name"] + ".json"), "w", encoding="utf-8") as out:
        json.dump(row, out, indent=1)


def numbers_inside():
    """What the policy counted."""
    import fragsim_torch
    return {name: getattr(fragsim_torch, name)() for name in
            ("peak_reserved", "peak_allocated", "driver_calls", "driver_ns")}


def since(before):
    """The same, without the calls of the driver that a warm-up made."""
    return {name: count - before.get(name, 0) if name.startswith("driver") else count
            for name, count in numbers_inside().items()}


def hold(ready):
    """A child process that holds most of the device until it is killed."""
    Ballast().leave(ROOM)
    os.write(ready, b"1")
    while True:
        signal.pause()


# ---- in the process that starts them ----

def fork(act, *arguments, log=os.devnull):
    """Runs act in a new process, which knows PyTorch but has no CUDA context yet."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        faulthandler.enable()
        act(*arguments)
        code = 0
    except BaseException:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def compress(path):
    with open(path, "rb") as raw, lzma.open(path + ".xz.part", "wb") as out:
        out.write(raw.read())
    os.rename(path + ".xz.part", path + ".xz")


class Tars:
    """Files in FOLDER/truth_N.tar, none of which gets too large to be sent."""

    def __init__(self, folder):
        self.folder, self.number, self.size, self.all = folder, 0, 0, 0

    def add(self, path):
        size = os.path.getsize(path) + 1536
        if self.all + size > ALL_BYTES:
            return False
        if self.size + size > TAR_BYTES:
            self.number, self.size = self.number + 1, 0
        name = os.path.join(self.folder, f"truth_{self.number}.tar")
        with tarfile.open(name, "a") as tar:
            tar.add(path, os.path.basename(path))
        self.size, self.all = self.size + size, self.all + size
        return True


class Runner:
    """Starts runs as long as there is time, and writes what they leave."""

    def __init__(self, folder, seconds):
        import torch  # noqa: F401  so that every child has it from the start
        every()
        self.folder, self.began, self.seconds = folder, time.monotonic(), seconds
        self.work = tempfile.mkdtemp(prefix="truth")
        self.tars, self.rows = Tars(folder), {}
        self.running, self.packing = {}, {}
        self.summary = open(os.path.join(folder, "summary.jsonl"), "a", encoding="utf-8")

    def at(self):
        return time.monotonic() - self.began

    def path(self, name, end):
        return os.path.join(self.work, name + end)

    def start(self, row):
        number = fork(one_run, row, self.work, log=self.path(row["name"], ".log"))
        limit = min(RUN_SECONDS, self.seconds + 15 - self.at())
        self.running[number] = row, self.at(), limit

    def ended(self, number, how):
        row, began, _ = self.running.pop(number)
        try:
            with open(self.path(row["name"], ".json"), encoding="utf-8") as file:
                row = json.load(file)
        except (OSError, ValueError):
            with open(self.path(row["name"], ".log"), errors="replace",
                      encoding="utf-8") as log:
                row |= {"outcome": how, "error": log.read()[-1500:]}
        row["wall"] = round(self.at() - began, 1)
        self.write(row)
        if "stats" in row:
            self.pack(row)

    def pack(self, row):
        packer = fork(compress, self.path(row["name"], ".pickle"))
        self.packing[packer] = row["name"]

    def write(self, row):
        self.rows[row["name"]] = row
        keep = {k: v for k, v in row.items() if k not in ONLY_IN_JSON}
        keep |= {"peak_allocated": peak(row, "allocated"),
                 "peak_reserved": peak(row, "reserved"),
                 "retries": row.get("stats", {}).get("num_alloc_retries")}
        self.summary.write(json.dumps(keep) + "\n")
        self.summary.flush()
        print(f"[{self.at():5.0f}] {row['name']:31} {row['outcome']:8} "
              f"{(row.get('cap') or 0) / MIB:6.0f} {(keep['peak_allocated'] or 0) / MIB:6.0f} "
              f"{(keep['peak_reserved'] or 0) / MIB:6.0f} {row['wall']:5.1f} s"
              + (row.get("error") or "")[-150:].replace("\n", " "), flush=True)

    def packed(self, number):
        name = self.packing.pop(number)
        for end in (".json", ".pickle.xz"):
            path = self.path(name, end)
            if not os.path.exists(path) or not self.tars.add(path):
                print("lost:", name + end, flush=True)
        for end in (".pickle", ".pickle.xz", ".json"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name, end))

    def look(self):
        """Notices what has ended, and ends what takes too long."""
        for number, (_, began, limit) in list(self.running.items()):
            ended, status = os.waitpid(number, os.WNOHANG)
            if ended:
                self.ended(number, f"crash {status}")
            elif self.at() - began > limit:
                os.kill(number, signal.SIGKILL)
                os.waitpid(number, 0)
                self.ended(number, "timeout")
        for number in list(self.packing):
            if os.waitpid(number, os.WNOHANG)[0]:
                self.packed(number)
        time.sleep(0.02)

    def over(self):
        """No time is left, or nothing works."""
        return self.at() >= self.seconds or len(self.rows) > 5 and not any(
            "stats" in row for row in self.rows.values())

    def all_of(self, rows, width):
        """Runs up to `width` at a time; returns the names for which no time was left."""
        waiting = collections.deque(rows)
        while waiting or self.running:
            busy = len(self.running) >= width or len(self.packing) > 2 * PACKERS
            if waiting and not busy and not self.over():
                self.start(waiting.popleft())
            elif self.over() and not self.running:
                break
            else:
                self.look()
        return [row["name"] for row in waiting]

    def full_device(self, rows):
        """One run at a time, on a device most of which is taken from the start."""
        if not rows:
            return []
        ready, say = os.pipe()
        holder = fork(hold, say, log=self.path("holder", ".log"))
        os.close(say)
        os.read(ready, 1)
        left = self.all_of(rows, 1)
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        return left

    def close(self, left):
        while self.packing:
            self.look()
        shutil.rmtree(self.work)
        print(f"[{self.at():5.0f}] {len(self.rows)} runs; no time for {len(left)}: "
              + " ".join(left)[:1500], flush=True)
        print(dict(collections.Counter((r["bound"], r["outcome"]) for r in
                                       self.rows.values())), flush=True)


def peak(row, what):
    if "stats" in row:
        return row["stats"].get(f"{what}_bytes.all.peak")
    return row.get(f"peak_{what}")


def spec(name, program, conf, bound="none", cap=0):
    from truth_programs import TRUTH
    leak, site = TRUTH.get(program, (None, None))
    truth = {} if leak is None else {"leak": leak, "site": site}
    return {"name": name, "workload": program, "conf": conf, "bound": bound,
            "cap": cap, **truth}


def levels(row):
    """The levels between peak allocated and peak reserved, and one below if some are
    above; none for a run that failed."""
    allocated, reserved = peak(row, "allocated"), peak(row, "reserved")
    if row.get("outcome") != "survived":
        return []
    within = [l for l in LEVELS if l * allocated < reserved]
    return within + [BELOW] * (len(within) < len(LEVELS))


def bounded(runner, word, bound):
    """The runs under one kind of bound, the middle levels first."""
    from truth_programs import PROGRAMS
    found = []
    for name in PROGRAMS:
        row = runner.rows.get(name, {})
        for place, level in enumerate(levels(row)):
            cap = -int(-level * peak(row, "allocated") // PAGE) * PAGE
            for end, conf in CONFS.items():
                tag = f"{name}__{word}{100 * level:03.0f}{end}"
                found.append((place, spec(tag, name, conf, bound, cap)))
    return [row for _, row in sorted(found, key=lambda f: f[0])]


def earlier(runner, path):
    """The rows of an earlier run, which are not made again."""
    if path:
        with open(path, encoding="utf-8") as file:
            runner.rows |= {row["name"]: row for row in map(json.loads, file)
                            if row["outcome"] in ("survived", "died")}
    return set(runner.rows)


def record(args):
    from truth_programs import LEAKS, PROGRAMS
    runner = Runner(args.folder, args.seconds)
    done = earlier(runner, args.after)
    only = args.only.split(",") if args.only else None

    def wanted(rows):
        return [r for r in rows if r["name"] not in done
                and (not only or r["workload"] in only)]

    free = [spec(name + ("__exp" if conf else ""), name, conf)
            for conf in CONFS.values() for name in PROGRAMS]
    free[len(PROGRAMS):0] = [spec(f.__name__, f.__name__, "") for f in LEAKS]
    left = []
    if "free" in args.parts:
        left += runner.all_of(wanted(free), args.width)
    if "lim" in args.parts:
        left += runner.all_of(wanted(bounded(runner, "lim", "process")), args.width)
    if "dev" in args.parts:
        left += runner.full_device(wanted(bounded(runner, "dev", "device")))
    runner.close(left)


def confirm(args):
    runner = Runner(args.folder, args.seconds)
    with open(args.jobs, encoding="utf-8") as file:
        jobs = json.load(file)
    rows = [spec(f"confirm{number:02}_{job['program']}", job["program"], job["conf"],
                 job.get("bound", "none"), int(job.get("bytes") or 0)) | {"job": job}
            for number, job in enumerate(jobs)]
    left = runner.all_of([r for r in rows if r["bound"] != "device"], args.width)
    left += runner.full_device([r for r in rows if r["bound"] == "device"])
    runner.close(left)


def check(args):
    """The programs themselves, without a GPU."""
    from truth_programs import Job
    for name in args.names or every():
        began = time.monotonic()
        count = sum(1 for _ in every()[name](Job("cpu", 2)))
        print(f"{name}: {count} steps, {time.monotonic() - began:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for act, first in ((record, "folder"), (confirm, "jobs"), (check, "names")):
        verb = verbs.add_parser(act.__name__)
        verb.set_defaults(act=act)
        verb.add_argument(first, nargs="*" if act is check else None)
        if act is confirm:
            verb.add_argument("folder")
        verb.add_argument("--seconds", type=float, default=540)
        verb.add_argument("--width", type=int, default=6)
        verb.add_argument("--only")
        verb.add_argument("--parts", default="free,lim,dev")
        verb.add_argument("--after")
    args = parser.parse_args()
    args.act(args)


if __name__ == "__main__":
    main()
