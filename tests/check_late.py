#!/usr/bin/env python3
"""check_late.py [bundled|recorded] [CUTS]: cuts recordings off as an
overflowing history does, and runs `fragsim validate` on each cut.

A cut keeps the final segments and drops the first K entries of the history. K
is spread over the recording. Recordings with ordinary and with expandable
segments are counted apart, and each cut that is not exact is printed with its
first divergence.

bundled: traces/bundled, 9 cuts each. recorded: recorded/dev, 5 cuts each. Exit
1 if fewer cuts are exact than LEAST states, 77 if the recordings or the tool
are absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import collections
import concurrent.futures
import glob
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))

# kind: files, cuts of each file
KINDS = {
    "bundled": (os.path.join(ROOT, "traces/bundled/*.pickle.xz"), 9),
    "recorded": (os.path.join(SHARED, "recorded/dev/*.pickle.xz"), 5),
}
# (kind, segments): how many cuts must be exact, at the default number of cuts
LEAST = {}


def is_expandable(snapshot):
    return any(s.get("is_expandable") for s in snapshot["segments"]) or any(
        e["action"] == "segment_map"
        for trace in snapshot["device_traces"] for e in trace)


def read(path):
    with lzma.open(path) as stream:
        snapshot = pickle.load(stream)
    for trace in snapshot["device_traces"]:
        for entry in trace:
            entry.pop("frames", None)
    return snapshot


def limit_of(path):
    stats = path.replace(".pickle.xz", ".json")
    if not os.path.exists(stats):
        return []
    with open(stats, encoding="utf-8") as stream:
        limit = json.load(stream).get("cap")
    return ["--limit", str(limit)] if limit else []


def validate(path, options):
    """What the first row that is not exact states; None if all are exact."""
    done = subprocess.run([FRAGSIM, "validate", path, "-q", "--json", "-",
                           *options], capture_output=True, text=True,
                          check=False)
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}: {done.stderr.strip()}"
    for row in json.loads(done.stdout)["results"]:
        if not row["exact"]:
            return json.dumps(row["first_divergence"])
    return None if done.returncode == 0 else "exit 1 with exact rows"


def cut_all(path, cuts, folder):
    """(kind of segments, name, K, divergence) of each cut of a recording."""
    snapshot = read(path)
    kind = "expandable" if is_expandable(snapshot) else "ordinary"
    traces = snapshot["device_traces"]
    name = os.path.basename(path).removesuffix(".pickle.xz")
    rows = []
    for part in range(1, cuts + 1):
        snapshot["device_traces"] = [
            trace[len(trace) * part // (cuts + 1):] for trace in traces]
        cut = os.path.join(folder, f"{name}_{part}.pickle")
        with open(cut, "wb") as stream:
            pickle.dump(snapshot, stream)
        dropped = [len(t) * part // (cuts + 1) for t in traces if t]
        rows.append((kind, name, dropped, validate(cut, limit_of(path))))
        if not os.environ.get("FRAG_KEEP_CUTS"):
            os.unlink(cut)
    return rows


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "bundled"
    pattern, cuts = KINDS[kind]
    if len(sys.argv) > 2:
        cuts = int(sys.argv[2])
    paths = sorted(p for p in glob.glob(pattern)
                   if not p.endswith((".cpp.pickle.xz", "late_start.pickle.xz"))
                   and os.environ.get("FRAG_ONLY", "") in p)
    if not paths or not os.access(FRAGSIM, os.X_OK):
        print("check_late: no recordings or no tool; skipped")
        return 77
    exact, total = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = os.environ.get("FRAG_KEEP_CUTS") or folder
        for rows in pool.map(lambda p: cut_all(p, cuts, folder), paths):
            for segments, name, dropped, divergence in rows:
                total[segments] += 1
                exact[segments] += divergence is None
                if divergence is not None:
                    print(f"{name} without {dropped}: {divergence}",
                          flush=True)
    missed = 0
    for segments in sorted(total):
        print(f"{kind}, {segments}: {exact[segments]} of {total[segments]} "
              "cuts exact")
        missed += exact[segments] < LEAST.get((kind, segments), 0)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
