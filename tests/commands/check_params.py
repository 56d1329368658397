#!/usr/bin/env python3
"""check_params.py - every default that `fragsim policies` prints is accepted,
alone and all together, and changes nothing. A setting of PyTorch that is off by
default has no value that means so: -p and `fragsim conf` refuse the words that
might mean it, with the same reason.

Environment: FRAGSIM (the tool; default build/fragsim)."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, attempt

TRACE = os.path.join(ROOT, "tests/cli/small.csv")
# Words for "off" that PyTorch refuses.
OFF = {"max_split_size_mb": "inf", "roundup_power2_divisions": "0",
       "garbage_collection_threshold": "0"}
WARNED = ["expandable_segments_reserve"]  # PyTorch only warns of a wrong value
PINNED = ["pinned_max_round_threshold_mb", "pinned_max_cached_size_mb",
          "pinned_reserve_segment_size_mb"]


def row(policy):
    done = attempt("replay", "-q", "-p", policy, "--json", "-", TRACE)
    if done.returncode:
        raise SystemExit(f"-p {policy}: {done.stderr}")
    found = json.loads(done.stdout)["results"][0]
    return found["params"], found["peak_reserved_bytes"]


def check(policy):
    plain = row(policy["name"])
    shown = attempt("policies", policy["name"]).stdout
    texts = re.findall(r"^    (\w+[:=]\S+)$", shown, re.M)
    off = re.findall(r"^    (\w+) \(off unless it is set\)$", shown, re.M)
    assert off == [p["name"] for p in policy["params"]
                   if p["default"] is None], off
    assert set(off) == set({"torch": [*OFF, *WARNED], "torch_host": PINNED}.get(
        policy["name"], [])), off
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


def check_long(folder):
    """Parameters of more than 512 characters stay whole, in results and in
    what reads them: two runs that differ in the last digit are two."""
    divisions = ",".join(f"{1 << k}:{1 << 63 - k}" for k in range(16))
    files = []
    for number in (0.1234567890123457, 0.1234567890123458):
        last = f"per_process_memory_fraction:{number:.17g}"
        long = (f"torch:roundup_power2_divisions:[{divisions}],{last},"
                "garbage_collection_threshold:0.12345678901234568,"
                "max_split_size_mb:1234567890")
        params = row(long)[0]
        assert len(params) > 512 and divisions in params, params
        assert params.endswith(last), params
        assert row(f"torch:{params}") == row(long)
        done = attempt("conf", long[len("torch:"):])
        assert done.returncode == 0 and divisions in done.stdout, done
        files.append(os.path.join(folder, str(number)))
        done = attempt("sweep", "-q", TRACE, "-p", long, "-o", files[-1])
        assert done.returncode == 0, done.stderr
    # PyTorch accepts a text of any length, and so does -p.
    text = ",".join(["max_split_size_mb:64"] * 90)
    assert row("torch:" + text) == row("torch:max_split_size_mb:64")
    both = os.path.join(folder, "both")
    done = attempt("merge", "-q", both, *files)
    assert done.returncode == 0, done.stderr
    page = os.path.join(folder, "page.html")
    done = attempt("report", "-q", both, "-o", page)
    assert done.returncode == 0, done.stderr
    with open(page, encoding="utf-8") as text:
        found = set(re.findall(r"fraction:(0\.12345678\d+)</code>", text.read()))
    assert found >= {f"{float(os.path.basename(f)):.17g}" for f in files}, found


def main():
    policies = json.loads(attempt("policies", "--json", "-").stdout)["policies"]
    count = sum(check(p) for p in policies)
    if len(policies) < 10 or count < 20:
        raise SystemExit(f"{len(policies)} policies, {count} parameters")
    for key, value in OFF.items():
        policy = attempt("replay", "-p", f"torch:{key}:{value}", TRACE)
        said = " ".join(attempt("conf", f"{key}:{value}").stdout.split())
        reason = f'{key}: expected ' + policy.stderr.partition("expected ")[2]
        reason = reason.strip().rstrip(".")
        if policy.returncode != 2 or f'found "{value}"' not in reason or \
           f"refused: {reason}." not in said:
            raise SystemExit(f"{key}:{value}: {policy.stderr}{said}")
    with tempfile.TemporaryDirectory() as folder:
        check_long(folder)
    print(f"{len(policies)} policies, {count} parameters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
