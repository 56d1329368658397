"""python -m fragsim.gate --baseline FILE [OPTION...] -- PROGRAM [ARGUMENT...]

A gate for changes of a training program: runs some of its steps without a GPU
(`fragsim dry`), compares the memory with that of the baseline, and prints a
comment in Markdown: what grew, by how much, at which call site, and which
memory it no longer fits.

    python -m fragsim.gate --baseline memory.zip --update -- python train.py
    python -m fragsim.gate --baseline memory.zip -- python train.py

The first command stores the baseline; commit the file. The exit code is 0 if
nothing grew too much, 1 if something did, 2 for wrong use, 3 if a recording is
damaged, 4 if there is no baseline or a file cannot be read or written, and 5 if
the program failed. The module has no other use.
"""
from __future__ import annotations

import argparse
import glob
import gzip
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from typing import Any, NamedTuple, NoReturn

if __name__ != "__main__":
    raise ImportError("fragsim.gate is the command `python -m fragsim.gate`")

from fragsim import _comment, _tool
from fragsim._comment import Bound, Found, Measure
from fragsim._verbs import Answer, answer

PASS, NO, MISUSE, DAMAGED, UNREADABLE, FAILED = range(6)
# A leak fails if it reaches --fail-over of the peak in so many steps.
STEPS_OF_A_JOB = 10000
SNAPSHOT, FACTS = "snapshot.pickle", "gate.json"  # the entries of a baseline
DRY = "without a GPU"
PACKED = {b"\xfd7zXZ": lzma.open, b"\x1f\x8b": gzip.open}


class Stop(Exception):
    """Nothing can be compared; says why."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class Run(NamedTuple):
    """A recording: its file; what is known of it, by name; and the GPUs of
    `fragsim dry` with the bytes that each leaves to PyTorch."""
    trace: str
    facts: dict[str, str]
    gpus: dict[str, int]


# ---- recordings ----

def run_program(line: list[str], **variables: str) -> int:
    """Runs a command; what it prints is no part of the comment."""
    sys.stdout.flush()
    try:
        return subprocess.run(line, stdout=sys.stderr, check=False,
                              env={**os.environ, **variables}).returncode
    except OSError as error:
        raise Stop(FAILED, f"{line[0]}: {error.strerror}") from None


def take_dry(options: argparse.Namespace, folder: str) -> Run:
    """Runs the program without a GPU, by default as on that of the baseline."""
    old = {} if options.gpu or options.update else baseline_facts(options.baseline)
    asked = {"gpu": options.gpu or (old.get("device") if old.get("how") == DRY else None),
             "gpus": options.gpus, "assume": options.assume}
    trace, found = (os.path.join(folder, name) for name in ("now.pickle", "now.json"))
    own = [f"--{name}={value}" for name, value in asked.items() if value]
    code = run_program([_tool.tool_path(), "dry", "-o", trace, "--json", found, *own,
                        "--", *options.program])
    if not os.path.exists(found):
        raise Stop(MISUSE if code == MISUSE else FAILED,
                   f"{shlex.join(options.program)}: expected a program that runs "
                   f"under `fragsim dry', found the exit code {code}; it says why "
                   "above")
    with open(found, encoding="utf-8") as file:
        rows: list[dict[str, Any]] = json.load(file)["results"]
    chosen = rows if len({one["trace"] for one in rows}) == 1 else \
        [one for one in rows if one["rank"] == options.rank]
    if not chosen:
        raise Stop(MISUSE, "several processes used a GPU, of the ranks "
                           f"{[one['rank'] for one in rows]}, and none is "
                           f"{options.rank}: --rank chooses one")
    row = chosen[0]
    if row["status"]:
        raise Stop(FAILED, f"the program ended with {row['status']}, so its memory "
                           "is not compared")
    torch = [one["name"] for one in row["notes"] if one["kind"] == "torch"]
    return Run(row["trace"],
               {"torch": torch[0] if torch else "", "device": row["gpu"], "how": DRY},
               {one["gpu"]: one["memory_bytes"] - one["others_bytes"]
                for one in row["gpus"]})


def facts_beside(trace: str) -> dict[str, str]:
    """What pytorch_record.py wrote beside a snapshot."""
    path = trace.split(".pickle")[0] + ".json"
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return {name: str(found[name]) for name in ("torch", "device")
            if isinstance(found, dict) and found.get(name)}


def take_record(options: argparse.Namespace, folder: str) -> Run:
    """Runs the program, a Python and its script, on a GPU."""
    recorder = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                            "pytorch_record.py")
    code = run_program([options.program[0], recorder, *options.program[1:]],
                       FRAGSIM_RECORD=os.path.join(folder, "now"))
    trace = os.path.join(folder, f"now.rank{options.rank}.exit.pickle")
    if code or not os.path.exists(trace):
        raise Stop(FAILED, f"{shlex.join(options.program)}: expected a program that "
                           "ends with 0 and uses a GPU, found the exit code "
                           f"{code} and the recordings "
                           f"{sorted(map(os.path.basename, glob.glob(folder + '/*')))}")
    return Run(trace, {**facts_beside(trace), "how": "on a GPU"}, {})


def take(options: argparse.Namespace, folder: str) -> Run:
    """The recording of this run."""
    if options.snapshot:
        return Run(options.snapshot,
                   {**facts_beside(options.snapshot), "how": "as recorded"}, {})
    return (take_record if options.record else take_dry)(options, folder)


# ---- the baseline ----

def store(path: str, run: Run) -> None:
    """Writes the baseline: a zip of the snapshot, which every command of the tool
    reads, and of what is known of it."""
    new = f"{path}.partial-{os.getpid()}"
    with open(run.trace, "rb") as file:
        start = file.read(5)
    reader: Any = next((one for magic, one in PACKED.items()
                        if start.startswith(magic)), open)
    try:
        with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as packed:
            with reader(run.trace, "rb") as file:
                packed.writestr(SNAPSHOT, file.read())
            packed.writestr(FACTS, json.dumps({**run.facts,
                                               "fragsim": _tool.version()}, indent=1))
        answer("info", new, progress=False)
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.remove(new)


def baseline_facts(path: str) -> dict[str, str]:
    """What is known of the baseline; nothing if there is none, or it is a recording
    of another origin. Stop if it is damaged."""
    if not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as packed:
            if FACTS not in packed.namelist():
                return {}
            found = json.loads(packed.read(FACTS))
            return {str(name): str(value) for name, value in found.items()}
    except (zipfile.BadZipFile, ValueError, AttributeError) as error:
        raise Stop(DAMAGED, f"{path}: {FACTS}: {error}; store the baseline again "
                            "with --update") from None


# ---- the comparison ----

def policy_of(paths: list[str]) -> str:
    """PyTorch's allocator with the settings of each recording, where both have
    them."""
    rows = answer("info", *paths, progress=False)["results"]
    known = all(one.get("settings") is not None for one in rows)
    return "torch@recorded" if known else "torch"


def row_of(found: Answer, options: argparse.Namespace, which: int) -> dict[str, Any]:
    """The row of a trace (0: the baseline) and of the device."""
    rows = [one for one in found["results"]
            if options.device in (None, one["device"])]
    if len(rows) != 2:
        raise Stop(MISUSE, "expected one device in each recording, found the "
                           f"devices {[one['device'] for one in rows]}: --device "
                           "chooses one")
    return dict(rows[which])


def grew(before: int | None, after: int | None, share: float) -> bool:
    """Whether it grew by more than the share; a need that became unknown did."""
    if before is None or after is None:
        return before is not None
    return after > before * (1 + share)


def measures_of(diff: dict[str, Any], needs: list[dict[str, Any]],
                share: float) -> list[Measure]:
    """The numbers that are compared."""
    before, after = (one["need_bytes"] for one in needs)
    return [Measure("live at the peak", diff["before"]["requested_bytes"],
                    diff["after"]["requested_bytes"], diff["fails"]),
            Measure("needs", before, after, grew(before, after, share))]


def bounds_of(options: argparse.Namespace, paths: list[str], policy: str, now: Run,
              needs: list[dict[str, Any]]) -> list[Bound]:
    """The GPUs of the table, and the capacities that were asked for."""
    def fits(need: int | None, memory: int) -> bool:
        return need is not None and need <= memory

    made = [Bound(name, *(fits(one["need_bytes"], memory) for one in needs))
            for name, memory in now.gpus.items()]
    for capacity in options.capacity:
        found = answer("replay", *paths, policy=policy, capacity=capacity,
                       progress=False)
        before, after = (row_of(found, options, which)["num_ooms"] == 0
                         for which in (0, 1))
        made.append(Bound(capacity, before, after))
    return made


def frames_of(options: argparse.Namespace, now: Run,
              diff: dict[str, Any]) -> list[dict[str, Any]]:
    """The stack that holds most of the site that grew most."""
    grown = _comment.grown(diff["changes"])
    if diff["by"] != "site" or not grown:
        return []
    groups = answer("top", now.trace, at=diff["after"]["event"], by="stack", rows=0,
                    device=options.device, progress=False).rows("groups")
    return next((one["frames"] for one in groups if one["name"] == grown[0]["name"]),
                [])


def leaks_of(options: argparse.Namespace, path: str) -> dict[str, Any]:
    """What `fragsim leaks` says of the device."""
    rows = answer("leaks", path, device=options.device, progress=False)["results"]
    return dict(rows[0])


def leaks_more(before: dict[str, Any], after: dict[str, Any], share: float) -> bool:
    """Whether memory grows faster from step to step than in the baseline."""
    first, now = (int(one["growth_bytes_per_step"] or 0) if one["verdict"] == "leak"
                  else 0 for one in (before, after))
    return grew(first, now, share)


def is_noticed(leaks: dict[str, Any], share: float) -> bool:
    """Whether a job sees the growth from step to step."""
    return float(leaks["growth_bytes_per_step"] or 0) * STEPS_OF_A_JOB > \
        share * float(leaks["peak_requested_bytes"])


def deaths_of(paths: list[str], device: int | None) -> list[str]:
    """Which of the two recordings ends before its program did."""
    rows = answer("info", *paths, progress=False)["results"]
    return [f"A request was refused in {which}: what it would have needed from then on "
            "is not compared."
            for which, one in zip(("the baseline", "this run"), rows)
            if any(part["failed_requests"] for part in one["devices"]
                   if device in (None, part["device"]))]


def notes_of(old: dict[str, str], run: Run, diff: dict[str, Any],
             leaks: dict[str, Any]) -> list[str]:
    """What the answer rests on."""
    words = {"torch": "PyTorch", "device": "the GPU", "how": "recorded"}
    now = {**run.facts, "fragsim": _tool.version()}
    notes = [f"{words[name]}: the baseline has {_comment.code(old.get(name, '?'))}, "
             f"this run {_comment.code(now.get(name, '?'))}; what changed can be due "
             "to that" for name in words if old.get(name, "") != now.get(name, "")]
    if diff["by"] != "site":
        notes.append("A recording has no stacks, so call sites are not known.")
    if leaks["verdict"] == "unknown":
        notes.append("Growth from step to step was not judged "
                     f"({leaks['reason']}); eight steps or more show it.")
    return notes


def refuse_other_gpu(old: dict[str, str], run: Run) -> None:
    """A program needs other memory on another GPU, which hides or feigns growth."""
    devices = [one.get("device") for one in (old, run.facts)]
    if old.get("how") == run.facts["how"] == DRY and devices[0] != devices[1]:
        raise Stop(MISUSE, f"the baseline was recorded as on the GPU {devices[0]}, this "
                           f"run as on {devices[1]}: expected --gpu {devices[0]}, or a "
                           "baseline that --update stored with the other GPU")


def compare(options: argparse.Namespace, run: Run, update: str) -> Found:
    """Compares the run with the baseline."""
    paths = [options.baseline, run.trace]
    old = baseline_facts(options.baseline)
    if not options.update:
        refuse_other_gpu(old, run)
    share = float(options.fail_over.rstrip("%")) / 100
    diff = answer("diff", *paths, fail_over=options.fail_over, rows=0,
                  device=options.device, progress=False)["results"][0]
    policy = policy_of(paths)
    fit = answer("fit", *paths, policy=policy, progress=False)
    needs = [row_of(fit, options, which) for which in (0, 1)]
    leaks = [leaks_of(options, path) for path in paths]
    more = leaks_more(leaks[0], leaks[1], share)
    return Found(measures_of(diff, needs, share), options.fail_over,
                 bounds_of(options, paths, policy, run, needs),
                 [*options.capacity, *([options.gpu] if options.gpu else [])],
                 diff["by"], diff["changes"], frames_of(options, run, diff),
                 leaks[1]["leaks"] if leaks[1]["verdict"] == "leak" else [],
                 more and is_noticed(leaks[1], share), not more,
                 deaths_of(paths, options.device) + notes_of(old, run, diff, leaks[1]),
                 update)


def measured(options: argparse.Namespace, run: Run) -> list[Measure]:
    """The numbers of a run that has no baseline."""
    paths = [run.trace, run.trace]
    diff = answer("diff", *paths, device=options.device, progress=False)["results"][0]
    fit = answer("fit", *paths, policy=policy_of(paths), progress=False)
    return measures_of(diff, [row_of(fit, options, which) for which in (0, 1)], 0)


# ---- the command ----

def percent(text: str) -> str:
    """A percentage, as fragsim diff reads it."""
    if not re.fullmatch(r"\d+(\.\d+)?%", text):
        raise argparse.ArgumentTypeError(f"expected a percentage such as 2%, found "
                                         f"{text!r}")
    return text


def read_options(words: list[str]) -> argparse.Namespace:
    """The options; misuse ends the process with 2."""
    assert __doc__
    parser = argparse.ArgumentParser(
        "python -m fragsim.gate", description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", required=True, metavar="FILE",
                        help="the recording to compare with")
    parser.add_argument("--update", action="store_true",
                        help="compare, then store this run as the baseline; the "
                             "exit code is 0")
    parser.add_argument("--fail-over", default="2%", metavar="PERCENT", type=percent,
                        help="the growth that is allowed, of what is live at the "
                             "peak and of what the run needs (default: 2%%)")
    parser.add_argument("--capacity", action="append", default=[], metavar="SIZE",
                        help="memory that the run must fit, such as 16GiB")
    parser.add_argument("--gpu", metavar="NAME",
                        help="the GPU of `fragsim dry', which the run must fit "
                             "(default: that of the baseline)")
    parser.add_argument("--gpus", metavar="N", help="as for `fragsim dry'")
    parser.add_argument("--assume", metavar="KIND=VALUE,...",
                        help="as for `fragsim dry': what the program reads from the "
                             "device")
    parser.add_argument("--record", action="store_true",
                        help="run the program on a GPU: a Python and its script")
    parser.add_argument("--snapshot", metavar="FILE",
                        help="take this recording, and run no program")
    parser.add_argument("--rank", type=int, default=0, metavar="N",
                        help="of several processes, the one to compare (default: 0)")
    parser.add_argument("--device", type=int, metavar="N",
                        help="of several devices, the one to compare")
    parser.add_argument("--markdown", metavar="FILE",
                        help="write the comment to this file too")
    parser.add_argument("--json", metavar="FILE",
                        help="write what was compared to this file, as JSON")
    own, program = (words[:words.index("--")], words[words.index("--") + 1:]) \
        if "--" in words else (words, [])
    options = parser.parse_args(own)
    options.program = program
    if bool(program) == bool(options.snapshot):
        parser.error("expected either -- PROGRAM [ARGUMENT...] or --snapshot FILE")
    if options.gpu and (options.snapshot or options.record):
        parser.error("--gpu is for a program that runs without a GPU; for a recording, "
                     "--capacity states what it must fit")
    return options


def update_command(words: list[str]) -> str:
    """The command of this process, with --update and without its other outputs."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for at, word in enumerate(words) if at >= end or not (
        word == "--update" or re.match("--(markdown|json)(=|$)", word)
        or words[at - 1:at] in (["--markdown"], ["--json"]))]
    return shlex.join(["python", "-m", "fragsim.gate", "--update", *kept])


def judge(options: argparse.Namespace, run: Run,
          update: str) -> tuple[int, str, Found | None]:
    """The exit code, the comment, and what it rests on."""
    if not os.path.exists(options.baseline):
        why = f"{_comment.code(options.baseline)} does not exist"
        return UNREADABLE, _comment.first(options.baseline, why,
                                          measured(options, run), update), None
    try:
        found = compare(options, run, update)
    except (Stop, _tool.Error) as error:
        if not options.update or error.code != DAMAGED:
            raise
        return DAMAGED, f"The baseline is replaced: {error}\n", None
    return (NO if found.reasons() else PASS,
            _comment.comment(options.baseline, found), found)


def as_json(code: int, found: Found | None) -> str:
    """What was compared, for other programs; bytes are plain numbers."""
    rows = found._asdict() if found else {}
    if found:
        rows["measures"] = [one._asdict() for one in found.measures]
        rows["bounds"] = [one._asdict() for one in found.bounds]
        rows["reasons"] = found.reasons()
        rows["sites"] = [one["name"] for one in _comment.grown(found.changes)]
    return json.dumps({"schema_version": "1.0", "exit_code": code, **rows}, indent=1)


def write(path: str, text: str) -> None:
    """The file appears whole or not at all."""
    new = f"{path}.partial-{os.getpid()}"
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)
    finally:
        if os.path.exists(new):
            os.remove(new)


def say(code: int, options: argparse.Namespace) -> None:
    """What the exit code means, on stderr."""
    words = {PASS: "no growth above " + options.fail_over,
             NO: "the change needs more memory than allowed",
             UNREADABLE: f"there is no baseline {options.baseline}; --update stores "
                         "one"}
    print("fragsim gate: " + ("the baseline is stored" if options.update
                              else words[code]), file=sys.stderr)


def run_gate(words: list[str]) -> int:
    """Runs, compares and writes."""
    options = read_options(words)
    with tempfile.TemporaryDirectory(prefix="fragsim-gate-") as folder:
        run = take(options, folder)
        code, text, found = judge(options, run, update_command(words))
        if options.update:
            store(options.baseline, run)
    if options.markdown:
        write(options.markdown, text)
    if options.json:
        write(options.json, as_json(code, found) + "\n")
    if not (options.update and code == UNREADABLE):
        print(text, end="")
    say(code, options)
    return PASS if options.update else code


def main() -> NoReturn:
    """Runs the gate; failures are words and an exit code."""
    try:
        sys.exit(run_gate(sys.argv[1:]))
    except Stop as stop:
        code, words = stop.code, str(stop)
    except _tool.Error as error:
        code, words = error.code, str(error)
    except OSError as error:
        code, words = UNREADABLE, str(error)
    except KeyboardInterrupt:
        code, words = _tool.INTERRUPTED, "interrupted"
    print(f"fragsim gate: {words}", file=sys.stderr)
    sys.exit(code)


main()
