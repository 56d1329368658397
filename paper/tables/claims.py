#!/usr/bin/env python3
"""claims.py [FOLDER]: the claims of four articles on PyTorch's memory, each with its
verdict, the measurement and the command.

Reads data/claims_recorded.jsonl (claims_recorded.py), data/claims_runs.jsonl
(claims_programs.py, on a machine with GPUs) and tables of other pages; writes
data/claims.csv, a row for each number, and pages/claims.md, which is made from it, or
writes both into the same places of FOLDER.
"""
import collections
import os
import sys

from claims_measures import CLAIMS, NOT, TEN, Data, Measure, Missing
from data_header import read_csv, write_csv
from places import DATA, PAPER

COLUMNS = ["id", "claim", "verdict", "reason", "measurement", "text", "value", "unit", "n",
           "command", "data", "device", "macro"]
SUMMARY = "summary"
ARTICLES = {"A": "leaks", "B": "fragmentation", "C": "out of memory",
            "D": "memory management and several GPUs"}
TOP = """# Folk wisdom, measured

{total} claims of four articles on the memory of PyTorch, in short words of ours:
A on leaks, B on fragmentation, C on running out of memory, D on memory management
and several GPUs. Made by `paper/tables/claims.py` from `paper/data/claims.csv`; do not edit.

**{measured} of {total} are measured**: {words}. The rest, and why not: {rest}.

A verdict follows from the numbers beside it, for these programs and this version
of PyTorch; it is no statement about all programs. *Partly* means that a part of the claim
holds, or that it holds for some programs only. "Relative" compares the same program with
and without the remedy; +10 % is more. Times are medians of steps that ran in turns, in
their own processes; they are side facts. `RECORDING` is a recording of `data`; where
several are needed, each is passed in turn. `claims_programs.py` needs a GPU; it also
wrote a snapshot of most programs, and the replay of **{exact}** of them is exact
(`fragsim validate`). fp32 is PyTorch's default, matrix products without TF32.

{heads}

## The ten that matter

| claim | verdict | measured |
|---|---|---|
{ten}
"""


def measure(data):
    """The rows of all claims; a claim without data says so."""
    rows = []
    for number, (text, function) in CLAIMS.items():
        m = Measure(data)
        data.where = {}
        try:
            verdict, reason = function(m)
        except Missing as error:
            m.rows, verdict, reason = [], NOT, str(error)
        for row in m.rows or [{}]:
            rows.append({"id": number, "claim": text, "verdict": verdict, "reason": reason,
                         **row})
    return rows


def counts(data, rows):
    """Rows for the summary of the page: how many claims have which verdict, and the
    snapshots whose replay is exact."""
    found = {r["id"]: r["verdict"] for r in rows}
    kinds = collections.Counter(found.values())
    exact = [r for r in data.recorded if r["name"] == "validate"]
    numbers = {"SnapshotsExact": " of ".join(str(exact[0][k]) for k in ("exact", "of"))
               if exact else "none", "Total": len(found), "Measured": len(found) - kinds[NOT],
               "True": kinds["true"], "Partly": kinds["partly"], "Wrong": kinds["wrong"]}
    return [{"id": SUMMARY, "measurement": "verdicts", "text": v, "value": v,
             "command": "paper/tables/claims.py", "macro": "Claim" + k} for k, v in numbers.items()]


def heads(data):
    """The comment lines on top of the table."""
    lines = [data.recorded_head] if data.recorded_head else []
    for head in lines + data.runs_head:
        yield (f"device {head['device']}, " +
               (f"driver {head['driver']}, " if head.get("driver") else "") +
               f"PyTorch {head['torch']}, {head['date']}; {head['command']}"
               + (f"; {head['tool']}" if head.get("tool") else ""))


def cell(text):
    return str(text).replace("|", "\\|")


def measured_text(rows):
    """The numbers; those of a range are one part."""
    parts, at = [], 0
    while at < len(rows):
        what, _, end = rows[at]["measurement"].rpartition(": ")
        if end == "least":
            least, median, most = (f"**{r['text']}**" for r in rows[at:at + 3])
            parts.append(f"{what}: {least} to {most}, median {median}")
            at += 3
        else:
            parts.append(f"{rows[at]['measurement']}: **{rows[at]['text']}**")
            at += 1
    return "; ".join(parts)


def command_text(rows):
    """The commands, each once; those of programs that differ in the name only are
    one."""
    return "; ".join(f"`{c}`" for c in dict.fromkeys(r["command"] for r in rows))


def page(head, rows):
    found = collections.OrderedDict()
    summary = {r["macro"]: r["text"] for r in rows if r["id"] == SUMMARY}
    for row in (r for r in rows if r["id"] != SUMMARY):
        found.setdefault(row["id"], []).append(row)
    verdicts = collections.Counter(f[0]["verdict"] for f in found.values())
    not_measured = {i: f[0]["reason"] for i, f in found.items() if f[0]["verdict"] == NOT}
    words = ", ".join(f"{verdicts[w]} {w}" for w in ("true", "partly", "wrong"))
    lines = [TOP.format(
        total=len(found), measured=len(found) - len(not_measured), words=words,
        exact=summary["ClaimSnapshotsExact"],
        rest="; ".join(f"{i} ({r})" for i, r in not_measured.items()) or "none",
        heads="\n".join(f"- {line}" for line in head),
        ten="\n".join(f"| {i}: {cell(found[i][0]['claim'])} | **{found[i][0]['verdict']}** | "
                      f"{cell(measured_text(found[i]) if found[i][0]['text'] else '')} |"
                      for i in TEN if i in found))]
    article = ""
    for number, some in found.items():
        if number[0] != article:
            article = number[0]
            lines.append(f"\n## {article}: {ARTICLES[article]}\n\n"
                         "| id | claim | verdict | measured | command, data |\n|---|---|---|---|---|")
        first = some[0]
        files = ", ".join(f"`paper/{d}`" for d in dict.fromkeys(r["data"] for r in some if r["data"]))
        measured = measured_text(some) + "." if first["text"] else ""
        lines.append(f"| {number} | {cell(first['claim'])} | **{first['verdict']}** | "
                     f"{cell(measured)} {cell(sentence(first['reason']))} | "
                     f"{cell(command_text(some)) + '; ' + files if first['text'] else ''} |")
    return "\n".join(lines) + "\n"


def sentence(text):
    return text[0].upper() + text[1:] + "."


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else PAPER
    for room in ("data", "pages"):
        os.makedirs(os.path.join(folder, room), exist_ok=True)
    data = Data()
    rows = measure(data)
    path = os.path.join(folder, "data", "claims.csv")
    write_csv(path, "".join(f"# {line}\n" for line in heads(data)), COLUMNS,
              rows + counts(data, rows))
    with open(path, encoding="utf-8") as file:
        head = [line[1:].strip() for line in file if line.startswith("#")]
    _, rows = read_csv(path)
    with open(os.path.join(folder, "pages", "claims.md"), "w", encoding="utf-8") as out:
        out.write(page(head, rows))


if __name__ == "__main__":
    main()
