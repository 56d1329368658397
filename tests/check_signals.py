#!/usr/bin/env python3
"""check_signals.py: checks that SIGTERM and SIGINT end a reader within a
second, in each input format: while a FIFO delivers a log that never ends, while
the FIFO stays open without more bytes, and before a program opened it for
writing. Checks that a command that reads a FIFO without a writer, or writes one
without a reader, ends by itself, and that a writer may be slow.

Environment: FRAGSIM (the tool).
"""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import long_logs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
ALLOWED = 1.0  # seconds from the signal to the end of the process
if "sanitize" in os.environ.get("FRAG_INSTALL_CFLAGS", ""):
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
SMALL = os.path.join(ROOT, "tests", "cli", "small.csv")
ALONE = [(["info", "{}"], "writes into the pipe"),
         (["diff", "{}", SMALL], "writes into the pipe"),
         (["replay", SMALL, "--costs", "{}"], "writes into the pipe"),
         (["check", SMALL, "--rules", "{}"], "writes into the pipe"),
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
    if wrong:
        sys.exit(f"check_signals: not ended within {ALLOWED} s, or not with "
                 f"exit code {INTERRUPTED}: {wrong}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
