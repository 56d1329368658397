#!/usr/bin/env python3
"""explain_confirm.py --jobs FOLDER | --results FILE --on DEVICE,DRIVER,DATE: holds what `fragsim explain`
says of the recordings that ran out of memory against PyTorch's own allocator.

--jobs writes FOLDER/jobs.jsonl and the event streams: each recording up to its
failed request, under the recorded settings at the recorded limit, which must
fail, and with every setting and every limit that explain tried. The replayer of
../shared/oracle runs them on a GPU:
    torch_oracle.py FOLDER/jobs.jsonl -j 6 > results.jsonl
--results compares its answers with what explain said and writes
data/explain_real.csv (one row a job); --on says where and when they were made.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import argparse
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from data_header import measured, write_csv  # noqa: E402
from places import DATA  # noqa: E402
from policy_table import FRAGSIM, SHARED  # noqa: E402

OPS = {"alloc": 0, "free": 1, "empty_cache": 2}
REAL = os.path.join(DATA, "explain_real.csv")
COLUMNS = ["recording", "change", "limit_bytes", "served", "served_by_pytorch"]


def dead_recordings():
    folder = os.path.join(SHARED, "recorded", "dev")
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".json") or "__cap_" not in file:
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            if json.load(text)["oom"]:
                yield file[:-5], os.path.join(folder, file[:-5] + ".pickle.xz")


def explain(path):
    done = subprocess.run([FRAGSIM, "explain", "-q", path, "--json", "-"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["results"][0]


def write_events(path, count, limit, target):
    rows = subprocess.run([FRAGSIM, "export", path, "--recorded-limit", f"{limit}B"],
                          check=True, text=True,
                          capture_output=True).stdout.splitlines()[1:count + 1]
    streams = {}
    with open(target, "wb") as file:
        for op, slot, size, stream in (row.split(",") for row in rows):
            if op in OPS:
                file.write(struct.pack(
                    "<IIQQ", OPS[op], streams.setdefault(stream, len(streams))
                    if stream else 0, int(slot or 0), int(size or 0)))


def jobs_of(name, path, folder):
    answer = explain(path)
    events = os.path.join(folder, name + ".events")
    write_events(path, answer["request"]["event"] + 1,
                 answer["limit_bytes"], events)
    job = {"events": events, "conf": answer["settings"],
           "cap": answer["limit_bytes"], "recording": name, "change": "none",
           "served": False}
    yield job
    for change in answer["changes"]:
        said = dict(job, change=change["change"], served=change["served"])
        if change["kind"] == "setting":
            yield dict(said, conf=change["change"])
        elif change["kind"] == "capacity":
            yield dict(said, cap=change["limit_bytes"])


def write_jobs(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "jobs.jsonl"), "w",
              encoding="utf-8") as file:
        for name, path in dead_recordings():
            for job in jobs_of(name, path, folder):
                file.write(json.dumps(job) + "\n")


def compare(results, jobs, on):
    with open(results, encoding="utf-8") as file:
        found = {(r["trace"], r["conf"], r["cap"]): r["first_oom_index"] is None
                 for r in map(json.loads, file) if "error" not in r}
    rows = []
    with open(jobs, encoding="utf-8") as file:
        for job in map(json.loads, file):
            key = job["recording"], job["conf"], job["cap"]
            if key in found:
                rows.append([job["recording"], job["change"], job["cap"],
                             int(job["served"]), int(found[key])])
    write_csv(REAL, measured(*on, "paper/gpu/explain_confirm.py with "
                             "oracle/torch_oracle.py"), COLUMNS,
              [dict(zip(COLUMNS, row)) for row in rows])
    equal = sum(row[3] == row[4] for row in rows)
    print(f"{equal} of {len(rows)} changes on "
          f"{len({row[0] for row in rows})} recordings as PyTorch's allocator")
    for row in rows:
        if row[3] != row[4]:
            print("differs:", *row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs")
    parser.add_argument("--results")
    parser.add_argument("--on", help="needed with --results")
    args = parser.parse_args()
    if args.results:
        if not args.on or args.on.count(",") != 2:
            parser.error("--results needs --on DEVICE,DRIVER,DATE")
        compare(args.results, os.path.join(os.path.dirname(args.results),
                                           "jobs.jsonl"), args.on.split(","))
    else:
        write_jobs(args.jobs)


if __name__ == "__main__":
    main()
