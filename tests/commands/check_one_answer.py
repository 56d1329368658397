#!/usr/bin/env python3
"""check_one_answer.py [--all | TRACE...]: every command gives the same answer.

`tune`, `triage`, `explain` and `fit` are asked the same question: a recording and a
bound, which is the default one, a limit of the process or a device, around what the
recorded settings need. `tune` and `triage` name the same bound, setting, odds and need,
and end with the same code; `explain` gives the advice of `triage`, word for word, if it
gives one; `fit` finds the need that the others name. Of a file with several devices,
`tune` gives one answer for all, so only bounds and needs are compared.

Prints `N of M` for each quantity, and what differs. Recordings: traces/bundled; with
--all those of ../shared too. Environment: FRAGSIM, FRAG_SHARED_DIR.
"""
import collections
import concurrent.futures
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, SHARED, attempt, need, share

# Options of the bound, and the share of the need that it gets.
BOUNDS = (("--process-limit", 0.8), ("--process-limit", 1), ("-c", 1.1))


def ask(verb, *options):
    """(exit code, the results; none where the tool refuses)"""
    done = attempt(verb, "-q", *options, "--json", "-")
    told = done.returncode in (0, 1, 3) and done.stdout
    return done.returncode, json.loads(done.stdout)["results"] if told else []


def needs(device, setting, row):
    """What is said of a setting's need, if the least one is known."""
    if row["need_bytes"] and row.get("need_is_least", row.get("is_least")):
        yield device, f"need of {setting}", (row["need_bytes"], row["enough_bytes"])


def decision(setting, said, code, is_exported):
    yield None, "decision", [setting, said["odds"], said["lived"], said["of"], code,
                             is_exported]


def tune(code, results):
    """(device, quantity, value) of all that is said."""
    result, = results
    best = result["best"]
    for case in result["cases"]:
        yield case["device"], "bound", (
            case["process_limit_bytes"] or case["capacity_bytes"], case["bound_source"])
        yield from needs(case["device"], best["settings"], case["best"])
    yield from decision(best["settings"], best, code,
                        bool(result["chosen"]) and not best["recorded"])


def triage(code, rows):
    for row in rows:
        action = row["action"]
        yield row["device"], "bound", (row["bound_bytes"], row["bound_source"])
        yield row["device"], "advice", action
        for fits in row["fits"]:
            yield from needs(row["device"], fits["setting"], fits)
    if len(rows) == 1:
        yield from decision(action["setting"], action, code,
                            (action["command"] or "").startswith("export"))


def explain(_code, rows):
    for row in rows:
        if "advice" in row:
            yield row["device"], "advice", row["advice"]


def fit(path, rows):
    """{(device, quantity): need} of the settings that triage names."""
    option = "-c" if rows[0]["bound"] == "capacity" else "--process-limit"
    policies = [word for f in rows[0]["fits"] for word in
                ("-p", "torch:" + f["setting"] if f["setting"] else "torch")]
    # The need is that of the device in question.
    total = ["--total", f"{rows[0]['bound_bytes']}B"] if option == "-c" else []
    return {(row["device"], "need of " + row["policy"].removeprefix("torch").strip(":@")):
            row["need_bytes"]
            for row in ask("fit", path, "-j", "1", option, "inf", *total, *policies)[1]}


def compare(path, *options):
    """(how often each quantity was compared, [(quantity, difference)], triage's rows)"""
    said, count, wrong = collections.defaultdict(dict), collections.Counter(), []
    answers = {say: ask(say.__name__, path, *options) for say in (tune, triage, explain)}
    for say, (code, rows) in answers.items():
        for device, quantity, value in say(code, rows) if rows else [(0, "refusal", code)]:
            said[device, quantity][say.__name__] = value
    rows = answers[triage][1]
    for key, value in fit(path, rows).items() if rows and not options else ():
        said[key] = {verb: other[0] for verb, other in said[key].items()} | {"fit": value}
    for (device, quantity), values in said.items():
        word = quantity.split(" of ")[0]
        count[word] += len(values) > 1
        if any(value != list(values.values())[0] for value in values.values()):
            wrong.append((word, f"{path} {' '.join(options)}: device {device}: {quantity}: "
                          + "; ".join(f"{verb}: {v}" for verb, v in values.items())))
    return count, wrong, rows


def check(path):
    count, wrong, rows = compare(path)
    least = max((row["fits"][0]["need_bytes"] or 0 for row in rows), default=0)
    more = [compare(path, option, f"{int(part * least)}B")
            for option, part in BOUNDS if least]
    return sum((m[0] for m in more), count), sum((m[1] for m in more), wrong)


def main():
    need(FRAGSIM)
    paths = [a for a in sys.argv[1:] if a != "--all"] or share(
        sorted(glob.glob(os.path.join(BUNDLED, "*.p*"))), 6)
    if "--all" in sys.argv:
        paths += sorted(glob.glob(os.path.join(SHARED, "recorded", "*", "*.p*")))
    count, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for some, differing in pool.map(check, paths):
            count, wrong = count + some, wrong + differing
            print(end="".join(words + "\n" for _, words in differing), flush=True)
    for word, total in count.items():
        print(f"{word}: equal in {total - sum(w == word for w, _ in wrong)} of {total}")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
