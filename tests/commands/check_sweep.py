#!/usr/bin/python3
"""check_sweep.py: checks that a sweep writes the same bytes however it is run.

One grid of small traces is run with one thread and with two, in shards that are
merged in any order, and by twenty sweeps in a row that are killed (SIGKILL) at
random moments and resumed. The result file must be the same each time, and no
finished cell may run again. Its numbers must be those of `replay`. Then the
check covers failures: two writers, a full disk, a signal, a damaged chunk or
shard, little memory.
Environment: FRAGSIM (default build/fragsim).
usage: check_sweep.py [SEED]
"""
import csv
import fcntl
import glob
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SANITIZED, attempt, need

try:
    import h5py
except ImportError:
    h5py = None

# Each sweep is killed so often; with sanitizers a run takes several times as long.
KILLS, MANY, CHUNK = 4 if SANITIZED else 10, 5000, 1000
GRID = ["-p", "torch", "-p", "best_fit:segment=5MiB", "-p", "best_fit:segment=10MiB",
        "-p", "best_fit:segment=20MiB", "-p", "cuda_async", "-c", "inf,1.2x,0.7x"]
DONE, NO, USE, INPUT, FILES = 0, 1, 2, 3, 4
SPACE = 100 << 20


def write_trace(path, seed, events=1500):
    """Random traffic of a few hundred live blocks."""
    rng, live, lines = random.Random(seed), [], ["op,id,bytes,stream"]
    for number in range(events):
        if len(live) > 200 or (live and rng.random() < 0.45):
            lines.append(f"free,{live.pop(rng.randrange(len(live)))},0,0")
        else:
            live.append(number)
            size = int(2 ** rng.uniform(4, 24))
            lines.append(f"alloc,{number},{size},{rng.randrange(2)}")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def expect(done, code, *words):
    assert done.returncode == code, (done.args, done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    return done


def same_runs(one, other):
    """Every table of every run, in any order of runs."""
    def tables(path):
        found = {}
        with h5py.File(path) as file:
            for run in file["runs"].values():
                # NaN (unlimited) does not equal itself; its text does.
                key = run.attrs["trace"], str(run.attrs["capacity_bytes"])
                found[key] = {
                    f"{group}/{name}": data[:].tolist()
                    for group in ("series", "oom", "segments")
                    for name, data in run[group].items()}
        return found

    first, second = tables(one), tables(other)
    assert len(first) == 4 and first == second
    assert any(run["oom/event"] for run in first.values())


class Sweeps:
    def __init__(self, folder):
        self.folder = folder
        self.traces = [os.path.join(folder, f"t{i}.csv") for i in range(4)]
        for i, path in enumerate(self.traces):
            write_trace(path, i)
        self.tiny = [os.path.join(folder, f"tiny{i}.csv") for i in range(4)]
        for i, path in enumerate(self.tiny):
            write_trace(path, i, 60)
        self.count = 0
        self.wanted = None

    def out(self):
        self.count += 1
        return os.path.join(self.folder, f"out{self.count}.h5")

    def args(self, out, *more):
        return ["sweep", *self.traces, *GRID, "-o", out, *more]

    def many(self, out, traces, *more):
        """MANY cells of some tiny traces, or of the others."""
        traces = self.tiny[:traces] if traces else self.traces
        sizes = ",".join(f"{i + 1}MiB" for i in range(MANY // len(traces)))
        return ["sweep", *traces, "-p", "best_fit", "-c", sizes, "-o", out,
                *more]

    def same(self, out, wanted=None):
        assert read(out) == (wanted or self.wanted), f"{out}: other bytes"
        assert not os.path.exists(out + ".part"), "the folder was left"

    # -- the same bytes ------------------------------------------------------

    def threads(self):
        out = self.out()
        start = time.monotonic()
        expect(attempt(*self.args(out, "-j1")), DONE, "60 cells")
        self.seconds = time.monotonic() - start
        self.wanted = read(out)
        for jobs in ("-j2", "-j7"):
            out = self.out()
            expect(attempt(*self.args(out, jobs)), DONE)
            self.same(out)

    def numbers(self):
        """Compares with `replay`, which uses other code."""
        rows = [{}, {}]
        policies = ["torch", "cuda_async"] + [
            f"best_fit:segment={n}MiB" for n in (5, 10, 20)]
        done = expect(attempt("replay", *self.traces, "-q", "--csv", "-", "-c",
                           "inf,1.2x,0.7x",
                           *[w for p in policies for w in ("-p", p)]), DONE)
        swept = expect(attempt(*self.args(self.out(), "-q", "--csv", "-")), DONE)
        for table, text in zip(rows, (done.stdout, swept.stdout)):
            for row in csv.DictReader(io.StringIO(text)):
                row.pop("ns_per_event")
                table[row["trace"], row["policy"], row["capacity_bytes"]] = row
        assert len(rows[0]) == 60 and rows[0] == rows[1]
        twice = expect(attempt("sweep", self.traces[0], "-q", "-p", "torch", "-p",
                            "torch", "-c", "inf,inf", "--csv", "-", "-o",
                            self.out()), DONE)
        assert twice.stdout.count("\n") == 2, twice.stdout

    def shards(self, rng):
        parts = []
        for i in range(1, 8):
            parts.append(self.out())
            share = 60 * i // 7 - 60 * (i - 1) // 7
            expect(attempt(*self.args(parts[-1], "--shard", f"{i}/7")), DONE,
                   f"{share} cells, 0 of them")
        listed = [expect(attempt(*self.args("x", "--list", "--shard", f"{i}/7")),
                         DONE).stdout for i in range(1, 8)]
        whole = expect(attempt(*self.args("x", "--list")), DONE).stdout
        assert "".join(listed) == whole and whole.count("\n") == 60
        first, numbered = None, list(parts)
        for _ in range(3):
            rng.shuffle(parts)
            out = self.out()
            expect(attempt("merge", out, *parts), DONE)
            self.same(out)
            first = first or out
        # Merging again, with one part twice, and onto itself.
        out = self.out()
        expect(attempt("merge", out, first, parts[0], first, parts[1]), DONE)
        self.same(out)
        expect(attempt("merge", out, out), FILES, "exists")
        expect(attempt("merge", "-f", out, out, *parts[:3]), DONE)
        self.same(out)
        self.parts = parts
        self.some_shards(numbered)

    def some_shards(self, parts):
        """A file of some shards says so, and is not the whole sweep, until the
        others are merged into it. Shards of another number count for
        themselves."""
        half, out = self.out(), self.out()
        expect(attempt(*self.args(half, "--shard", "1/2")), DONE)
        expect(attempt("merge", out, *parts[:6]), NO,
               "only part 1, 2, 3, 4, 5, 6 of 7 of fragsim sweep ")
        expect(attempt(*self.args(out, "--resume")), FILES, "part of this one")
        expect(attempt("merge", "-f", out, out, half), NO, "only part 1 of 2 of",
               "only part 1, 2, 3, 4, 5, 6 of 7 of")
        expect(attempt(*self.args(parts[0], "--resume", "--shard", "1/7")), DONE,
               "is complete")
        expect(attempt(*self.args(parts[0], "--resume")), FILES)
        expect(attempt("merge", "-f", out, parts[6], out), DONE)
        self.same(out)
        expect(attempt(*self.args(out, "--resume")), DONE, "is complete")
        # The parts of another sweep do not complete this one.
        other = self.out()
        expect(attempt("sweep", self.traces[0], "-c", "inf,0.5x", "-o", other,
                    "--shard", "2/2"), DONE)
        expect(attempt("merge", "-f", out, half, other), NO, "part 1 of 2 of",
               "part 2 of 2 of")

    def details(self):
        """Series, OOMs and segments also pass through chunks and merge."""
        whole, parts = self.out(), [self.out(), self.out()]
        args = ["sweep", *self.traces[:2], "-p", "torch", "-c", "inf,0.5x",
                "--points", "100"]
        expect(attempt(*args, "-o", whole), DONE)
        for i, part in enumerate(parts):
            expect(attempt(*args, "-o", part, "--shard", f"{i + 1}/2"), DONE)
        merged = self.out()
        expect(attempt("merge", merged, *parts), DONE)
        assert read(merged) == read(whole)
        resumed, gone = self.out(), os.path.join(self.folder, "gone.csv")
        expect(attempt(*args, gone, "-o", resumed), FILES, "gone.csv")
        expect(attempt(*args, "-o", resumed, "--resume"), DONE,
               "4 cells, 4 of them")
        self.same(resumed, read(whole))
        # What replay writes of the same is the same but for who made it.
        other = self.out()
        expect(attempt("replay", *self.traces[:2], "-q", "-o", other, "-c",
                    "inf,0.5x", "--points", "100"), DONE)
        if h5py:
            same_runs(whole, other)

    def needs(self):
        """--need is what fit finds, in the rows without a bound."""
        args = ["-p", "torch", "-p", "best_fit"]
        for kind, option in (("capacity", "-c"), ("limit", "--process-limit")):
            done = expect(attempt("sweep", self.traces[0], *args, option,
                               "inf,0.9x", "--need", kind, "-o", self.out(),
                               "--csv", "-"), DONE)
            rows = list(csv.DictReader(io.StringIO(done.stdout)))
            wanted = json.loads(expect(attempt(
                "fit", self.traces[0], *args, option, "inf", "--json", "-"),
                DONE).stdout)["results"]
            wanted = {row["policy"]: str(row["need_bytes"]) for row in wanted}
            assert len(rows) == 4 and all(
                row["need_bytes"] == ("" if row["capacity_bytes"] or
                                      row["process_limit_bytes"]
                                      else wanted[row["policy"]])
                for row in rows), (rows, wanted)
        done = expect(attempt("sweep", self.traces[0], "-o", self.out(), "--csv",
                           "-"), DONE)
        row, = csv.DictReader(io.StringIO(done.stdout))
        assert row["need_bytes"] == "", row
        expect(attempt("sweep", self.traces[0], "-c", "24GiB", "--need",
                    "capacity", "-o", self.out()), USE, "add -c inf")
        one, both = [], self.out()
        for i in (1, 2):
            one.append(self.out())
            expect(attempt("sweep", *self.traces[:2], "--need", "capacity",
                        "--shard", f"{i}/2", "-o", one[-1]), DONE)
        expect(attempt("merge", both, *one), DONE)
        whole = self.out()
        expect(attempt("sweep", *self.traces[:2], "--need", "capacity", "-o",
                    whole), DONE)
        assert read(both) == read(whole)

    def replays(self):
        """Two files of one run differ in its wall time, so they may be merged
        in either order."""
        files = [self.out(), self.out(), self.out()]
        untimed = dict(os.environ, SOURCE_DATE_EPOCH="0")
        for file in files:
            expect(attempt("replay", self.traces[0], "-q", "-o", file,
                        env=untimed if file == files[1] else None), DONE)
        merged = [self.out(), self.out()]
        expect(attempt("merge", merged[0], *files), DONE)
        expect(attempt("merge", merged[1], *reversed(files)), DONE)
        assert read(merged[0]) == read(merged[1])

    def kills(self, rng, traces):
        """A sweep is killed and resumed until it finishes; then another one
        begins."""
        out, kept, kills, finished = self.out(), 0, 0, 0
        start = time.monotonic()
        expect(attempt(*self.many(out, traces, "-j2")), DONE,
               f"{MANY} cells, 0 of them")
        seconds, wanted = time.monotonic() - start, read(out)
        os.remove(out)
        while kills < KILLS or not finished:
            with subprocess.Popen([FRAGSIM, *self.many(out, traces, "-j2",
                                                       "--resume")],
                                  stderr=subprocess.PIPE, text=True) as run:
                try:
                    limit = rng.uniform(0.05, 0.9) * seconds
                    run.wait(limit if kills < KILLS else None)
                except subprocess.TimeoutExpired:
                    run.send_signal(signal.SIGKILL)
                    kills += 1
                words = run.stderr.read()
            if run.returncode == DONE:
                found = int(re.search(r"(\d+) of them found", words)[1])
                assert found >= kept, (found, kept, words)
                self.same(out, wanted)
                os.remove(out)
                kept, finished = 0, finished + 1
                continue
            assert run.returncode == -signal.SIGKILL, words
            if os.path.exists(out) and not os.path.exists(out + ".part"):
                self.same(out, wanted)  # killed when all was done
                os.remove(out)
                kept = 0
                continue
            if os.path.exists(out):
                continue  # the chunks were being removed
            now = CHUNK * len(self.chunks(out))
            assert now >= kept, (now, kept)
            kept = now
        print(f"{kills} kills, {finished} sweeps finished")

    def chunks(self, out):
        return sorted(glob.glob(out + ".part/" + "[0-9]" * 8 + ".h5"))

    # -- what can go wrong ---------------------------------------------------

    def outputs(self):
        out = self.out()
        expect(attempt(*self.args(out)), DONE)
        expect(attempt(*self.args(out)), FILES, "exists")
        expect(attempt(*self.args(out, "--resume")), DONE, "is complete")
        for text in "-", self.out():  # no rows are made again for them
            done = expect(attempt(*self.args(out, "--resume", "--json", text)),
                          FILES, "is complete", "-f")
            assert not done.stdout and not os.path.exists(text)
        with open(text, "w", encoding="ascii"):
            expect(attempt(*self.args(out, "--resume", "--json", text)), DONE,
                   "is complete")
        expect(attempt("sweep", self.traces[0], "-o", out, "--resume"), FILES,
               "another command")
        expect(attempt(*self.args(out, "-f")), DONE)
        self.same(out)
        expect(attempt("sweep", "-", "-o", out, "-f"), USE, "stdin")
        expect(attempt("sweep", "-o", out, "-f"), USE, "expected a trace")
        expect(attempt("sweep", self.traces[0]), USE, "-o FILE")
        expect(attempt(*self.args("/nowhere/x.h5")), FILES, "/nowhere/x.h5")

    def damaged(self):
        """A damaged chunk is made again; a foreign one is refused."""
        out = self.out()
        bad = self.traces + [os.path.join(self.folder, "no.csv")]
        expect(attempt("sweep", *bad, *GRID, "-o", out), FILES, "no.csv",
               "1 trace or cell failed")
        chunk, = self.chunks(out)
        whole = read(chunk)
        shutil.rmtree(out + ".part")
        expect(attempt("sweep", *bad, *GRID, "-o", out, "--resume"), FILES,
               "another command")
        os.remove(out)

        def put(data):
            os.makedirs(out + ".part", exist_ok=True)
            with open(chunk, "wb") as file:
                file.write(data)

        for data in (b"not ours\n", whole[:-100], whole[:len(whole) // 2],
                     whole[:3000] + bytes(200) + whole[3200:]):
            put(data)
            with open(chunk + ".partial-12345678", "wb"):  # of a kill
                pass
            expect(attempt(*self.args(out, "--resume")), DONE,
                   "the cells of this file run again", "60 cells, 0 of them")
            self.same(out)
            os.remove(out)
        put(whole)
        expect(attempt(*self.args(out)), FILES, "--resume continues it")
        expect(attempt(*self.args(out, "--resume", "--check")), USE,
               "must not be mixed")
        if h5py:
            with h5py.File(chunk, "r+") as file:
                file.attrs["version"] = "0.0.1"
            expect(attempt(*self.args(out, "--resume")), USE, "0.0.1",
                   "must not be mixed")
        put(whole)
        expect(attempt("sweep", self.traces[0], "-p", "first_fit", "-o", out,
                    "--resume"), DONE, "1 cell, 0 of them")
        os.remove(out)
        put(whole)
        expect(attempt(*self.args(out, "-f")), DONE, "60 cells, 0 of them")
        self.same(out)
        os.remove(out)
        with open(out + ".part", "wb") as file:
            file.write(b"not ours\n")
        expect(attempt(*self.args(out, "--resume")), INPUT, "something else")
        assert read(out + ".part") == b"not ours\n"
        os.remove(out + ".part")

    def texts(self):
        """The notes of cells also come from chunks."""
        gone, texts = os.path.join(self.folder, "gone.csv"), []
        for first in (self.traces, [*self.traces[:2], gone]):
            out = self.out()
            expect(attempt("sweep", *first, *GRID, "-q", "-o", out),
                   DONE if first is self.traces else FILES)
            expect(attempt(*self.args(out, "-q", "-f", "--resume", "--json",
                                      out + ".json")), DONE)
            texts.append(read(out + ".json"))
        assert b"cell_notes" in texts[0] and texts[0] == texts[1]

    def two_writers(self):
        out = self.out()
        os.mkdir(out + ".part")
        with open(out + ".part/lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            expect(attempt(*self.args(out, "--resume")), FILES,
                   "another process")
            expect(attempt(*self.args(out, "-f")), FILES, "another process")
        expect(attempt(*self.args(out)), DONE)
        self.same(out)

    def signals(self):
        wanted = self.out()
        expect(attempt(*self.many(wanted, 0)), DONE)
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.out()
            with subprocess.Popen([FRAGSIM, *self.many(out, 0, "-j1")],
                                  stderr=subprocess.PIPE, text=True) as run:
                while not self.chunks(out) and run.poll() is None:
                    time.sleep(0.001)
                run.send_signal(number)
                words = run.stderr.read()
            assert run.returncode == 130, (run.returncode, words)
            kept = int(re.search(rf"(\d+) of {MANY} cells are kept", words)[1])
            assert CHUNK <= kept <= MANY, words
            assert not os.path.exists(out)
            expect(attempt(*self.many(out, 0, "--resume")), DONE,
                   f"{kept} of them found")
            self.same(out, read(wanted))

    def full_disk(self):
        """Files are limited, once below the size of a chunk and once below that
        of the output; then the disk has room again."""
        wanted, out = self.out(), self.out()
        expect(attempt(*self.many(wanted, 1)), DONE)
        with open(out, "wb") as file:
            file.write(b"as it was\n")
        chunk = os.path.getsize(wanted) * CHUNK // MANY
        for limit, kept in ((chunk // 2, 0), (2 * chunk, MANY)):
            def small():
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            expect(attempt(*self.many(out, 1, "-f"), preexec_fn=small), FILES,
                   "File too large", f"{kept} of {MANY} cells are kept in")
            assert read(out) == b"as it was\n"
        os.remove(out)
        expect(attempt(*self.many(out, 1, "--resume")), DONE,
               f"{MANY} of them found")
        self.same(out, read(wanted))

    def faults(self):
        """An unreadable trace is left out and named, and can be repaired later.
        """
        out, broken = self.out(), os.path.join(self.folder, "broken.csv")
        with open(broken, "w", encoding="ascii") as file:
            file.write("op,id,bytes,stream\nalloc,1,-5,0\n")
        args = ["sweep", broken, self.traces[0], "-o", out, "-p", "torch",
                "-p", "torch@recorded", "-c", "inf"]
        expect(attempt(*args), INPUT, "broken.csv:2", "with recorded settings",
               "2 traces or cells failed")
        write_trace(broken, 9)
        expect(attempt(*args, "--resume"), USE, "2 traces or cells failed")

    def a_fault_is_named(self):
        """The result names a trace that fails, with every output."""
        out = self.out()
        bad = [*self.traces, os.path.join(self.folder, "z.csv")]
        with open(bad[-1], "w", encoding="ascii") as file:
            file.write("op,id,bytes,stream\nalloc,1,-5,0\n")
        expect(attempt("sweep", *bad, *GRID, "-o", out, "-j1", "--csv",
                    out + ".csv"), INPUT, "z.csv:2",
               " cells, the first one ", "1 trace or cell failed")
        if h5py:
            with h5py.File(out) as file:
                assert b"z.csv:2" in file.attrs["missing"], "no fault"

    def moved_traces(self):
        """A trace is identified by its contents; a changed trace is a different
        one."""
        out, fresh = self.out(), self.out()
        moved = [path[:-4] + "_moved.csv" for path in self.traces[:3]]
        gone = os.path.join(self.folder, "gone.csv")
        expect(attempt("sweep", *self.traces[:3], gone, "-o", out), FILES)
        for path, to in zip(self.traces, moved):
            shutil.copy(path, to)
        write_trace(moved[2], 77)
        done = expect(attempt("sweep", *moved, "-o", out, "--resume"), DONE)
        assert "3 cells, 2 of them found" in done.stderr, done.stderr
        expect(attempt("sweep", *moved, "-o", fresh), DONE)
        assert read(out) == read(fresh)

    def forged_parts(self):
        """Files that contradict each other, or are of another version."""
        other, out = self.out(), self.out()
        shutil.copy(self.parts[0], other)
        with h5py.File(other, "r+") as file:
            table = file["summary"]
            rows = table[:]
            rows["peak_reserved_bytes"][0] += 512
            table[:] = rows
        expect(attempt("merge", out, *self.parts, other), INPUT,
               "different results")
        with h5py.File(other, "r+") as file:
            file.attrs["version"] = "0.0.1"
        expect(attempt("merge", out, *self.parts, other), INPUT, "0.0.1")

    def bad_parts(self):
        broken = self.out()
        with open(broken, "wb") as file:
            file.write(read(self.parts[0])[:-1000])
        expect(attempt("merge", self.out(), *self.parts, broken), INPUT, broken)
        other = self.out()
        expect(attempt("sweep", self.traces[0], "-o", other, "--stop-at-oom"),
               DONE)
        expect(attempt("merge", self.out(), self.parts[0], other), INPUT,
               "settings")
        missing = os.path.join(self.folder, "nothing.h5")
        expect(attempt("merge", self.out(), self.parts[0], missing), FILES,
               missing)
        expect(attempt("merge", "/nowhere/x.h5", self.parts[0]), FILES,
               "/nowhere/x.h5")
        with open(self.parts[1], "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            expect(attempt("merge", self.out(), *self.parts), FILES, "locked",
                   "HDF5_USE_FILE_LOCKING")

    def large(self):
        """Three traces of megabytes."""
        paths = [os.path.join(self.folder, f"large{i}.csv") for i in range(3)]
        for i, path in enumerate(paths):
            if not os.path.exists(path):
                write_trace(path, i, 300000)
        return paths

    def little_address_space(self):
        """If eight threads have no room for their stacks and heaps, fewer run.
        """
        if SANITIZED:
            return

        def small():
            resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))

        plain, held = self.out(), self.out()
        args = ["sweep", *self.large(), "-p", "size_class", "-p", "torch",
                "-j8"]
        expect(attempt(*args, "-o", plain), DONE)
        expect(attempt(*args, "-o", held, preexec_fn=small), DONE,
               "1 of 8 threads: the address space is limited to 100 MiB")
        assert read(held) == read(plain)
        for verb in ("fit", "tune"):
            expect(attempt(verb, self.traces[0], "-j8", preexec_fn=small), DONE,
                   f"fragsim {verb}: 1 of 8 threads")

    def in_a_group(self):
        """In a cgroup with room for one of three traces, all traces are swept.
        """
        group, limit = "/sys/fs/cgroup/memory/frag_sweep", "limit_in_bytes"
        if SANITIZED:
            return
        if not os.path.exists("/sys/fs/cgroup/memory"):
            group, limit = "/sys/fs/cgroup/frag_sweep", "max"
        group += str(os.getpid())
        try:
            os.mkdir(group)
        except OSError:
            print("without a cgroup of its own")
            return
        try:
            self.sweep_in(group, limit)
        finally:
            os.rmdir(group)

    def sweep_in(self, group, limit):
        def join():
            with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

        plain, held = self.out(), self.out()
        args = ["sweep", *self.large(), "-p", "size_class", "-p", "direct",
                "-j8"]
        expect(attempt(*args, "-o", plain), DONE)
        try:
            with open(f"{group}/memory.{limit}", "w", encoding="ascii") as file:
                file.write(str(56 << 20))
        except OSError:
            print("without a cgroup of memory")
            return
        expect(attempt(*args, "-o", held, preexec_fn=join), DONE)
        assert read(held) == read(plain)

    def run(self, seed):
        rng = random.Random(seed)
        self.threads()
        self.numbers()
        self.shards(rng)
        self.details()
        self.needs()
        self.replays()
        self.kills(rng, 1)
        self.kills(rng, 4)
        self.outputs()
        self.damaged()
        self.texts()
        self.two_writers()
        self.signals()
        self.full_disk()
        self.faults()
        self.a_fault_is_named()
        self.moved_traces()
        if h5py:
            self.forged_parts()
        self.bad_parts()
        self.little_address_space()
        self.in_a_group()


def main():
    need(FRAGSIM)
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    folder = tempfile.mkdtemp(prefix="frag_sweep_")
    try:
        Sweeps(folder).run(seed)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
