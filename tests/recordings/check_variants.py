#!/usr/bin/env python3
"""check_variants.py: predicts recorded runs of a program from another run of it.

../shared/recorded/dev holds programs that were recorded several times: NAME with
default settings and without a limit, NAME__* with other settings or under a
limit of the process. The recording NAME is replayed under the settings and the
limit of each variant. The result is compared with what PyTorch wrote beside the
variant: peak reserved to the byte, whether the program died, and the event of
its death. The limit is also passed as a capacity; a full device refuses
later, so this must agree less often.

A prediction may differ for three reasons only, and each is shown:
- The program caught an OOM and went on with other requests, as cuDNN does when it
  tries a smaller workspace. Up to this OOM the peak and the event are equal.
- The variant made other requests (its history, read here without fragsim). Replayed,
  they have the recorded peak.
- Addresses decided between equal blocks. The requests are the same, and those of the
  variant have the predicted peak at predicted addresses and the recorded one at
  recorded addresses. A death is right.

Prints `N of M` for each number and names each difference. Exit 1 if a difference
has no such reason, 77 if ../shared or the tool is absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import concurrent.futures
import functools
import glob
import json
import lzma
import os
import pickle
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SHARED

DEV = os.path.join(SHARED, "recorded", "dev")
SEGMENTS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1,
            "segment_unmap": -1}
REASONS = ("an OOM that the program survived", "other requests", "addresses")
KINDS = {"limit": "--process-limit", "capacity": "--capacity"}


@functools.lru_cache(maxsize=4)
def history(name):
    """(requests and frees, peak reserved) of a recording up to its first OOM, in
    their order. A free names the number of its request."""
    with lzma.open(os.path.join(DEV, f"{name}.pickle.xz")) as stream:
        entries = pickle.load(stream)["device_traces"][0]
    numbers, events, count, reserved, peak = {}, [], 0, 0, 0
    for entry in entries:
        action, size = entry["action"], entry["size"]
        if action == "oom":
            break
        reserved += SEGMENTS.get(action, 0) * size
        peak = max(peak, reserved)
        if action == "alloc":
            numbers[entry["addr"]] = count
            count += 1
            events.append(("alloc", size, entry["stream"]))
        elif action == "free_completed":
            events.append(("free", numbers.pop(entry["addr"])))
    return events, peak


def replay(name, told, bound):
    """The row of a recording under the settings of the variant and its limit,
    which is passed with that option."""
    policy = f"torch:{told['conf']}" if told["conf"] else "torch"
    size = f"{told['cap']}B" if told["cap"] else "inf"
    command = [FRAGSIM, "replay", os.path.join(DEV, f"{name}.pickle.xz"), "-q",
               "--as-recorded", "--stop-at-oom", "--json", "-", "-p", policy,
               bound, size, "--total", str(told["total_memory"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n"
                         f"exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["results"][0]


def peak_at_recorded_addresses(name):
    done = subprocess.run([FRAGSIM, "validate", "-q", "--json", "-",
                           os.path.join(DEV, f"{name}.pickle.xz")],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["results"][0]["peak_reserved_replayed"]


def same_requests(name):
    """Whether the variant's requests up to its first OOM are its default's."""
    own, base = history(name)[0], history(name.split("__")[0])[0]
    return own == base[:len(own)]


def equals(row, told):
    """Whether that run has the recorded peak, and died if the variant died."""
    return row["peak_reserved_bytes"] == told["peak"] and \
        (row["num_ooms"] > 0) == told["died"]


def reason(name, told, predicted):
    """Why the prediction differs from the record, or None."""
    events, peak = history(name)
    if told["stats"]["num_ooms"] > told["died"]:
        return "an OOM that the program survived" if \
            (peak, len(events)) == (predicted["peak_reserved_bytes"],
                                    predicted["first_oom_event"]) else None
    own = replay(name, told, "--process-limit")  # at predicted addresses
    if not same_requests(name):
        return "other requests" if equals(own, told) else None
    return "addresses" if \
        own["peak_reserved_bytes"] == predicted["peak_reserved_bytes"] \
        and peak_at_recorded_addresses(name) == told["peak"] \
        and (predicted["num_ooms"] > 0) == told["died"] else None


def judge(name):
    """One variant: what was recorded, what is predicted, and why they differ."""
    with open(os.path.join(DEV, f"{name}.json"), encoding="ascii") as file:
        told = json.load(file)
    told["peak"] = told["stats"]["reserved_bytes.all.peak"]
    told["died"] = told["oom"] is not None
    seen = {"name": name, "told": told, "event": None,
            **{kind: replay(name.split("__")[0], told, option)
               for kind, option in KINDS.items()}}
    seen["right"] = equals(seen["limit"], told)
    seen["why"] = "" if seen["right"] else reason(name, told, seen["limit"])
    if told["died"] and same_requests(name):
        seen["event"] = len(history(name)[0])
    return seen


def peak_equals(seen, kind):
    return seen[kind]["peak_reserved_bytes"] == seen["told"]["peak"]


def death_equals(seen, kind):
    return (seen[kind]["num_ooms"] > 0) == seen["told"]["died"]


def event_equals(seen, kind):
    return seen[kind]["first_oom_event"] == seen["event"]


def count(variants):
    """{what: {kind: (how many agree, of how many)}} of those under a limit"""
    limited = [v for v in variants if v["told"]["cap"]]
    questions = {
        "peaks": (peak_equals, limited),
        "deaths": (death_equals, [v for v in limited if v["told"]["died"]]),
        "survivals": (death_equals,
                      [v for v in limited if not v["told"]["died"]]),
        "events of deaths after the same requests":
            (event_equals, [v for v in limited if v["event"] is not None])}
    return {what: {kind: (sum(agrees(v, kind) for v in asked), len(asked))
                   for kind in KINDS}
            for what, (agrees, asked) in questions.items()}


def report(variants, counts):
    wrong = [v for v in variants if not v["right"]]
    for v in wrong:
        print(f"{v['name']}: peak {v['told']['peak']}, predicted "
              f"{v['limit']['peak_reserved_bytes']}; died {v['told']['died']}, "
              f"predicted {v['limit']['num_ooms'] > 0}: "
              f"{v['why'] or 'not explained'}")
    for what, kinds in counts.items():
        for kind, (agreed, asked) in kinds.items():
            print(f"{what}, as a {kind}: {agreed} of {asked}")
    free = [v for v in variants if not v["told"]["cap"]]
    print(f"peaks without a limit: {sum(v['right'] for v in free)} of "
          f"{len(free)}")
    for why in REASONS:
        print(f"differences by {why}: {sum(v['why'] == why for v in wrong)} of "
              f"{len(wrong)}")


def variants():
    """The names of the recordings that are predicted."""
    return sorted(os.path.basename(path)[:-len(".json")] for path in
                  glob.glob(os.path.join(DEV, "*__*.json")))


def main():
    names = variants()
    if not names or not os.access(FRAGSIM, os.X_OK):
        print(f"check_variants: no tool at {FRAGSIM} or no recordings; skipped")
        return 77
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        seen = list(pool.map(judge, names))
    counts = count(seen)
    report(seen, counts)
    agreed, asked = counts["events of deaths after the same requests"]["limit"]
    return 0 if all(v["why"] is not None for v in seen) and \
        agreed == asked > 0 and \
        all(counts[what]["limit"] > counts[what]["capacity"]
            for what in ("peaks", "deaths")) else 1


if __name__ == "__main__":
    sys.exit(main())
