#!/usr/bin/env python3
"""check_progress.py: checks what a command shows on a terminal while a policy
prepares, and that Ctrl-C ends it at once.

`plan` with an effort of hours runs under replay, fit and plot, on a
pseudo-terminal. The progress line must name the run (or the figure) and say
"preparing" for a second; after Ctrl-C the command must end with exit code 130
and leave no output. Without a terminal nothing but the error may be written.
Environment: FRAGSIM (default build/fragsim).
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import terminal
from harness import BUNDLED, FRAGSIM

TRACE = os.path.join(BUNDLED, "multistream.pickle.xz")
LONG = "plan:effort=1000000000000"
PATIENCE = 60  # seconds; the machine may be busy
LINE = re.compile(r"(?:multistream plan\S*|map) .*?\[[#.]{24}\] +(\d+)%  "
                  r"preparing, (\d+) s")


def fail(words):
    print(f"check_progress: {words}")
    sys.exit(1)


def watch(command, output):
    """Runs the command on a terminal until it has prepared for a second, then
    sends Ctrl-C. Returns the exit code, the text and the seconds to the end."""
    master, slave = pty.openpty()
    text, asked = "", None
    with subprocess.Popen(command, stdout=output, stderr=slave,
                          env=terminal.environment()) as tool:
        os.close(slave)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    text += os.read(master, 65536).decode()
                except OSError:  # the other end is closed
                    break
            seconds = [int(s) for _, s in LINE.findall(text)]
            if not asked and seconds and seconds[-1] >= 1:
                tool.send_signal(signal.SIGINT)
                asked = time.monotonic()
        took = time.monotonic() - asked if asked else None
        tool.kill()
        tool.wait()
    os.close(master)
    return tool.returncode, text, took


def on_a_terminal(command):
    with tempfile.TemporaryFile() as output:
        code, text, took = watch(command, output)
        output.seek(0)
        printed = output.read()
    if took is None:
        fail(f"{command[1]}: no line says for a second that it prepares: "
             f"{text[-300:]!r}")
    if code != 130 or took > 10 or printed:
        fail(f"{command[1]}: exit code {code} {took:.1f} s after Ctrl-C, wrote "
             f"{printed!r}")
    if not re.search(r"(^|\n|\x1b\[K)fragsim \w+: interrupted", text):
        fail(f"{command[1]}: expected the word interrupted: {text[-300:]!r}")


def elsewhere(command):
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=terminal.environment()) as tool:
        time.sleep(2)
        tool.send_signal(signal.SIGINT)
        out, err = tool.communicate(timeout=PATIENCE)
    if tool.returncode != 130 or out or b"\x1b" in err or b"preparing" in err:
        fail(f"{command[1]} without a terminal: exit code {tool.returncode}, "
             f"{out!r}, {err!r}")


def main():
    if not terminal.has_terminals():
        print("check_progress: no pseudo-terminal; skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        figure = os.path.join(folder, "map.html")
        for words in (["replay", TRACE], ["fit", TRACE],
                      ["plot", TRACE, "map", "-o", figure]):
            command = [FRAGSIM, *words, "-p", LONG]
            on_a_terminal(command)
            elsewhere(command)
            if os.path.exists(figure):
                fail("plot left its file")
    print("a policy that prepares shows it, and Ctrl-C ends it")


main()
