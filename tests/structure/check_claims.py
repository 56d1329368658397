#!/usr/bin/env python3
"""check_claims.py: the page paper/pages/claims.md.

The table and the page are what claims.py makes from the data; every claim of the four
articles has a row; every verdict has a command, and the command exists; verdicts follow
from the numbers; and what the data say about bundled recordings is what fragsim answers
today.
Environment: FRAGSIM.
"""
import collections
import copy
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT

PAPER = os.path.join(ROOT, "paper")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(PAPER, "gpu"), os.path.join(PAPER, "tables")]
import claims  # noqa: E402
import claims_measures  # noqa: E402
import claims_programs  # noqa: E402
import claims_recorded  # noqa: E402
from data_header import read_csv  # noqa: E402

IDS = [f"{letter}{n + 1}" for letter, count in (("A", 13), ("B", 14), ("C", 13), ("D", 29))
       for n in range(count)]
WORDS = {"true", "partly", "wrong", "not measurable"}
faults = []


def expect(true, what):
    if not true:
        faults.append(what)
        print(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def same_page():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(PAPER, "tables", "claims.py")
        subprocess.run([sys.executable, "-B", script, folder],
                       check=True)
        for name in ("pages/claims.md", "data/claims.csv"):
            expect(read(os.path.join(folder, name)) == read(os.path.join(PAPER, name)),
                   f"paper/{name} is not what claims.py makes from the data")


def programs():
    return {*claims_programs.TRAINING, *claims_programs.QUESTIONS, *claims_programs.ALONE,
            *claims_programs.TURNS}


def exists(command, verbs):
    first, *rest = command.split()
    if first == "fragsim":
        return rest[0] in verbs
    if not os.path.exists(os.path.join(ROOT, first)):
        return False
    if not first.endswith("claims_programs.py"):
        return True
    names = rest[2:] if rest[0] == "all" else rest[1:2] if rest[0] == "one" else []
    return rest[0] in ("all", "one", "two") and set(names) <= programs()


def every_row():
    text = subprocess.run([FRAGSIM, "help"], check=True, capture_output=True,
                          text=True).stdout
    verbs = set(re.findall(r"^  (\w+) {2,}", text, re.M))
    _, rows = read_csv(os.path.join(PAPER, "data", "claims.csv"))
    found = collections.defaultdict(list)
    for r in rows:
        found[r["id"]].append(r)
    summary = {r["macro"]: r["text"] for r in found.pop(claims.SUMMARY)}
    expect(list(found) == IDS, f"the ids are {list(found)}")
    page = read(os.path.join(PAPER, "pages", "claims.md"))
    for number, some in found.items():
        expect(page.count(f"\n| {number} | ") == 1, f"{number} has no row of its own")
        expect(len({r["verdict"] for r in some}) == 1 and some[0]["verdict"] in WORDS,
               f"{number}: verdict {some[0]['verdict']!r}")
        expect(some[0]["reason"], f"{number} has no reason")
        if some[0]["verdict"] == "not measurable":
            continue
        for r in some:
            expect(exists(r["command"], verbs), f"{number}: no such command: {r['command']}")
            expect(r["text"] and r["n"] and r["device"], f"{number}: {r['measurement']}")
            expect(os.path.exists(os.path.join(PAPER, r["data"])), f"no file {r['data']}")
    measured = sum(some[0]["verdict"] != "not measurable" for some in found.values())
    expect(summary["ClaimMeasured"] == str(measured) and summary["ClaimTotal"] == "69",
           f"{measured} are measured, {summary}")
    names = [r["macro"] for r in rows if r["macro"]]
    expect(len(names) == len(set(names)), "a macro is made twice: "
           + str([n for n, c in collections.Counter(names).items() if c > 1]))
    expect(all(re.fullmatch("[A-Za-z]+", n) for n in names), "macros have letters only")
    expect(set(claims_measures.TEN) <= set(IDS) and len(claims_measures.TEN) == 10, "ten")


def verdict(number, change=None):
    """The verdict of one claim, with changed data."""
    data = claims_measures.Data()
    data.runs, data.recorded = copy.deepcopy(data.runs), copy.deepcopy(data.recorded)
    if change:
        change(data)
    found = [r for r in claims.measure(data) if r["id"] == number]
    return found[0]["verdict"]


def verdicts_follow():
    def fewer(data):
        for r in data.recorded:
            if r["name"] == "counters":
                r["peak_reserved_bytes"] = r["peak_allocated_bytes"]

    def served(data):
        for r in data.recorded:
            for c in r.get("changes", []):
                c[2] = True

    def enough(data):
        for r in data.recorded:
            if r["name"] == "explain":
                r["cached_bytes"] = r["not_reserved_bytes"] = 0

    for number, before, change, after in (
            ("D5", "wrong", fewer, "true"), ("C3", "wrong", served, "partly"),
            ("B1", "true", enough, "partly"),
            ("B9", "wrong", lambda d: d.runs["summary"].update(
                has_efficient_coalesce=True), "true"),
            ("A5", "wrong", lambda d: d.runs["summary"].update(
                snapshot_items=d.runs["summary"]["blocks_active"]), "true"),
            ("B9", "wrong", lambda d: d.runs.pop("summary"), "not measurable"),
            ("D26", "partly", lambda d: d.runs["ranks_0"]["ddp_1"].update(
                error="refused"), "not measurable")):
        expect(verdict(number) == before, f"{number} is {verdict(number)}, not {before}")
        expect(verdict(number, change) == after,
               f"{number} with changed data is {verdict(number, change)}, not {after}")


def forms():
    size, share, change = (claims_measures.size, claims_measures.share,
                           claims_measures.change)
    expect([size(512), size(1536), size(3 << 20), size(5 << 29)] ==
           ["512 B", "1.50 KiB", "3.00 MiB", "2.50 GiB"], "sizes")
    expect([share(0.031), share(0.4), share(0.9994), share(1)] ==
           ["3.1 %", "40 %", "99.9 %", "100 %"], "shares")
    expect([change(1.1), change(0.5), change(1.001)] == ["+10 %", "-50 %", "0 %"], "changes")


def still_so():
    """The bundled recordings."""
    recorded = claims_measures.Data().recorded
    bundled = claims_recorded.bundled
    case = ("0.8", 3)
    lstm = bundled("lstm_varlen__cap_below.pickle.xz")
    died = claims_recorded.explained((lstm, {"cap": 5418724131}))
    for answer in (claims_recorded.leaking(bundled("leak_frames.pickle.xz"), "24GiB"),
                   claims_recorded.named(bundled("leak_frames.pickle.xz")),
                   claims_recorded.generated(case),
                   {**died, "trace": "recorded/dev/lstm_varlen__cap_below.pickle.xz"},
                   {**claims_recorded.replayed(bundled("gpt2_train.pickle.xz")),
                    "trace": "recorded/dev/gpt2_train.pickle.xz"}):
        expect(answer in recorded, f"fragsim {answer['name']} {answer['trace']}: the answer "
               "is no longer that of data/claims_recorded.jsonl")


def main():
    same_page()
    every_row()
    verdicts_follow()
    forms()
    still_so()
    if faults:
        sys.exit(1)
    print("claims: every claim has its row, and every row its command")


if __name__ == "__main__":
    main()
