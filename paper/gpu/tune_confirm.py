#!/usr/bin/env python3
"""tune_confirm.py JOBS_FOLDER ORACLE OUT.csv [-j N]: runs the jobs of
`tune_table.py --jobs` in PyTorch's own allocator on this machine's GPU.

ORACLE is ../shared/oracle/torch_oracle.py, which replays an event stream
through torch.cuda's allocator in its own process. Writes one row for each job:
predicted and real peak reserved in bytes, with device, driver, PyTorch and
date. Streams may be compressed with xz. Exit 1 if a job failed or a peak
differs.
"""
import datetime
import json
import lzma
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from data_header import measured, write_csv  # noqa: E402

COLUMNS = ["trace", "settings", "predicted", "real", "predicted_first_oom",
           "real_first_oom", "device", "driver", "torch", "date"]


def device():
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version",
         "--format=csv,noheader"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].split(", ")


def unpack(folder):
    for name in os.listdir(folder):
        if name.endswith(".events.xz"):
            path = os.path.join(folder, name)
            with lzma.open(path) as packed, open(path[:-3], "wb") as out:
                out.write(packed.read())


def main():
    folder, oracle, out = sys.argv[1:4]
    width = sys.argv[5] if sys.argv[4:5] == ["-j"] else "1"
    unpack(folder)
    with open(os.path.join(folder, "jobs.jsonl"), encoding="utf-8") as lines:
        jobs = {(os.path.basename(j["events"]).rsplit(".", 1)[0], j["conf"]): j
                for j in map(json.loads, lines)}
    done = subprocess.run(
        [sys.executable, os.path.abspath(oracle), "jobs.jsonl", "-j", width],
        cwd=folder, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr[-2000:])
    name, driver = device()
    rows, equal = [], 0
    for answer in map(json.loads, done.stdout.splitlines()):
        if "error" in answer:
            print(answer)
            continue
        job = jobs[answer["trace"], answer["conf"]]
        predicted = job["predicted"]
        rows.append(dict(
            trace=answer["trace"], settings=answer["conf"],
            predicted=predicted["peak_reserved"],
            real=answer["peak_reserved"],
            predicted_first_oom=predicted["first_oom_index"],
            real_first_oom=answer["first_oom_index"], device=name,
            driver=driver, torch=answer["torch"],
            date=datetime.date.today().isoformat()))
        equal += predicted["peak_reserved"] == answer["peak_reserved"]
    rows.sort(key=lambda r: (r["trace"], r["settings"]))
    write_csv(out, measured(name, driver, datetime.date.today(),
                            "paper/gpu/tune_confirm.py"), COLUMNS, rows)
    print(f"{equal} of {len(jobs)} peaks equal, {len(rows)} answered")
    return 0 if equal == len(jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
