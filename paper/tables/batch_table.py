#!/usr/bin/env python3
"""batch_table.py [OUTPUT]: writes paper/pages/batch.md, which compares what `fragsim
batch` predicts with what PyTorch did.

../shared/recorded/batch holds the same training programs at 13 batch sizes,
recorded on an H100 with a memory limit of 12 GiB. From each pair of recordings
that did not die, the command predicts all 13 batch sizes. The page says how many
pairs are right, how often the recorded peak lies between low and high, what a
small change of the workspaces does to a recording, and the errors of each pair.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile

from places import PAGES, ROOT

FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FOLDER = os.path.join(SHARED, "recorded", "batch")
LIMIT = 12 << 30
MOST = 0.02


def recordings(program):
    """The facts of the program's recordings, by batch size."""
    found = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, program + "_b*.json"))):
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        facts["path"] = path.replace(".json", ".pickle.xz")
        found[facts["batch"]] = facts
    return found


def programs():
    return sorted({os.path.basename(path).rsplit("_b", 1)[0]
                   for path in glob.glob(os.path.join(FOLDER, "*.json"))})


def predict(known, grid, *options):
    """The answer of the command from the recordings `known`."""
    arguments = [f"{facts['batch']}={facts['path']}" for facts in known]
    done = subprocess.run(
        [FRAGSIM, "batch", "-q", *arguments, "--at",
         ",".join(str(batch) for batch in grid), "--process-limit", str(LIMIT), "-p",
         "torch", "--limit", str(LIMIT), "--json", "-", *options],
        capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Outcome:
    """A prediction beside the truth."""

    def __init__(self, truth, pair):
        answer = predict([truth[batch] for batch in pair], truth)
        self.pair = pair
        rows = {row["batch"]: row for row in answer["results"]}
        compared = [batch for batch, facts in truth.items()
                    if not facts["oom"] and not rows[batch]["num_ooms"]
                    and batch not in pair]
        self.errors = {
            batch: rows[batch]["peak_reserved_bytes"]
            / truth[batch]["peak_reserved"] - 1 for batch in compared}
        self.within = {
            batch: rows[batch]["low_peak_reserved_bytes"]
            <= truth[batch]["peak_reserved"]
            <= rows[batch]["high_peak_reserved_bytes"] for batch in compared}
        self.sure = {batch: is_sure(rows[batch]) for batch in compared}
        self.width = {
            batch: (rows[batch]["high_peak_reserved_bytes"]
                    - rows[batch]["low_peak_reserved_bytes"])
            / rows[batch]["peak_reserved_bytes"] for batch in compared}
        self.wrong = [batch for batch, facts in truth.items()
                      if bool(rows[batch]["num_ooms"]) != bool(facts["oom"])]
        self.largest = answer["largest"]["torch"]
        self.largest_sure = (answer["low_largest"]["torch"]
                             == answer["high_largest"]["torch"])
        self.true_largest = max(batch for batch, facts in truth.items()
                                if not facts["oom"])
        self.requests = answer["requests"]

    def worst(self, above):
        chosen = [error for batch, error in self.errors.items()
                  if batch > above]
        return max(chosen, key=abs) if chosen else None

    def above(self):
        return [batch for batch in self.errors if batch > self.pair[1]]


def is_sure(row):
    """Whether the command has no warning for this row."""
    peak = row["peak_reserved_bytes"]
    if row["num_replays_with_oom"]:
        return row["num_replays_with_oom"] == row["num_replays"]
    return (row["high_peak_reserved_bytes"] <= (1 + MOST) * peak
            and row["low_peak_reserved_bytes"] >= (1 - MOST) * peak)


def outcomes(program):
    truth = recordings(program)
    alive = [batch for batch, facts in truth.items() if not facts["oom"]]
    return truth, [Outcome(truth, pair)
                   for pair in itertools.combinations(alive, 2)]


def percent(error):
    return "-" if error is None else f"{100 * error:+.2f} %"


def is_half(truth, outcome):
    return truth[outcome.pair[1]]["peak_reserved"] >= LIMIT / 2


def row(truth, outcome):
    first, second = outcome.pair
    requests = outcome.requests
    guesses = requests["unmatched"]["count"] + requests["uncertain"]["count"]
    above = outcome.above()
    return (f"| {first}, {second} "
            f"| {'at least' if is_half(truth, outcome) else 'less'} "
            f"| {percent(outcome.worst(second))} | {percent(outcome.worst(0))} "
            f"| {sum(outcome.within[b] for b in above)} of {len(above)} "
            f"| {sum(not outcome.sure[b] for b in above)} of {len(above)} "
            f"| {outcome.largest} | {len(outcome.wrong)} | {guesses} |")


def summary(program, truth, found):
    """One row: how many pairs predict every larger batch size within 2 %."""
    cells = []
    for half in (True, False):
        errors = [abs(outcome.worst(outcome.pair[1])) for outcome in found
                  if is_half(truth, outcome) == half and outcome.above()]
        good = sum(error <= MOST for error in errors)
        cells.append(f"{good} of {len(errors)} | {100 * max(errors):.2f} %")
    right = sum(outcome.largest == outcome.true_largest for outcome in found)
    sure = sum(outcome.largest_sure for outcome in found)
    return (f"| {program} | {cells[0]} | {cells[1]} "
            f"| {right} of {len(found)} | {sure} of {len(found)} |")


def range_row(program, found, where):
    """How often the truth is within the range, and the warnings are right."""
    rows = [(outcome, batch) for outcome in found for batch in outcome.errors
            if (batch > outcome.pair[1]) == (where == "above")]
    inside = sum(outcome.within[batch] for outcome, batch in rows)
    off = [abs(outcome.errors[batch]) > MOST for outcome, batch in rows]
    sure = [outcome.sure[batch] for outcome, batch in rows]
    width = sum(outcome.width[batch] for outcome, batch in rows) / len(rows)
    silent = [bad for bad, quiet in zip(off, sure) if quiet]
    warned = [bad for bad, quiet in zip(off, sure) if not quiet]
    return (f"| {program} | {where} | {inside} of {len(rows)} "
            f"| {100 * width:.1f} % | {sum(silent)} of {len(silent)} "
            f"| {sum(warned)} of {len(warned)} |")


def by_template(found):
    """The errors above the pair, for each larger recording."""
    lines = []
    for second in sorted({outcome.pair[1] for outcome in found}):
        group = [outcome for outcome in found
                 if outcome.pair[1] == second and outcome.above()]
        if group:
            worst = sorted({percent(outcome.worst(second))
                            for outcome in group})
            lines.append(f"| {second} | {len(group)} | {', '.join(worst)} |")
    return "\n".join(lines)


# ---- the workspaces of a recording ----


def exported(path):
    done = subprocess.run([FRAGSIM, "export", "-q", path, "-o", "-"],
                          capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines()
             if not line.startswith("#")]
    return lines[0], [line.split(",") for line in lines[1:]]


def workspaces(events):
    """The ALLOCs of at least 512 bytes that the next event frees."""
    return [i for i, (event, after) in enumerate(zip(events, events[1:]))
            if event[0] == "alloc" and after[0] == "free"
            and after[1] == event[1] and int(event[2]) >= 512]


def replayed(head, events, factor, folder):
    """Peak reserved with all workspaces times the factor."""
    path = os.path.join(folder, "changed.csv")
    events = [list(event) for event in events]
    for i in workspaces(events):
        events[i][2] = str(round(int(events[i][2]) * factor))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([head] + [",".join(e) for e in events]) + "\n")
    done = subprocess.run(
        [FRAGSIM, "replay", "-q", path, "-p", "torch@2.11", "-c", "inf", "--json",
         "-"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["results"][0]["peak_reserved_bytes"]


FACTORS = (0.95, 0.98, 0.99, 1.01, 1.02, 1.05)


def workspace_rows(truth):
    """For each batch size: the workspaces, and the peaks if they change."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for batch, facts in truth.items():
            if facts["oom"]:
                continue
            head, events = exported(facts["path"])
            sizes = [int(events[i][2]) for i in workspaces(events)]
            base = replayed(head, events, 1, folder)
            changes = [percent(replayed(head, events, factor, folder) / base
                               - 1) for factor in FACTORS]
            lines.append(f"| {batch} | {len(sizes)} "
                         f"| {sum(sizes) / batch / 2**20:.1f} "
                         f"| {max(sizes) / batch / 2**20:.2f} | "
                         + " | ".join(changes) + " |")
    return "\n".join(lines)


def other_sizes(truth):
    """The requests but workspaces: their number in each recording, and how
    many of them lie on one line over the batch."""
    columns, batches = [], []
    for batch, facts in truth.items():
        if not facts["oom"]:
            _, events = exported(facts["path"])
            skipped = {i for i, (event, after)
                       in enumerate(zip(events, events[1:]))
                       if event[0] == "alloc" and after[0] == "free"
                       and after[1] == event[1]}
            columns.append([int(event[2]) for i, event in enumerate(events)
                            if event[0] == "alloc" and i not in skipped])
            batches.append(batch)
    assert len({len(column) for column in columns}) == 1, "compare by order"
    first, last = batches[0], batches[-1]
    straight = sum(
        all((size - sizes[0]) * (last - first)
            == (sizes[-1] - sizes[0]) * (batch - first)
            for batch, size in zip(batches, sizes))
        for sizes in zip(*columns))
    return straight, len(columns[0])


HEAD = """# Predicted batch sizes against recorded ones

Made by `FRAGSIM=build/fragsim python3 paper/tables/batch_table.py`; do not edit. The
recordings are those of `../shared/recorded/batch`: three training programs at 13 batch
sizes (1 to 96) on an H100 with PyTorch {torch} and a memory limit of the process of
12 GiB. From each pair of batch sizes that did not run out of memory, `fragsim batch A=T1
B=T2 --at ... --process-limit 12GiB --limit 12GiB` predicts all 13 under the same limit.
"Above": the batch sizes above the pair. The errors are those of peak reserved where
neither the job nor the replay ran out of memory.

"The larger recording fits half" can be read in two ways, so all pairs are counted in
one of two groups: the larger recording reserves *at least half* of the limit (6 GiB),
or *less than half*. A pair is right if every batch size above it is within 2 %.

| program | at least half: pairs right | worst | less than half: pairs right | worst | largest batch right | largest the same in all replays |
|---|---|---|---|---|---|---|
{summary}

So the aim of 2 % is met for gpt2 and llama_ckpt in both readings, and for resnet in the
first reading only. The largest batch of the grid is right for every pair.

## How sure a prediction is

The command replays each batch size with other sizes of the requests that are not known
for sure, and reports the extremes of peak reserved as low and high. It warns if they
are more than 2 % from the prediction, or if some replays run out of memory and others
do not. A row of this table counts predictions: a pair and a batch size that is not of
the pair. Below: between or below the batch sizes of the pair.

| program | batch sizes | truth within low and high | mean of (high - low) / prediction | wrong by more than 2 %, no warning | wrong by more than 2 %, with warning |
|---|---|---|---|---|---|
{ranges}

No prediction without a warning is wrong by more than 2 %. But nearly every prediction
of resnet has a warning, also those that are right: the warning says that 2 % cannot be
promised, not that the prediction is off. llama_ckpt has predictions outside of a range
of width 0; they are {llama} off at most.

## Why errors remain: {worst}

gpt2 and llama_ckpt ask for the same tensors at every batch size, and each size is a
line over the batch.

Of {worst}, too, the {others} requests that are no workspaces are the same at every batch
size; the sizes of {straight} of them are exactly on one line over the batch. What remains
are the workspaces: blocks that the next event frees. Their number and their bytes a
sample change with the batch; their sizes and places fit convolutions, for which cuDNN
chooses an algorithm by the shape; the recordings have no stacks that would prove it.
Many sizes are a whole number of copies of a layer's
weights plus a part in proportion to the batch: the layer with 9 MiB of weights has a
workspace of 9 MiB + 0.22 MiB a sample up to a batch of 6. Such a size at a small batch,
taken in proportion, is too large at a large one, which is the cause of the +11 % from 1
and 2. But a line is no remedy: at a larger batch, another algorithm has a larger part
in proportion, and lines are as much too low (see below).

The bytes of the workspaces are not the whole cause. A workspace that fits into a free
block costs nothing, and one that is a little too large takes a segment of its own. The
right half of the table shows it: a replay of the *recorded* trace with every workspace
1 % to 5 % smaller or larger, and the change of peak reserved.

| batch | workspaces | MiB a sample, all | largest | {factors} |
|---|---|---|---|{bars}
{workspaces}

A change of 1 % of the workspaces moves the peak by up to {one}. So a prediction that is
sure to 2 % needs workspaces that are right to less than 1 %, and the algorithm at a batch
size that was not recorded is not in the recordings. That the pairs of the first group are
all right is therefore partly luck.

The error above a pair depends on the larger recording only, because its workspaces are
used:

| larger recording | pairs | worst errors above |
|---|---|---|
{templates}

## What was tried against these errors

Each of these was compared with the rule in use on the pairs of resnet (less than half:
37 of 55 right; at least half: 11 of 11). None is better in both groups, so none is used.
The counts are those of trials, not made by this script.

| size of a workspace | less than half | at least half | worst |
|---|---|---|---|
| in proportion to the batch (in use) | 37 of 55 | 11 of 11 | 11.1 % |
| a line through both recordings, if its constant part is 0 or 1, 2 or 4 times the size of a constant request; else in proportion | 29 of 55 | 11 of 11 | 8.0 % |
| the mean of these two | 30 of 55 | 11 of 11 | 7.9 % |
| median of seven replays, in proportion times 0.9 to 1.1 | 38 of 55 | 0 of 11 | 10.8 % |
| median of three replays, in proportion times 0.95, 1, 1.05 | 38 of 55 | 11 of 11 | 10.6 % |
| median of seven replays, lines times 0.9 to 1.1 | 18 of 55 | 6 of 11 | 4.9 % |
| median of all these replays | 34 of 55 | 3 of 11 | 7.0 % |
| middle between low and high | 28 of 55 | 10 of 11 | 5.2 % |

The median of three gains the pairs with 24 and loses those with 16: one pair more of
55 is no evidence.

## What these numbers do not show

- The rule that a workspace grows in proportion to the batch, unless three recordings
  lie on a line, was chosen among five variants by their errors on these very
  recordings, those of resnet in particular; the rule for requests without a partner
  was made after a look at such requests of all three programs. The laws of low and
  high, too, were chosen with these recordings at hand. The rows of resnet are
  therefore no test on unseen data. gpt2 had the same errors under all five variants.
- The command is given the memory limit. Without --limit, the reader takes the retry
  in the recording of llama_ckpt at batch 16 for an empty_cache call, and predictions
  from it for smaller batch sizes are too low.
"""

TABLE = """
## {program}

Largest batch size of the grid that fits: {largest}.

| pair | reserves of half | worst error above | worst error, all | truth in the range, above | warnings above | largest predicted | wrong OOMs | uncertain requests |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def facts_of(program, truth, found):
    """What the text says of the program with the worst errors."""
    straight, others = other_sizes(truth)
    rows = workspace_rows(truth)
    near = [FACTORS.index(factor) for factor in (0.99, 1.01)]
    one = max(abs(float(line.split("|")[5 + column].strip(" %")))
              for line in rows.splitlines() for column in near)
    return {"worst": program, "straight": straight, "others": others,
            "workspaces": rows, "one": f"{one:.1f} %",
            "templates": by_template(found),
            "factors": " | ".join(f"{100 * factor - 100:+.0f} %"
                                  for factor in FACTORS),
            "bars": "---|" * len(FACTORS)}


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(PAGES, "batch.md")
    tables, lines, ranges, all_found, torch = [], [], [], {}, ""
    for program in programs():
        truth, found = outcomes(program)
        all_found[program] = found
        torch = next(iter(truth.values()))["torch"]
        lines.append(summary(program, truth, found))
        ranges += [range_row(program, found, where)
                   for where in ("above", "below")]
        tables.append(TABLE.format(
            program=program, largest=found[0].true_largest,
            rows="\n".join(row(truth, outcome) for outcome in found)))
    worst = max(all_found, key=lambda program: max(
        abs(outcome.worst(0)) for outcome in all_found[program]))
    llama = max(abs(outcome.worst(0)) for outcome in all_found["llama_ckpt"])
    with open(target, "w", encoding="utf-8") as file:
        file.write(HEAD.format(
            torch=torch, summary="\n".join(lines), ranges="\n".join(ranges),
            llama=f"{100 * llama:.2f} %",
            **facts_of(worst, recordings(worst), all_found[worst])))
        file.write("".join(tables))


if __name__ == "__main__":
    main()
