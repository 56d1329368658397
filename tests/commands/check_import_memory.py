#!/usr/bin/env python3
"""check_import_memory.py: checks that an importer keeps the events of a log and
not its text.

Each format is read with PAIRS pairs of events and with four times as many. The
memory may grow by at most LIMIT bytes for each event: its columns and their
growth by doubling. Events of other kinds in a trace of torch.profiler must not
change the memory. usage: FRAGSIM=TOOL check_import_memory.py [PAIRS]
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import long_logs
from harness import FRAGSIM, SANITIZED

# Bytes for each event. These readers sort by time, so they keep all events.
LIMIT = {"static": 140, "kineto": 150}
USUAL = 60
SLACK = 1 << 20  # bytes that the allocator of the process may keep


def peak(form, pairs, others=0):
    """The most memory in bytes of the process that reads the log, and the
    bytes of the log."""
    run = subprocess.Popen([FRAGSIM, "info", "-"], stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL)
    size = sum(run.stdin.write(part)
               for part in long_logs.parts(form, pairs, others))
    run.stdin.close()
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        sys.exit(f"check_import_memory: {form}: exit code {run.returncode}")
    return used.ru_maxrss * 1024, size


def main():
    if SANITIZED:
        print("a sanitizer's own memory would be measured; skipped")
        return 77
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 25000
    wrong = []
    for form in long_logs.FORMATS:
        (short, text), (long, more) = peak(form, pairs), peak(form, 4 * pairs)
        each = (long - short) / (3 * pairs * 2)
        print(f"{form:14} {each:6.1f} bytes an event, text "
              f"{(more - text) / (3 * pairs * 2):6.1f}")
        if each > LIMIT.get(form, USUAL):
            wrong.append(form)
    without, with_others = peak("kineto", pairs), peak("kineto", pairs, 20)
    print(f"kineto with 20 other events for each pair: "
          f"{with_others[0] - without[0]:+} bytes of memory, "
          f"{with_others[1] - without[1]:+} of text")
    if with_others[0] > without[0] + SLACK:
        wrong.append("kineto with other events")
    if wrong:
        sys.exit(f"check_import_memory: memory grows with the text: {wrong}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
