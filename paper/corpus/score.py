#!/usr/bin/env python3
"""score.py -p POLICY... [-j N] [--only NAME,...] [--share F] [--csv FILE]
score.py --reproduce [-j N] [--only NAME,...]

Scores allocator policies on the recordings of this archive, beside the stored table
(needs.csv). A POLICY is what `fragsim fit -p` takes: NAME, NAME:PARAMS, or ./mine.so for a
policy of your own. --reproduce measures every stored row again and compares it.

Of each recording and policy, one number is measured by one run of `fragsim fit`: the
*need*, the least capacity of a device from which on no request fails; and with it the
*price*, the modelled time of the driver calls on that device.

  need   N  need / lower bound, geometric mean over the recordings; the lower bound is the
            peak of the bytes that are requested and live, which no allocator goes below;
            a request that failed when it was recorded is one of them, as in a run
  price  P  driver time / that of PyTorch's default on the device that the default needs,
            geometric mean over the recordings
  score     N * (1 + F * (P - 1)): memory times time, what a job pays for, relative to an
            allocator without waste whose calls take as long as the default's. F is the
            share of a job's time that the default spends in driver calls: the median of
            the recordings whose time was recorded on a GPU. --share sets another one; 0
            scores memory alone, 1 is N * P

Means are geometric because ratios are: a policy that needs half on one recording and twice
on another is as good as the default. Less is better; the default's score is its N.

Exit codes: 0; 1: a stored row was not reproduced; 2: wrong use; 3: a file of the archive
is damaged or absent; 4: FILE cannot be written; another: that of fragsim, which failed.
Environment: FRAGSIM, the tool (default: fragsim, as a wheel installs it).
"""
import argparse
import concurrent.futures
import csv
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FRAGSIM = os.environ.get("FRAGSIM", "fragsim")
DEFAULT = "torch"
COLUMNS = ["name", "device_index", "policy", "need_bytes", "price_seconds",
           "serves_from_bytes", "peak_reserved_bytes", "step_bytes"]
NUMBERS = [c for c in COLUMNS if c.endswith("_bytes")]


class Failed(Exception):
    """What ends the program: its exit code and its words."""


def read_rows(name):
    path = os.path.join(HERE, name)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(line for line in file if line[0] != "#"))
    except OSError as why:
        raise Failed(3, f"{path}: {why.strerror}; unpack the archive again") from why


def recordings(only=None):
    """{file: its rows of the manifest, one a device}"""
    files = {}
    for row in read_rows("manifest.csv"):
        if not only or row["name"] in only:
            files.setdefault(row["file"], []).append(row)
    unknown = set(only or ()) - {r["name"] for rows in files.values() for r in rows}
    if unknown:
        raise Failed(2, f"manifest.csv has no recording {', '.join(sorted(unknown))}")
    return files


def verify(file, row):
    """The file is the one of the manifest, byte for byte."""
    path = os.path.join(HERE, file)
    try:
        with open(path, "rb") as data:
            found = hashlib.sha256(data.read()).hexdigest()
    except OSError as why:
        raise Failed(3, f"{path}: {why.strerror}; unpack the archive again") from why
    if found != row["sha256"]:
        raise Failed(3, f"{path}: expected the SHA-256 {row['sha256']}, found {found}; "
                     f"the file is damaged, unpack the archive again")


def ask(path, policies):
    """What `fragsim fit` says of each policy and device."""
    words = [FRAGSIM, "fit", "-q", "-j1", "--as-recorded", "-c", "inf", path,
             "--json", "-"]
    for policy in policies:
        words += ["-p", policy]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as why:
        raise Failed(2, f"{FRAGSIM}: {why.strerror}; install the wheel of fragsim, or name "
                     f"the tool in FRAGSIM") from why
    if done.returncode:
        raise Failed(done.returncode, done.stderr.strip())
    return json.loads(done.stdout)["results"]


def measure(file, manifest, policies):
    """The rows of needs.csv of one file, a row for each device and policy."""
    verify(file, manifest[0])
    names = {int(row["device_index"]): row["name"] for row in manifest}
    found = ask(os.path.join(HERE, file), policies)
    return [{"name": names[row["device"]], "device_index": row["device"], "policy": policy,
             "need_bytes": row["need_bytes"],
             "price_seconds": row["need_modelled_device_seconds"],
             "serves_from_bytes": row["fit_bytes"],
             "peak_reserved_bytes": row["peak_reserved_bytes"],
             "step_bytes": row["step_bytes"]}
            for policy, row in zip(policies * len(names), by_device(found))]


def by_device(rows):
    return sorted(rows, key=lambda row: row["device"])


def measure_all(files, policies, jobs, done=lambda file: None):
    """The rows of all files, in the order of the manifest."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {file: pool.submit(measure, file, rows, policies)
                   for file, rows in files.items()}
        made = []
        try:
            for file, future in waiting.items():
                made += future.result()
                done(file)
        except Failed:
            pool.shutdown(cancel_futures=True)
            raise
    return made


def key(row):
    return row["name"], str(row["device_index"])


def as_text(value):
    return "" if value is None else str(value)


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def share_of_default(manifest, stored):
    """The median share of a job's time that the default spends in driver calls."""
    seconds = {key(r): float(r["price_seconds"]) for r in stored
               if r["policy"] == DEFAULT}
    return statistics.median(seconds[key(row)] / float(row["duration_seconds"])
                             for row in manifest if row["duration_seconds"])


def score(rows, bounds, default, share):
    """{policy: its need, price and score}; None where a recording cannot be served."""
    scores = {}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == policy]
        if not all(as_text(row["need_bytes"]) for row in mine):
            scores[policy] = None
            continue
        need = geometric_mean(int(r["need_bytes"]) / bounds[key(r)] for r in mine)
        price = geometric_mean(float(r["price_seconds"]) / default[key(r)] for r in mine)
        scores[policy] = {"need": need, "worst": max(
            int(r["need_bytes"]) / bounds[key(r)] for r in mine), "price": price,
            "score": need * (1 + share * (price - 1))}
    return scores


def show_recordings(rows, bounds, default):
    print(f"{'recording':20} {'lower bound':>15} {'need':>15} {'N':>7} {'P':>9}  policy")
    for row in rows:
        bound, need = bounds[key(row)], row["need_bytes"]
        where = row["name"] + (f":{row['device_index']}"
                               if int(row["device_index"]) else "")
        if need is None:
            print(f"{where:20} {bound:15,} {'serves not':>15} {'-':>7} {'-':>9}  "
                  f"{row['policy']}")
            continue
        print(f"{where:20} {bound:15,} {need:15,} {need / bound:7.3f} "
              f"{row['price_seconds'] / default[key(row)]:9.3f}  {row['policy']}")


def show_scores(scores, new):
    print(f"\n{'score':>9} {'N':>7} {'worst':>7} {'P':>9}  policy (* measured now)")
    for policy, s in sorted(scores.items(), key=lambda item: (
            item[1] is None, item[1]["score"] if item[1] else 0, item[0])):
        star = "*" if policy in new else " "
        if s is None:
            print(f"{'-':>9} {'-':>7} {'-':>7} {'-':>9} {star}{policy}: does not serve all "
                  f"recordings")
        else:
            print(f"{s['score']:9.4f} {s['need']:7.4f} {s['worst']:7.3f} "
                  f"{s['price']:9.3f} {star}{policy}")


def write_rows(path, rows, header=""):
    """Writes rows of needs.csv, whole or not at all."""
    part = f"{path}.partial-{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8", newline="") as out:
            out.write(header)
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        os.replace(part, path)
    except OSError as why:
        raise Failed(4, f"{path}: {why.strerror}") from why


def reproduce(files, stored, jobs):
    """Measures the stored rows again; the number of rows that differ."""
    policies = list(dict.fromkeys(row["policy"] for row in stored))
    found = {(*key(row), row["policy"]): row for row in measure_all(
        files, policies, jobs, lambda file: print("measured", file, flush=True))}
    bad = 0
    for row in stored:
        now = found[(*key(row), row["policy"])]
        for column in [*NUMBERS, "price_seconds"]:
            if as_text(now[column]) != row[column]:
                print(f"{row['name']}, {row['policy']}: {column} is stored as "
                      f"{row[column]}, found {as_text(now[column])}")
                bad += 1
                break
    print(f"{len(stored) - bad} of {len(stored)} stored rows are reproduced")
    return bad


def parse(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS)
    parser.add_argument("-p", "--policy", action="append", default=[])
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--share", type=float)
    parser.add_argument("--csv")
    parser.add_argument("--reproduce", action="store_true")
    options = parser.parse_args(words)
    if bool(options.policy) == options.reproduce:
        parser.error("pass either -p POLICY or --reproduce")
    if options.jobs < 1:
        parser.error("-j takes a number of at least 1")
    return options


def run(options):
    files = recordings(options.only)
    manifest = [row for rows in files.values() for row in rows]
    wanted = {key(row) for row in manifest}
    stored = [row for row in read_rows("needs.csv") if key(row) in wanted]
    if options.reproduce:
        return 1 if reproduce(files, stored, options.jobs) else 0
    bounds = {key(row): int(row["lower_bound_bytes"]) for row in manifest}
    default = {key(r): float(r["price_seconds"]) for r in stored
               if r["policy"] == DEFAULT}
    share = options.share
    if share is None:
        share = share_of_default(read_rows("manifest.csv"), read_rows("needs.csv"))
    rows = measure_all(files, options.policy, options.jobs)
    show_recordings(rows, bounds, default)
    show_scores({**score(stored, bounds, default, share),
                 **score(rows, bounds, default, share)}, options.policy)
    print(f"\nscore = N * (1 + {share:.4f} * (P - 1)), of {len(manifest)} recordings; "
          f"less is better")
    if options.csv:
        write_rows(options.csv, rows)
    return 0


def main():
    try:
        return run(parse(sys.argv[1:]))
    except Failed as why:
        print(f"score: {why.args[1]}", file=sys.stderr)
        return why.args[0]


if __name__ == "__main__":
    sys.exit(main())
