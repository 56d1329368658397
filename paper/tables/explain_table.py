#!/usr/bin/env python3
"""explain_table.py: explains every recording of ../shared/recorded/dev, causes and
batch that ran out of memory.

For each recording the table states the cause, its evidence, and the advice. Two
checks come with it: the failure must be reproduced by the replay, and live and
cached bytes must be those that the message of PyTorch's own error states ("of
the allocated memory ... is allocated by PyTorch, and ... is reserved by PyTorch
but unallocated"). A second table holds the words of explain against the
complete runs: of the recordings of dev/ the run without a limit is known, and
it is replayed with each setting under the limit. A third one holds the share
of the batch against recordings at other batch sizes. The page ends with what
PyTorch's own allocator said on a GPU (data/explain_real.csv).

Writes pages/explain.md.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys

from data_header import read_csv
from places import DATA, PAGES, ROOT
from policy_table import FRAGSIM, SHARED

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MESSAGE = re.compile(r"allocated memory ([\d.]+) (\w+) is allocated by PyTorch"
                     r".*? and ([\d.]+) (\w+) is reserved by PyTorch but")
REAL = os.path.join(DATA, "explain_real.csv")


def died(folder):
    """The recordings whose counters contain the text of an error."""
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        snapshot = path[:-5] + ".pickle.xz"
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        if facts.get("oom") and os.path.exists(snapshot):
            yield snapshot, facts


def explain(fragsim, snapshot, *options):
    done = subprocess.run([fragsim, "explain", snapshot, "-q", "--json", "-",
                           *options], check=True, capture_output=True)
    return json.loads(done.stdout)["results"][0]


def close(stated, unit, found):
    """The message has two digits after the point."""
    size = UNITS[unit]
    return abs(float(stated) * size - found) <= 0.0051 * size


def agrees(answer, facts):
    found = MESSAGE.search(facts["oom"])
    active = answer["live_bytes"] + answer["pending_bytes"]
    return (close(found[1], found[2], answer["live_bytes"])
            or close(found[1], found[2], active)) and \
        close(found[3], found[4], answer["reserved_bytes"]
              - answer["live_bytes"])


def size(number):
    return f"{number / (1 << 20):,.0f} MiB"


def serving(answer, *kinds):
    return [c["change"] for c in answer["changes"] if c["kind"] in kinds
            and c["result"] == "serves what was recorded"]


def row(name, answer, facts):
    needed = answer["requested_bytes"] + answer["request"]["requested_bytes"]
    advice = answer["advice"]
    return [name, size(answer["request"]["requested_bytes"]),
            size(answer["limit_bytes"]), size(answer["requested_bytes"]),
            size(answer["cached_bytes"]),
            size(answer["own_largest_hole_bytes"]),
            f"{100 * needed / answer['limit_bytes']:.2f} %",
            "yes" if answer["request"]["reproduced"] else "NO",
            "yes" if agrees(answer, facts) else "NO", answer["cause"],
            advice["change"] or advice["kind"],
            "; ".join(serving(answer, "setting")) or "none",
            "; ".join(serving(answer, "capacity")) or "none"]


HEAD = ["recording", "request", "limit", "live", "cached", "largest own hole",
        "live and request, of the limit", "reproduced", "as PyTorch's message",
        "cause", "advice", "settings that serve what was recorded",
        "limit that does"]


def complete_run(snapshot):
    return os.path.join(os.path.dirname(snapshot), os.path.basename(snapshot)
                        .split("__")[0] + ".pickle.xz")


def judged(snapshot, facts, answer):
    """The settings of an answer, and the requests that fail with each of them
    in the complete run."""
    said = [c for c in answer["changes"] if c["kind"] == "setting"]
    policies = ["torch:" + c["change"] if ":" in c["change"] else "torch"
                for c in said]
    done = subprocess.run(
        [FRAGSIM, "replay", "-q", complete_run(snapshot), "--process-limit",
         f"{facts['cap']}B", "--json", "-",
         *(w for p in policies for w in ("-p", p))],
        check=True, capture_output=True)
    for change, run in zip(said, json.loads(done.stdout)["results"]):
        yield change["change"], change["result"], run["num_ooms"]


def batches():
    """For each limit that a recorded batch just fits: the shares that explain
    says of the recordings that cannot fit it."""
    found = collections.defaultdict(list)
    runs = collections.defaultdict(dict)
    for path in glob.glob(os.path.join(SHARED, "recorded", "batch", "*.json")):
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        if not facts["oom"]:
            runs[facts["workload"]][facts["batch"]] = path[:-5], facts
    for name, sizes in sorted(runs.items()):
        for small, (_, used) in sorted(sizes.items()):
            limit = used["peak_reserved"]
            cannot = sorted(b for b, (_, f) in sizes.items()
                            if f["peak_allocated"] > limit)
            for large in cannot[:4]:
                answer = explain(FRAGSIM, sizes[large][0] + ".pickle.xz",
                                 "--process-limit", f"{limit}B", "--total",
                                 f"{used['total_memory']}B")
                share, = [int(re.search(r"(\d+) %", c["change"])[1])
                          for c in answer["changes"] if c["kind"] == "batch"]
                found[name].append((small, share / 100 * large, cannot[0]))
    return found


def put_confirmed(out):
    """What PyTorch's own allocator said (explain_confirm.py)."""
    if not os.path.exists(REAL):
        return
    _, rows = read_csv(REAL)
    equal = [r for r in rows if r["served"] == r["served_by_pytorch"]]
    print(f"\n## The same changes on a GPU\n\nPyTorch's own allocator on an H100, with the requests up to the "
          f"failed one: {len(equal)} of {len(rows)} answers are the same, on "
          f"{len({r['recording'] for r in rows})} recordings (the failure "
          "itself, and every setting and limit that was tried).", file=out)
    for r in rows:
        if r not in equal:
            print(f"It does not serve the request of {r['recording']} with "
                  f"{r['change']}.", file=out)


def put_table(head, rows, out):
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(map(str, cells)) + " |", file=out)


def put_words(words, out):
    counts = collections.Counter((result, ooms == 0)
                                 for _, _, result, ooms in words)
    print(f"\n## The words, and the complete runs\n\n{len(words)} settings for "
          f"{len({name for name, *_ in words})} recordings of dev/. In the "
          "complete run, under the same limit,\nno request fails, or some do.\n",
          file=out)
    put_table(["explain says", "none fails", "some fail"],
              [[word, counts[word, True], counts[word, False]]
               for word in ("serves what was recorded", "fails")], out)
    advised = [(name, change, ooms) for name, change, result, ooms in words
               if result != "fails" and change == "expandable_segments:True"]
    print(f"\n`expandable_segments:True` serves what was recorded of "
          f"{len(advised)} recordings; in {sum(o > 0 for *_, o in advised)} of "
          "their complete runs requests fail with it.", file=out)


def put_batches(found, out):
    print("\n## The share of the batch, and recordings at other batch sizes\n\n"
          "The limit is the peak reserved of the run at one batch; explain is "
          "asked about a run at a larger one,\nwhose tensors alone exceed the "
          "limit. Its share must lie between the batch that fits and the least "
          "that cannot.\n", file=out)
    rows = []
    for name, cases in found.items():
        within = sum(small <= batch < cannot for small, batch, cannot in cases)
        rows.append([name, len(cases), within,
                     f"{100 * min(b / s for s, b, _ in cases) - 100:+.0f} %",
                     f"{100 * max(b / c for _, b, c in cases) - 100:+.0f} %"])
    put_table(["program", "answers", "between", "least, to the batch that fits",
               "most, to the least that cannot"], rows, out)


def recomputed():
    """A program, what explain says that recomputing its layers leaves, and the
    recording of the same program with torch.utils.checkpoint: the peaks while
    the logits of the first step live, in bytes."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "commands"))
    import check_explain
    plain, saves = (os.path.join(SHARED, "recorded", "dev", name + ".pickle.xz")
                    for name in ("llama_varlen_frames", "llama_ckpt"))
    largest, peak = check_explain.peak_around_largest(plain)
    said, = [c for c in explain(FRAGSIM, plain, "--process-limit", "8GiB")
             ["changes"] if c["kind"] == "recompute"]
    return peak, peak - said["saved_bytes"], \
        check_explain.peak_around_largest(saves, largest)[1]


def put_recomputed(out):
    peak, said, true = recomputed()
    print("\n## Recomputing, and a recording that does it\n\n"
          f"llama_varlen asks for {size(peak)} at the peak of its first step. "
          f"With its layers recomputed, explain says {size(said)};\nllama_ckpt, "
          "the same program with gradient checkpointing, asks for "
          f"{size(true)} there.", file=out)


def put_page(rows, causes, words, found, out):
    print(f"# Why {len(rows)} recordings ran out of memory\n\n"
          "Made by `paper/tables/explain_table.py` with `fragsim explain`. Each change "
          "was replayed\nover the recording and the steps that were predicted "
          "after it, by the simulated allocator\nat the limit of the recording. "
          "A job whose live blocks and request need more than\n63/64 of its "
          "limit died of demand: no recorded job survived with more.\n", file=out)
    put_table(HEAD, rows, out)
    print(f"\nReproduced: {sum(r[7] == 'yes' for r in rows)} of {len(rows)}. "
          "Live and cached bytes as in PyTorch's message: "
          f"{sum(r[8] == 'yes' for r in rows)} of {len(rows)}. "
          f"Advice: {sum(r[10] != 'none' for r in rows)} of {len(rows)}; the "
          "others died of demand before a step was complete.", file=out)
    for name, (want, got) in causes.items():
        print(f"\nKnown cause of {name}: {want}; explained as {got}.", file=out)
    put_words(words, out)
    put_batches(found, out)
    put_recomputed(out)
    put_confirmed(out)


def main():
    rows, words = [], []
    causes = {}
    for folder in ("dev", "causes", "batch"):
        for snapshot, facts in died(os.path.join(SHARED, "recorded", folder)):
            name = os.path.basename(snapshot)[:-len(".pickle.xz")]
            answer = explain(FRAGSIM, snapshot)
            rows.append(row(name, answer, facts))
            if folder == "dev":
                words += [(name, *j) for j in judged(snapshot, facts, answer)]
            if "cause" in facts:
                causes[name] = (facts["cause"], answer["cause"])
    if not rows:
        print("explain_table: the recordings are absent; skipped")
        return 77
    with open(os.path.join(PAGES, "explain.md"), "w", encoding="utf-8") as out:
        put_page(rows, causes, words, batches(), out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
