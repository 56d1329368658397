#!/usr/bin/env python3
"""check_stream.py: `fragsim replay --stream` answers as a replay of the whole
input does.

Recordings and a generated trace are exported as CSV and piped into fragsim, with
and without --stream, for several policies and capacities. The table, the CSV,
the JSON and the result file must be the same, except for the command that the
last two contain. A recording that is repeated on the way must have the numbers
of the trace file that `import --repeat` writes. A stream that is cut, has
garbage in it or cannot be replayed in windows is refused, with its line, the
exit code, and no output.
Environment: FRAGSIM (default build/fragsim).
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, share

RECORDINGS = ("gpt2_train", "multistream", "late_start",
              "lstm_varlen__cap_tight_exp")
RUNS = share((
        "-p torch -p torch:expandable_segments:True -c inf,900MiB,400MiB",
        "-p size_class -p best_fit -p buddy -p rmm_binning -c inf,500MiB",
        "-p compact -p cuda_async --check -c 600MiB",
        "-p torch -p direct -c 300MiB --stop-at-oom"), 3)
# The first line of a stream is its header, so the second is event 0.
LONG = 70000  # lines, more than a window has events
REFUSED = (
    ("cut in a line", "op,id,bytes\nalloc,1,40", "-", 3,
     "-:2: expected the end of the line, found the end of the input"),
    ("garbage", "op,id,bytes\nalloc,1,4096\n\x01\x02junk\n", "-", 3,
     "-:3: expected alloc, free"),
    ("never allocated", "op,id,bytes\nalloc,1,4096\n" +
     "alloc,2,512\nfree,2,\n" * LONG + "free,7,\n", "-", 3,
     f"-:{2 * LONG + 3}: expected an id that is live, found id 7"),
    ("allocated twice", "op,id,bytes\nalloc,1,4096\nalloc,1,4096\n", "-", 3,
     "-:3: expected an id that is not live, found id 1"),
    ("late stream", "op,id,bytes,stream\nalloc,1,4096,8\n" +
     "alloc,2,512,8\nfree,2,,\n" * LONG + "alloc,3,512,7\n", "-", 3,
     f"-:{2 * LONG + 3}: expected a stream that is among the first"),
    ("no event", "op,id,bytes\n", "-", 3, "history"),
    # Said before the rest is read.
    ("other device", "op,id,bytes\n" + "alloc,2,512\nfree,2,\n" * LONG +
     "junk\n", "- --device 2", 2, "has no device 2; its devices are: 0"),
    ("future", "", "- -p torch -p plan", 2,
     "plan: it places blocks by the whole trace"),
    ("share", "", "- -c 24GiB,0.9x", 2, "found 0.9x, a share of the peak"),
    ("series", "", "- -o OUT.h5", 2, "expected --points 0 with --output"),
    ("two", "", "- -", 2, "--stream: expected one trace, found 2"),
    ("recording", "", os.path.join(BUNDLED, "leak.pickle.xz"), 2,
     "found torch, whose events are known only when all of it has been read"),
    ("trace file", "", "TRACE.h5", 2, "replay it without --stream"),
)
wrong = []


def expect(name, what, holds):
    if not holds:
        wrong.append(f"{name}: {what}")


def call(arguments, text=None, code=0):
    env = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
    done = subprocess.run([FRAGSIM, *arguments], input=text, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if code is not None and done.returncode != code:
        sys.exit(f"check_stream: {arguments}: exit {done.returncode}: "
                 f"{done.stderr.decode()}")
    return done


def answers(folder, text, run, stream):
    """Table, notes, CSV, and JSON without its command."""
    out = [os.path.join(folder, name) for name in ("rows.csv", "rows.json")]
    done = call(["replay", "-", "-f", *run.split(), "--csv", out[0], "--json",
                 out[1], *(["--stream"] if stream else [])], text)
    with open(out[0], "rb") as file:
        rows = file.read()
    with open(out[1], encoding="utf-8") as file:
        answer = json.load(file)
    del answer["command"]
    said = [line for line in done.stderr.splitlines()
            if b" events in " not in line]
    return done.stdout, said, rows, answer


def check_equal(folder, name, text):
    for run in RUNS:
        whole = answers(folder, text, run, False)
        stream = answers(folder, text, run, True)
        for what, a, b in zip(("table", "notes", "CSV", "JSON"), whole, stream):
            expect(f"{name}, {run}", f"another {what} from a stream", a == b)
        expect(f"{name}, {run}", "no row", len(whole[3]["results"]) > 0)


def check_file(folder, text):
    """The result file has the same rows, and differs in its command only."""
    rows, sizes = [], []
    for name, more in (("a.h5", []), ("b.h5", ["--stream"])):
        path = os.path.join(folder, name)
        call(["replay", "-q", "-", "--points", "0", "-p", "torch", "-p",
              "best_fit", "-c", "inf,300MiB", "-o", path, *more], text)
        rows.append(call(["diff", path, os.path.join(folder, "a.h5")]))
        sizes.append(os.path.getsize(path))
    expect("result file", "other rows from a stream",
           rows[0].stdout == rows[1].stdout and rows[0].stdout)
    expect("result file", f"sizes {sizes}",
           sizes[1] == sizes[0] + len(" --stream"))


def check_repeated(folder):
    source = os.path.join(BUNDLED, "leak.pickle.xz")
    trace = os.path.join(folder, "leak.h5")
    call(["import", "-q", source, "-o", trace, "--repeat", "30"])
    text = call(["export", "-q", source, "--repeat", "30"]).stdout
    # The trace file names the release that wrote the recording, the CSV does not.
    for policy in ("torch@2.11", "size_class", "best_fit"):
        results = []
        for arguments, piped in (([trace], None), (["-", "--stream"], text)):
            done = call(["replay", "-q", *arguments, "-p", policy, "--json",
                         "-"], piped)
            row = json.loads(done.stdout)["results"][0]
            for key in ("trace", "trace_sha256", "notes"):
                del row[key]
            results.append(row)
        expect("repeated", f"{policy}: other numbers than the trace file",
               results[0] == results[1] and results[0]["events"] > 100000)


def check_refused(folder):
    trace = os.path.join(folder, "t.h5")
    call(["import", "-q", os.path.join(BUNDLED, "leak.pickle.xz"), "-o", trace])
    for name, text, arguments, code, words in REFUSED:
        out = os.path.join(folder, "refused.json")
        arguments = arguments.replace("OUT.h5", os.path.join(folder, "r.h5"))
        done = call(["replay", "-q", "--stream", "--json", out,
                     *arguments.replace("TRACE.h5", trace).split()],
                    text.encode(), None)
        expect(name, f"exit {done.returncode}", done.returncode == code)
        expect(name, f"said {done.stderr!r}", words.encode() in done.stderr)
        expect(name, "it left an output", not os.path.exists(out))
    last = call(["replay", "-q", "-"], b"op,id,bytes\nalloc,1,4096")
    expect("whole", "a last line without an end is read", last.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for name in RECORDINGS:
            source = os.path.join(BUNDLED, name + ".pickle.xz")
            texts[name] = call(["export", "-q", source]).stdout
        made = os.path.join(folder, "made.h5")
        call(["gen", "stationary:allocs=50000,live=3000,streams=5", "-o", made])
        texts["made"] = call(["export", "-q", made]).stdout
        for name, text in texts.items():
            check_equal(folder, name, text)
        check_file(folder, texts["gpt2_train"])
        check_repeated(folder)
        check_refused(folder)
    for line in wrong:
        print("check_stream:", line)
    print(f"check_stream: {len(texts)} traces, {len(RUNS)} grids, "
          f"{len(REFUSED)} refusals, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
