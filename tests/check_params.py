#!/usr/bin/env python3
"""check_params.py - every default that `fragsim policies` prints is accepted,
alone and all together, and changes nothing. A setting of PyTorch that is off by
default has no value that means so: -p and `fragsim conf` refuse the words that
might mean it, with the same reason.

Environment: FRAGSIM (the tool; default build/fragsim)."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build/fragsim"))
TRACE = os.path.join(ROOT, "tests/cli/small.csv")
# Words for "off" that PyTorch refuses.
OFF = {"max_split_size_mb": "inf", "roundup_power2_divisions": "0",
       "garbage_collection_threshold": "0"}


def run(*command):
    return subprocess.run([FRAGSIM, *command], capture_output=True, text=True,
                          check=False)


def row(policy):
    done = run("replay", "-q", "-p", policy, "--json", "-", TRACE)
    if done.returncode:
        raise SystemExit(f"-p {policy}: {done.stderr}")
    found = json.loads(done.stdout)["results"][0]
    return found["params"], found["peak_reserved_bytes"]


def check(policy):
    plain = row(policy["name"])
    shown = run("policies", policy["name"]).stdout
    texts = re.findall(r"^    (\w+[:=]\S+)$", shown, re.M)
    off = re.findall(r"^    (\w+) \(off unless it is set\)$", shown, re.M)
    assert off == [p["name"] for p in policy["params"]
                   if p["default"] is None], off
    assert set(off) == (set(OFF) if policy["name"] == "torch" else set()), off
    if len(texts) + len(off) != len(policy["params"]):
        raise SystemExit(f"{policy['name']}: {texts}")
    for text in texts + [",".join(texts)] * bool(texts):
        found = row(f"{policy['name']}:{text}")
        if found != plain:
            raise SystemExit(f"{policy['name']}:{text}: expected {plain}, "
                             f"found {found}")
    # What a result prints as the parameters is accepted, and is the same.
    if plain[0] and row(f"{policy['name']}:{plain[0]}") != plain:
        raise SystemExit(f"{policy['name']}:{plain[0]} is another policy")
    return len(texts)


def main():
    policies = json.loads(run("policies", "--json", "-").stdout)["policies"]
    count = sum(check(p) for p in policies)
    if len(policies) < 10 or count < 20:
        raise SystemExit(f"{len(policies)} policies, {count} parameters")
    for key, value in OFF.items():
        policy = run("replay", "-p", f"torch:{key}:{value}", TRACE)
        said = " ".join(run("conf", f"{key}:{value}").stdout.split())
        reason = f'{key}: expected ' + policy.stderr.partition("expected ")[2]
        reason = reason.strip().rstrip(".")
        if policy.returncode != 2 or f'found "{value}"' not in reason or \
           f"refused: {reason}." not in said:
            raise SystemExit(f"{key}:{value}: {policy.stderr}{said}")
    print(f"{len(policies)} policies, {count} parameters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
