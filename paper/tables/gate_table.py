#!/usr/bin/env python3
"""gate_table.py run [JOBS] | page: what `python -m fragsim.gate` says of changes whose effect
on memory is known.

`run` makes data/gate.csv: for each pair of gate/regressions, of which public threads
tell (one file: lines that end with `# before` and `# after` are in one program of the
pair only; `# grows` marks the line that allocates what grew), and for each of the
HARMLESS changes of each program of gate/programs, the baseline is stored with the
first program, and the gate judges the second. Those of REPEATED also run
REPEATS times unchanged. An interrupted run continues
(data/gate.csv.partial-rows). `page` makes pages/gate.md from the data.
Environment: FRAGSIM (default build/fragsim), FRAG_DRY_PYTHON (a Python with PyTorch's
build for CUDA and transformers; `fragsim dry --setup` makes one).
"""
import concurrent.futures
import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

PAPER = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
ROOT = os.path.dirname(PAPER)
REGRESSIONS, PROGRAMS = (os.path.join(PAPER, "gate", name)
                         for name in ("regressions", "programs"))
DATA = os.path.join(PAPER, "data", "gate.csv")
PAGE = os.path.join(PAPER, "pages", "gate.md")
FRAGSIM = os.path.realpath(os.environ.get("FRAGSIM",
                                          os.path.join(ROOT, "build", "fragsim")))
REPEATED, REPEATS = ("mlp", "lstm"), 10
COLUMNS = ["kind", "name", "program", "source", "live_before_bytes",
           "live_after_bytes", "need_before_bytes", "need_after_bytes", "says",
           "site", "named_at", "seconds"]

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import data_header  # pylint: disable=wrong-import-position


# ---- the harmless changes: functions of a program's files, by name ----

def changed(text, pattern, new, count=0):
    """The text with the pattern replaced; it must be there."""
    made, found = re.subn(pattern, new, text, count=count, flags=re.M)
    assert found, f"expected {pattern!r} in the program, found none"
    return made


def replacing(pattern, new, count=0):
    return lambda files: {"train.py": changed(files["train.py"], pattern, new, count)}


def function(text, name):
    """The source of a function at the top level."""
    return re.search(rf"^def {name}\(.*?\n\n\n", text, re.M | re.S).group()


def first_function(files):
    """The step comes before everything that it calls."""
    text = files["train.py"]
    body = function(text, "step")
    return {"train.py": changed(text.replace(body, ""), "^class Net", body + "class Net",
                                1)}


def other_file(files):
    """The loss moves to a module of its own."""
    text = files["train.py"]
    body = function(text, "loss_of")
    return {"losses.py": "import torch\nfrom torch import nn\n\n\n" + body.strip() + "\n",
            "train.py": changed(text.replace(body, ""), "^SEED",
                                "from losses import loss_of\n\nSEED", 1)}


def swapped_layers(files):
    """Two layers of one shape are made in the other order."""
    return {"train.py": changed(files["train.py"],
                                r"^( +self\.first = .*\n)( +self\.second = .*\n)",
                                r"\2\1")}


HARMLESS = {
    "comments above everything": replacing("^import torch$", "# A note.\n" * 9
                                           + "import torch", 1),
    "docstrings": replacing(r"^(def .*:\n)", r'\1    """What it says."""\n'),
    "function renamed": replacing(r"\bstep\((?=model)", "train_one("),
    "class renamed": replacing(r"\bNet\b", "Network"),
    "variable renamed": replacing(r"\boptimizer\b", "opt"),
    "layer renamed": replacing(r"\bself\.first\b", "self.entry"),
    "file renamed": lambda files: {"fit.py": files["train.py"]},
    "function moved to another file": other_file,
    "functions in another order": first_function,
    "layers made in another order": swapped_layers,
    "other seed": replacing("^SEED = 0", "SEED = 1234"),
    "other learning rate": replacing("^LR = 1e-3", "LR = 3e-4"),
    "other dropout": replacing("^DROPOUT = 0.1", "DROPOUT = 0.3"),
    "two workers": replacing("^WORKERS = 0", "WORKERS = 2"),
    "more steps": replacing("^STEPS = 8", "STEPS = 11"),
    "shapes are logged": replacing("^    loss.backward", "    print(loss.shape, loss.dtype"
                                   ", flush=True)\n    loss.backward"),
    "norm of the gradients is logged": replacing(
        r"^    optimizer.step\(\)$",
        "    print(sum(p.grad.norm().item() for p in model.parameters()\n"
        "              if p.grad is not None))\n    optimizer.step()"),
    "loss is checked": replacing(
        r"^    loss.backward\(\)$", "    assert loss.ndim == 0, loss.shape\n    if torch."
        "isnan(loss):\n        raise ValueError(\"not a number\")\n    loss.backward()"),
    "step is timed": replacing(
        r"^(    loss = loss_of\(model, batch\)\n(?:    .*\n)*?)    return loss.item\(\)",
        "    import time\n    begin = time.perf_counter()\n"
        r"\1    print(time.perf_counter() - begin)" "\n    return loss.item()"),
    "optimizer in a function": replacing(
        r"^    optimizer.step\(\)\n    optimizer.zero_grad\(\)\n((?:.*\n)*?)\n\ndef main",
        r"    advance(optimizer)\n\1\n\ndef advance(one):\n    one.step()\n"
        r"    one.zero_grad()\n\n\ndef main"),
}


# ---- the pairs ----

def half(text, without):
    """One program of a pair, and the numbers of its marked lines, with "backward" if one
    of them is the backward pass."""
    lines = [line for line in text.splitlines()
             if not line.endswith("# " + without)]
    marked = {number for number, line in enumerate(lines, 1)
              if re.search("# (after|grows)$", line)}
    if any(".backward(" in line for line in lines if line.endswith("# grows")):
        marked.add("backward")
    return re.sub("  # (before|after|grows)$", "", "\n".join(lines) + "\n",
                  flags=re.M), marked


def pairs():
    """kind, name, program, source, files before and after, marked lines."""
    for name in sorted(os.listdir(REGRESSIONS)):
        with open(os.path.join(REGRESSIONS, name), encoding="utf-8") as file:
            text = file.read()
        (before, _), (after, marked) = half(text, "after"), half(text, "before")
        source = " ".join(re.findall(r"(?:[\w.-]+/[\w.-]+)?#\d+",
                                     text.split('"""')[1]))
        yield ("regression", name[:-3], name[:-3], source, {"train.py": before},
               {"train.py": after}, marked)
    for program in sorted(os.listdir(PROGRAMS)):
        with open(os.path.join(PROGRAMS, program), encoding="utf-8") as file:
            files = {"train.py": file.read()}
        for name, change in HARMLESS.items():
            yield "harmless", name, program[:-3], "", files, change(files), set()
        for number in range(REPEATS if program[:-3] in REPEATED else 0):
            yield ("equal", f"run {number + 1}", program[:-3], "", files, files, set())


# ---- the runs ----

def gate(folder, baseline, files, *options):
    """The gate's answer on these files; its JSON, and seconds."""
    place = os.path.join(folder, "program")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    for name, text in files.items():
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(text)
    script = "fit.py" if "fit.py" in files else "train.py"
    answer = os.path.join(folder, "answer.json")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "fragsim.gate", "--baseline", baseline, "--json", answer,
         *options, "--", os.environ["FRAG_DRY_PYTHON"], script],
        cwd=place, capture_output=True, text=True, check=False,
        env={**os.environ, "FRAGSIM": FRAGSIM,
             "PYTHONPATH": os.path.join(ROOT, "sim", "python")})
    seconds = time.monotonic() - begin
    if done.returncode not in (0, 1):
        raise SystemExit(f"{files}: exit {done.returncode}: {done.stderr[-3000:]}")
    with open(answer, encoding="utf-8") as file:
        return json.load(file), seconds


def place_of(found, marked):
    """Where the first marked line is among the sites that grew, the largest first; 0 if
    it is not among them. The backward pass has no stack: its site is that of
    backward()."""
    for place, site in enumerate(found["sites"], 1):
        line = re.search(r":(\d+)\)$", site)
        if (int(line.group(1)) in marked) if line else "backward" in marked:
            return place
    return 0


def row_of(pair, baseline, folder):
    kind, name, program, source, _, after, marked = pair
    found, seconds = gate(folder, baseline, after)
    live, need = found["measures"]
    return [kind, name, program, source, live["before"], live["after"], need["before"],
            need["after"], "; ".join(found["reasons"]) or "nothing",
            found["sites"][0] if found["sites"] else "",
            place_of(found, marked) if kind == "regression" else "", f"{seconds:.1f}"]


def journal():
    """The rows of a run that was interrupted, by kind, name and program."""
    if not os.path.exists(DATA + ".partial-rows"):
        return {}
    with open(DATA + ".partial-rows", encoding="utf-8", newline="") as file:
        return {tuple(row[:3]): row for row in csv.reader(file)
                if len(row) == len(COLUMNS)}


def rows_of(group, done=None):
    """The rows of the pairs that have one baseline; those that are done are taken."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        baseline = os.path.join(folder, "baseline.zip")
        for pair in group:
            row = (done or {}).get(pair[:3])
            if row is None:
                if not os.path.exists(baseline):
                    gate(folder, baseline, pair[4], "--update")
                row = row_of(pair, baseline, folder)
                with open(DATA + ".partial-rows", "a", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerow(row)
                print(*row, flush=True)
            rows.append(row)
    return rows


def run(jobs=2):
    groups = [list(of) for _, of in itertools.groupby(pairs(), lambda pair: pair[:3:2])]
    done = journal()
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        rows = list(itertools.chain.from_iterable(
            pool.map(lambda group: rows_of(group, done), groups)))
    with open(DATA + ".new", "w", encoding="utf-8", newline="") as file:
        file.write(data_header.replayed(FRAGSIM, "paper/tables/gate_table.py run",
                                        "dry runs of paper/gate"))
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows(rows)
    os.replace(DATA + ".new", DATA)
    if os.path.exists(DATA + ".partial-rows"):
        os.remove(DATA + ".partial-rows")


# ---- the page ----

def percent(row, what):
    before, after = (int(row[f"{what}_{side}_bytes"]) for side in ("before", "after"))
    return 100 * (after / before - 1)


def size(row, column):
    return f"{int(row[column]) / 2**20:.1f}"


def cell(text):
    return text.replace("|", "\\|")


def table(head, rows):
    cells = [head.split("|"), ["---"] * (head.count("|") + 1), *rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in cells)


def span(rows, what):
    """The least and the largest change, in percent."""
    found = [percent(row, what) for row in rows]
    return f"{min(found):+.2f} to {max(found):+.2f} %"


def sums(rows):
    """Caught, missed and false, and the spread of what did not change."""
    kinds = {kind: [r for r in rows if r["kind"] == kind]
             for kind in ("regression", "harmless", "equal")}
    fails = {kind: [r for r in of if r["says"] != "nothing"] for kind, of in kinds.items()}
    named = [r for r in fails["regression"] if r["named_at"] == "1"]
    return table("changes|runs|the gate says no|live at the peak|need", [
        [words, str(len(kinds[kind])), str(len(fails[kind])), span(kinds[kind], "live"),
         span(kinds[kind], "need")]
        for kind, words in (("regression", "regressions"), ("harmless", "harmless"),
                            ("equal", "none: the same program again"))]), \
        len(kinds["regression"]) - len(fails["regression"]), len(named), fails


def thresholds(rows):
    """What other thresholds, and one measure alone, would have said."""
    made = []
    for limit in (0.1, 0.5, 1, 2, 5, 10):
        counts = [str(sum(r["kind"] == kind and any(percent(r, what) > limit
                                                    for what in measures) for r in rows))
                  for measures in (("live",), ("need",), ("live", "need"))
                  for kind in ("regression", "harmless", "equal")]
        made.append([f"{limit:g} %", *("/".join(counts[at:at + 3]) for at in (0, 3, 6))])
    return table("allowed growth|live at the peak alone|need alone|both", made)


def page():
    head, rows = data_header.read_csv(DATA)
    counted, missed, named, fails = sums(rows)
    seconds = sorted(float(r["seconds"]) for r in rows)
    regressions = [r for r in rows if r["kind"] == "regression"]
    differ = [r for r in rows if r["kind"] == "harmless"
              and (percent(r, "live") or percent(r, "need"))]
    same = sum(not percent(r, "live") and not percent(r, "need") for r in rows
               if r["kind"] != "regression")
    text = f"""# The gate for pull requests

{textwrap.fill(
    f"`python -m fragsim.gate` runs some steps of a program without a GPU and compares the "
    f"run with a stored one. This page says what it answers for changes whose effect is "
    f"known: {len(regressions)} regressions of which public threads tell, written as small "
    f"programs before and after (`paper/gate/regressions`); "
    f"{sum(r['kind'] == 'harmless' for r in rows)} harmless changes, {len(HARMLESS)} of each "
    f"of {len(os.listdir(PROGRAMS))} programs (`paper/gate/programs`); and two of these "
    f"programs again without a change. The gate allows a growth of 2 %.", 90)}

`FRAG_DRY_PYTHON=env/bin/python python3 paper/tables/gate_table.py run` made the data
({head.split(";")[0]}), `gate_table.py page` this page.

{counted}
{textwrap.fill(
    f"Of {len(regressions)} regressions {len(fails['regression'])} are caught and {missed} "
    f"is missed; of the harmless changes {len(fails['harmless'])} are refused, and of the "
    f"equal runs {len(fails['equal'])}; in {same} of these {len(rows) - len(regressions)} "
    f"runs the live memory and the need are equal to the byte. The site that grew "
    f"most is the line that was changed, or the line that allocates what grew, in {named} of "
    f"the {len(fails['regression'])}. What is missed keeps 512 bytes a step: the comment "
    f"names the line, and the gate refuses growth from step to step only if it reaches the "
    f"allowed growth within 10,000 steps. A run of the gate took {seconds[0]:.0f} to "
    f"{seconds[-1]:.0f} seconds (median {seconds[len(seconds) // 2]:.0f}) on two cores that "
    f"many programs shared; nearly all of it is the import of PyTorch.", 90)}

## Regressions

""" + table("change|thread|live, MiB|now|change|need, MiB|now|change|the gate|what grew "
            "most|place", [
                [f"`{r['name']}`", r["source"], size(r, "live_before_bytes"),
                 size(r, "live_after_bytes"), f"{percent(r, 'live'):+.2f} %",
                 size(r, "need_before_bytes"), size(r, "need_after_bytes"),
                 f"{percent(r, 'need'):+.2f} %",
                 "passes" if r["says"] == "nothing" else "refuses",
                 f"`{cell(r['site'])}`" if r["site"] else "-", r["named_at"] or "-"]
                for r in regressions]) + """
`unknown` is the backward pass, which PyTorch runs in a thread without a Python stack; it
is the right answer where gradients grow. `need` is the least memory from which on no
request fails.

## Harmless changes that are not the same to the byte

""" + (table("change|program|live|need|the gate", [
        [r["name"], r["program"], f"{percent(r, 'live'):+.3f} %",
         f"{percent(r, 'need'):+.3f} %",
         "passes" if r["says"] == "nothing" else "refuses: " + r["says"]]
        for r in differ]) if differ else "None of them.\n") + """
## Where it stops

- Sizes of these programs do not depend on the seed. Where they do, as of batches that are
  padded to their longest row, the steps of the gate need fixed data.
- The peaks of two runs are two moments. `zero_grad_late` moves the peak from the backward
  pass to the forward pass: what the gate names first are the activations that are live
  there, and not the gradients beside them.

## Other thresholds

Regressions / harmless changes / equal runs that grow by more than the threshold:

""" + thresholds(rows)
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    {"run": run, "page": page}[sys.argv[1]](*sys.argv[2:])
