#!/usr/bin/python3
"""check_absurd.py: every policy on requests that no device can serve, on
capacities that no device has, in the search for the least capacity too, and on
as many streams as a trace can have. The memory of the host must not grow with a
number in the input: each run has a limit of memory and of processor time, and
ends with a result (a simulated out-of-memory is one) or with a refusal.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SANITIZED, need, share

# A sanitizer needs memory and time of its own.
SLACK = 4 if SANITIZED else 1
KIB_MAX, SECONDS_MAX = SLACK * (200 << 10), SLACK * 2
FIT_SECONDS_MAX = 4 * SECONDS_MAX  # a fit is several replays
LIMIT = max(20, FIT_SECONDS_MAX)  # processor seconds at which a run is killed
CODES = {0, 2, 3}  # a result, wrong use, a malformed input: not "no memory"
SIZES = share((1 << 40, 64 << 40, 2**62), 2)
CAPACITIES = share(("inf", "1TiB", "4EiB"), 2)
EXTRA = ("torch:expandable_segments:True",)
# A trace of one small block for each stream, freed at once. plan_online has a
# whole allocator for each stream, which searches all of them after a refusal.
# A sanitizer keeps the freed tables of all streams for a while.
STREAMS, STREAMS_KIB, STREAMS_SECONDS = \
    (20000, 100 << 10, 2) if SLACK == 1 else (1000, 4 << 20, 19)
BUSY = {"plan_online": 4}


def usage(words):
    """(exit code, KiB at most, processor seconds, stderr)."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=errors,
                                 preexec_fn=lambda: resource.setrlimit(
                                     resource.RLIMIT_CPU, (LIMIT, LIMIT)))
        _, status, used = os.wait4(child.pid, 0)
        errors.seek(0)
        return (os.waitstatus_to_exitcode(status), used.ru_maxrss,
                used.ru_utime + used.ru_stime, errors.read())


def first_bound(path):
    """The least capacity that serves the trace under expandable segments. They
    fail on the device that a run without a bound reports."""
    done = subprocess.run([FRAGSIM, "fit", "-q", path, "-p", *EXTRA, "--json",
                           "-"], check=True, capture_output=True)
    return json.loads(done.stdout)["results"][0]["fit_bytes"] or 0


def main():
    need(FRAGSIM)
    listed = json.loads(subprocess.run(
        [FRAGSIM, "policies", "--json", "-"], check=True,
        capture_output=True).stdout)["policies"]
    policies = [row["name"] for row in listed] + list(EXTRA)
    assert len(policies) > 20, policies
    faults, runs, worst = 0, 0, [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = os.path.join(folder, f"{size}.csv")
            with open(path, "w", encoding="ascii") as out:
                out.write("op,id,bytes\nalloc,0,1000\n"
                          f"alloc,1,{size}\nfree,0,\nfree,1,\n")
            fits = [("fit",)] if size == 1 << 40 else []
            for policy in policies:
                for more in [("replay", "-c", c) for c in CAPACITIES] + fits:
                    code, kib, seconds, words = usage(
                        [FRAGSIM, *more, "-q", path, "-p", policy])
                    runs += 1
                    worst = [max(worst[0], kib), max(worst[1], seconds)]
                    most = FIT_SECONDS_MAX if more in fits else SECONDS_MAX
                    if code not in CODES or kib > KIB_MAX or \
                            seconds > most or (code and not words):
                        faults += 1
                        print(f"{policy}, {size} bytes, {' '.join(more)}: exit "
                              f"code {code}, {kib} KiB, {seconds:.1f} s: "
                              f"{words[:200]!r}")
            if fits:
                faults += first_bound(path) - size not in range(1 << 30)
        path = os.path.join(folder, "streams.csv")
        with open(path, "w", encoding="ascii") as out:
            out.write("op,id,bytes,stream\n" + "".join(
                f"alloc,{i},1000,{i}\nfree,{i},,{i}\n" * (1 + (i < 99))
                for i in range(STREAMS)))
        found = json.loads(subprocess.run(
            [FRAGSIM, "info", "-q", "--json", "-", path], check=True,
            capture_output=True).stdout)["results"][0]["devices"][0]
        faults += found["num_streams"] != STREAMS
        for policy in policies:
            code, kib, seconds, words = usage(
                [FRAGSIM, "replay", "-q", path, "-p", policy])
            runs += 1
            more = BUSY.get(policy, 1)
            if code or kib > more * STREAMS_KIB or \
                    seconds > more * STREAMS_SECONDS:
                faults += 1
                print(f"{policy}, {STREAMS} streams: exit code {code}, {kib} "
                      f"KiB, {seconds:.1f} s: {words[:200]!r}")
    print(f"{len(policies)} policies, {runs} runs, at most {worst[0] >> 10} "
          f"MiB and {worst[1]:.2f} s, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
