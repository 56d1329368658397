#!/usr/bin/env python3
"""check_threads.py: checks that answers do not depend on the number of threads.

Runs fit, tune and sweep on small bundled recordings with 1, 2 and 7 threads and
compares what they write. In a build with ThreadSanitizer (preset tsan), a data race
fails the command.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM

POLICIES = ["-p", "torch", "-p", "best_fit", "-p", "size_class"]
COMMANDS = [
    ["fit", "lstm_varlen__cap_below.pickle.xz", *POLICIES, "-p", "plan"],
    ["fit", "multistream.pickle.xz", *POLICIES, "--json", "-"],
    ["tune", "gpt2_train.pickle.xz"],
    ["tune", "late_start.pickle.xz", "--capacity", "6GiB", "--json", "-"],
    ["sweep", "leak.pickle.xz", "multistream.pickle.xz", *POLICIES,
     "-c", "0.9x,1.1x,inf", "-f", "-o", "out.h5"],
]


def run(command, threads, folder):
    """The status, the text and the result file."""
    verb, *words = command
    words = [os.path.join(BUNDLED, word) if ".pickle" in word else word
             for word in words]
    done = subprocess.run([FRAGSIM, verb, "-q", "-j", threads, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1"}, check=False)
    out = os.path.join(folder, "out.h5")
    held = None
    if "out.h5" in words and os.path.exists(out):
        with open(out, "rb") as file:
            held = file.read()
    return done.returncode, done.stdout, done.stderr, held


def without_words(answer):
    """The JSON names the command line, which holds the number of threads."""
    status, text, errors, held = answer
    lines = [line for line in text.splitlines() if b'"command"' not in line]
    return status, lines, errors, held


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            first, *others = (run(command, n, folder) for n in "127")
            if first[0] not in (0, 1) or not (first[1] or first[3]):
                sys.exit(f"check_threads: {command}: {first[:3]}")
            for other in others:
                if without_words(other) != without_words(first):
                    print(f"check_threads: {command}: answers differ:",
                          other[0], other[1].decode(), other[2].decode(),
                          "with one thread:", first[0], first[1].decode(),
                          file=sys.stderr)
                    failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
