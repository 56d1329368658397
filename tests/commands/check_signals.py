#!/usr/bin/env python3
"""check_signals.py: checks that SIGTERM and SIGINT end a reader within a
second, in each input format: while a FIFO delivers a log that never ends, while
the FIFO stays open without more bytes, and before a program opened it for
writing. Checks that a command that reads a FIFO without a writer, or writes one
without a reader, ends by itself, and that a writer may be slow. Checks that no
signal that ends a command leaves a temporary file or folder, that a resumed
sweep removes those of a killed one, and that a trace file that becomes shorter
while it is replayed is named.

Environment: FRAGSIM (the tool).
"""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import long_logs
from harness import BUNDLED, FRAGSIM, SANITIZED, SMALL

ALLOWED = 1.0  # seconds from the signal to the end of the process
if SANITIZED:
    ALLOWED = 5.0  # a sanitizer looks for leaks at the end
INTERRUPTED = 130


def feed(path, form, endless):
    """Writes a log into the FIFO until nothing reads it."""
    try:
        with open(path, "wb", buffering=0) as fifo:
            for part in long_logs.parts(form, None if endless else 100,
                                        whole=False):
                fifo.write(part)
            while not endless:
                time.sleep(0.05)
                if feed.stop.is_set():
                    return
    except BrokenPipeError:
        pass


def seconds(path, number):
    """Seconds from the signal to the end of a reader, and its exit code."""
    run = subprocess.Popen([FRAGSIM, "info", path], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    time.sleep(0.3)
    code = run.poll()
    if code is not None:
        sys.exit(f"check_signals: {path}: the reader ended by itself with "
                 f"{code}: {run.stderr.read().decode()}")
    begin = time.monotonic()
    run.send_signal(number)
    try:
        code = run.wait(10)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
        code = None
    run.stderr.close()
    return time.monotonic() - begin, code


def check(folder, form, how, number):
    path = os.path.join(folder, f"{form}.{how}.{int(number)}")
    os.mkfifo(path)
    feed.stop = threading.Event()
    writer = threading.Thread(target=feed, daemon=True,
                              args=(path, form, how == "endless"))
    if how != "unopened":
        writer.start()
    took, code = seconds(path, number)
    feed.stop.set()
    if how != "unopened":
        writer.join(5)
    print(f"{form:14} {how:9} {signal.Signals(number).name}: {took:.3f} s, "
          f"exit code {code}")
    return took <= ALLOWED and code == INTERRUPTED


# Commands, and the words of their messages; {} is a FIFO that nobody opens.
ALONE = [(["info", "{}"], "writes into the pipe"),
         (["diff", "{}", SMALL], "writes into the pipe"),
         (["replay", SMALL, "--costs", "{}"], "writes into the pipe"),
         (["sweep", "--grid", "{}", "-o", "{}.h5"], "writes into the pipe"),
         (["replay", SMALL, "-q", "--csv", "{}"], "cannot write it"),
         (["report", "{}", "-o", "{}.html"], "found a pipe"),
         (["plot", "{}", "compare", "-o", "{}.svg"], "found a pipe"),
         (["merge", "{}.h5", "{}"], "found a pipe")]
SLOW = 12  # seconds until a writer that opened the FIFO writes; more than 10


def check_alone(folder):
    """The commands run at a time, so that their waits do."""
    runs, path = [], os.path.join(folder, "alone")
    for i, (words, expected) in enumerate(ALONE):
        os.mkfifo(f"{path}{i}")
        words = [w.format(f"{path}{i}") for w in words]
        runs.append((subprocess.Popen([FRAGSIM, *words], text=True,
                                      stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE),
                     words[0], expected))
    os.mkfifo(path + ".slow")
    slow = subprocess.Popen(
        ["bash", "-c", f'{{ sleep {SLOW}; cat "$2"; }} > "$3" & '
         f'"$1" replay "$3" & "$1" replay <(sleep {SLOW}; cat "$2"); wait',
         "-", FRAGSIM, SMALL, path + ".slow"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wrong = []
    for run, name, expected in runs:
        try:
            words = run.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            run.kill()
            words = run.communicate()[1] + "(no end)"
        print(f"a FIFO alone: {name}: {run.returncode}: {words.strip()}")
        if run.returncode != 4 or expected not in words:
            wrong.append(("alone", name))
    said = slow.communicate(timeout=60)[0]
    if said.count("1 run, 0 with an OOM") != 2:
        wrong.append(("slow", said))
    return wrong


DIES = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
GPT2 = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
WORKS = [["replay", GPT2, "-q", "-p", "torch", "-p", "buddy", "-p", "compact",
          "-p", "tlsf", "-c", "inf,0.9x,1.1x", "-o", "{}/replay.h5", "--csv",
          "{}/replay.csv"],
         ["triage", DIES, "-q", "-c", "4GiB", "-o", "{}/triage.html"],
         ["import", GPT2, "-q", "-e", "repeat:times=1000", "-o", "{}/trace.h5"]]
ENDINGS = ["HUP", "QUIT", "PIPE", "XCPU", "TERM", "INT", "USR1", "USR2", "ALRM"]


def wait_for(what, run):
    """Waits until what() is true or the run has ended; returns what()."""
    while not what() and run.poll() is None:
        time.sleep(0.002)
    return what()


def check_left(folder, words, number):
    """The names that are left after a signal during the work."""
    place = tempfile.mkdtemp(dir=folder)
    scratch = os.path.join(place, "tmp")
    os.mkdir(scratch)
    run = subprocess.Popen([FRAGSIM, *(w.format(place) for w in words)],
                           env={**os.environ, "TMPDIR": scratch},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: resource.setrlimit(
                               resource.RLIMIT_CORE, (0, 0)))
    wait_for(lambda: len(os.listdir(place) + os.listdir(scratch)) > 1, run)
    time.sleep(0.05)
    began = run.poll() is None
    run.send_signal(getattr(signal, "SIG" + number))
    run.wait(20)
    left = [name for name in os.listdir(place) + os.listdir(scratch)
            if name != "tmp" and "." not in name or ".partial" in name]
    return left or ([] if began else ["it ended before the signal"])


def check_endings(folder):
    wrong = [(words[0], number, left) for words in WORKS for number in ENDINGS
             for left in check_left(folder, words, number)]
    print(f"{len(WORKS) * len(ENDINGS)} signals during work, {len(wrong)} names "
          "left")
    return wrong


def check_resume(folder):
    """A killed sweep may leave anything; a stray name is not touched."""
    out = os.path.join(folder, "sweep.h5")
    dead = [out + ".partial-abcdefgh", out + ".partial-01234567",
            out.replace(".h5", ".csv") + ".partial-zzzzzzzz"]
    mine = [out + ".partial-other", out + "x.partial-abcdefgh"]
    for path in dead + mine:
        with open(path, "w"):
            pass
    subprocess.run([FRAGSIM, "sweep", SMALL, "-q", "--resume", "-o", out,
                    "--csv", out.replace(".h5", ".csv")], check=True)
    wrong = [path for path in dead if os.path.exists(path)]
    return wrong + [path for path in mine if not os.path.exists(path)]


def check_shorter(folder):
    """The exit code and the message after the file was cut during the run."""
    path = os.path.join(folder, "cut.h5")
    subprocess.run([FRAGSIM, "import", "-q", GPT2, "-e", "repeat:times=200", "-o", path],
                   check=True)
    run = subprocess.Popen([FRAGSIM, "replay", path, "-p", "best_fit", "-q",
                            "-o", path + ".out"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    # The partial file is made when the trace is open.
    wait_for(lambda: any("out.partial" in n for n in os.listdir(folder)), run)
    time.sleep(0.05)
    os.truncate(path, 8192)
    words = run.communicate(timeout=60)[1]
    print(f"a trace file that becomes shorter: {run.returncode}: {words.strip()}")
    left = [name for name in os.listdir(folder) if ".out" in name]
    fine = run.returncode == 4 and path + ": cannot read it" in words
    return left if fine else [("shorter", run.returncode, words)]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for form in long_logs.FORMATS:
            for how, number in [("endless", signal.SIGTERM),
                                ("silent", signal.SIGINT)]:
                if not check(folder, form, how, number):
                    wrong.append((form, how))
        if not check(folder, "csv", "unopened", signal.SIGTERM):
            wrong.append("unopened")
        wrong += check_alone(folder)
        wrong += check_endings(folder)
        wrong += check_resume(folder)
        wrong += check_shorter(folder)
    if wrong:
        sys.exit(f"check_signals: not ended within {ALLOWED} s, or not with "
                 f"exit code {INTERRUPTED}: {wrong}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
