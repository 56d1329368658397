#!/usr/bin/env python3
"""check_conf.py: checks what `fragsim conf` states.

- Every setting that the torch policy accepts is explained.
- Every setting is known to a version of PyTorch or refused by all of them.
- The measured figures that rules.c quotes: each is measured again by a replay.
  Without the shared recordings, only those on bundled ones.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, SHARED, need

DEV = os.path.join(SHARED, "recorded", "dev")
failures = []


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def conf(*args):
    done = subprocess.run([FRAGSIM, "conf", "-q", "--json", "-", *args],
                          stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode > 1:
        sys.exit(f"check_conf: {args}: exit code {done.returncode}")
    return json.loads(done.stdout)["results"]


def expect(what, is_true):
    if not is_true:
        failures.append(what)


def keys_of_the_policy():
    table = re.search(r"\} keys\[\] = \{(.*?)\n\};",
                      read("policies", "torch", "torch_conf.c"), re.S).group(1)
    return re.findall(r'\{"(\w+)", \w+\}', table)


def check_keys():
    rows = {row["key"]: row for row in conf("--keys")}
    accepted = keys_of_the_policy()
    expect("the policy's table of settings was not found", len(accepted) > 10)
    for key in accepted:
        # These are fragsim's own keys, not settings of PyTorch.
        expect(f"{key} is not explained",
               key in rows or key in ("torch_version", "experiment"))
    for key, row in rows.items():
        if row["since_minor"]:
            for minor in (row["since_minor"] - 1, row["since_minor"]):
                found = conf(f"{key}:?", "--torch-version", f"2.{minor}")[0]
                known = not any("does not know" in finding["text"]
                                for finding in found["findings"])
                expect(f"{key} in 2.{minor}: known is {known}",
                       known == (minor == row["since_minor"]))


def peak(trace, text):
    done = subprocess.run([FRAGSIM, "replay", "-q", "--json", "-", trace, "-p",
                           f"torch:{text}"],
                          stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)["results"][0]["peak_reserved_bytes"]


def check_figure(trace, text, base, stated):
    ratio = peak(trace, text) / peak(trace, base)
    print(f"{os.path.basename(trace)} {text}: {ratio:.3f}, stated {stated}")
    expect(f"{text} on {trace}: {ratio:.3f} times, stated {stated}",
           abs(ratio - stated) < 0.05)


def check_figures():
    rules = read("sim", "answers", "conf", "rules.c")
    splits = re.search(r"measured_splits\[\] = \{(.*?)\};", rules, re.S).group(1)
    splits = re.findall(r"\{(\d+), ([\d.]+)\}", splits)
    expect("the measured figures were not found", len(splits) >= 4)
    expect("64 MiB is 5.3 times worse", splits[0] == ("64", "5.3"))
    stated = re.search(r"max_split_size_mb:128 reserved\s*\"\s*\"([\d.]+) times",
                       rules)
    expect("the figure with expandable segments was not found", stated)
    if stated:
        check_figure(os.path.join(BUNDLED, "gpt2_train.pickle.xz"),
                     "expandable_segments:True,max_split_size_mb:128",
                     "expandable_segments:True", float(stated.group(1)))
    trace = os.path.join(DEV, "lstm_varlen.pickle.xz")
    if not os.path.exists(trace):
        print("check_conf: no shared recordings; their figures are skipped")
        return
    for mib, ratio in splits:
        check_figure(trace, f"max_split_size_mb:{mib}", "", float(ratio))


def main():
    need(FRAGSIM)
    check_keys()
    check_figures()
    for failure in failures:
        print(f"check_conf: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
