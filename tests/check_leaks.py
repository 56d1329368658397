#!/usr/bin/env python3
"""check_leaks.py [--table]: what `fragsim leaks` says of programs that are known
to leak, and of programs that are known not to.

Every recording is examined. A program leaks if its name begins with leak, or if
the file beside the recording says so; the sites are those of the program. A
missed leak, a false alarm and a wrong site are errors; a recording with too few
steps has the verdict unknown, which is counted. --table prints the rows as
JSON. The bundled recordings are examined if there are no others. A bundled leak
is also cut in a step, as if the job had died there: it died of growth.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
BUNDLED = os.path.join(ROOT, "traces", "bundled", "*.pickle.xz")
GROUPS = ("dev", "causes", "h100", "multi", "batch")
# The lines of the program of the recordings named leak*: the input that the
# graph keeps, the loss, and the hidden layer.
LEAK_LINES = {162, 163, 164}


def fact(path):
    """Whether the program leaks, and the function that does, if known."""
    name = os.path.basename(path).split(".")[0]
    try:
        with open(path.replace(".pickle.xz", ".json").replace(".cpp", ""),
                  encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        known = {}
    return (known.get("leak") is True or name.startswith("leak"),
            known.get("site") if known.get("leak") else None)


def examine(group, path):
    leaks, site = fact(path)
    done = subprocess.run([FRAGSIM, "leaks", "-q", "--json", "-", path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, (path, done.stderr)
    for row in json.loads(done.stdout)["results"]:
        yield {"group": group, "name": os.path.basename(path),
               "device": row["device"], "leaks": leaks, "site": site,
               "verdict": row["verdict"], "steps": row["num_steps"],
               "growth": row["growth_bytes_per_step"],
               "has_stacks": row["has_stacks"], "found": row["leaks"]}


def fault_of(row):
    if row["verdict"] == "unknown":
        return None
    if row["leaks"] != (row["verdict"] == "leak"):
        return "missed" if row["leaks"] else "false alarm"
    if row["site"] and row["found"][0]["function"] != row["site"]:
        return "wrong site"
    if row["leaks"] and row["has_stacks"] and not row["site"] and \
            {leak["line"] for leak in row["found"]} != LEAK_LINES:
        return "wrong site"
    return None


def rows():
    folder = os.path.join(SHARED, "recorded")
    found = [(group, path) for group in GROUPS
             for path in sorted(glob.glob(os.path.join(folder, group,
                                                       "*.pickle.xz")))]
    found = found or [("bundled", path) for path in sorted(glob.glob(BUNDLED))]
    for group, path in found:
        yield from examine(group, path)


def check_death():
    """The job dies of the 2 MiB that it asks for in a late step."""
    with lzma.open(BUNDLED.replace("*", "leak_frames")) as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    at = max(i for i, entry in enumerate(entries)
             if entry["action"] == "alloc" and entry["size"] == 2 << 20)
    failed = dict(entries[at], action="oom", device_free=0)
    del failed["addr"]
    snapshot["device_traces"][0] = entries[:at] + [failed]
    snapshot["segments"] = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dead.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=2)
        done = subprocess.run([FRAGSIM, "leaks", "-q", path], check=True,
                              capture_output=True, text=True).stdout
        answer = subprocess.run([FRAGSIM, "leaks", "-q", "--json", "-", path],
                                check=True, capture_output=True,
                                text=True).stdout
    assert " of a request of 2 MiB. " in done, done
    assert "it died of growth." in done, done
    row, = json.loads(answer)["results"]
    assert row["died_of_growth"] and row["verdict"] == "leak", answer
    assert row["died_at_event"] > 0, answer


def main():
    table = list(rows())
    if sys.argv[1:] == ["--table"]:
        print(json.dumps(table))
        return
    check_death()
    faults = [(row["group"], row["name"], fault_of(row)) for row in table
              if fault_of(row)]
    for fault in faults:
        print(*fault)
    known = [row for row in table if row["verdict"] != "unknown"]
    print(f"{len(table)} traces, {len(table) - len(known)} with too few steps;"
          f" {sum(row['leaks'] for row in known)} leak, all others do not:"
          f" {len(faults)} errors")
    # A leak that is not seen would be unknown, too.
    unseen = [row["name"] for row in table
              if row["leaks"] and row["verdict"] != "leak"]
    sys.exit(1 if faults or unseen else 0)


if __name__ == "__main__":
    main()
