#!/usr/bin/env python3
"""check_one_reading.py [TRACE...]: every command says the same of one recording.

Each command prints what it knows of a recording as JSON. Where two of them print
one quantity of a device, the numbers must be equal, and equal to the counters
that the recorded process wrote beside its snapshot. The recorded allocator is
replayed by all of them at the bound under which it ran.

Prints `N of M` for each quantity and names each difference. Exit 1 if there is
one, 77 without the tool. Recordings: traces/bundled, and ../shared if present.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED, need, share

AS_RECORDED = ["--as-recorded", "-p", "torch@recorded"]


def stat(name):
    return lambda row: row["stats"][name]["all"]["peak"]


def key(*names):
    """A member, through the objects that are named before it."""
    def read(row):
        for name in names:
            row = row[name]
        return row
    return read


def bound(row):
    """(kind, bytes) of a row with the two columns."""
    limit, capacity = row["process_limit_bytes"], row["capacity_bytes"]
    return ("limit", limit) if limit is not None else ("capacity", capacity)


def explained_bound(row):
    if row["limit_source"] in ("none", "contradicted") or \
            row["limit_bytes"] is None:
        return ("capacity", None)
    kind = "capacity" if row["limit_source"] == "device" else "limit"
    return (kind, row["limit_bytes"])


def steps_peak(name):
    return lambda row: max(part[name] for part in row["parts"])


def steps_sum(name):
    return lambda row: sum(part[name] for part in row["parts"])


# What each command says: {command: {quantity: how to read it from a row}}.
SAYS = {
    ("info",): {
        "events": key("events"),
        "peak requested": key("peak_requested_bytes"),
        "recorded peak reserved": key("recorded_peak_reserved_bytes"),
        "recorded OOMs": key("recorded", "oom"),
    },
    ("replay", *AS_RECORDED): {
        "events": key("events"),
        "peak requested": key("peak_requested_bytes"),
        "peak allocated": key("peak_allocated_bytes"),
        "peak reserved": key("peak_reserved_bytes"),
        "end reserved": key("end_reserved_bytes"),
        "OOMs": key("num_ooms"),
        "retries": key("num_alloc_retries"),
        "bound": bound,
    },
    ("steps",): {
        "peak requested": key("peak_requested_bytes"),
        "peak allocated": steps_peak("peak_allocated_bytes"),
        "peak reserved": key("peak_reserved_bytes"),
        "OOMs": steps_sum("num_ooms"),
        "retries": steps_sum("num_alloc_retries"),
        "bound": bound,
    },
    ("summary",): {
        "peak requested": stat("requested_bytes"),
        "peak allocated": stat("allocated_bytes"),
        "peak reserved": stat("reserved_bytes"),
        "OOMs": key("stats", "num_ooms"),
        "retries": key("stats", "num_alloc_retries"),
    },
    ("validate",): {
        "events": key("events"),
        "recorded peak reserved": key("peak_reserved_recorded"),
        "peak reserved": key("peak_reserved_replayed"),
        "end reserved": key("end_reserved_replayed"),
        "recorded OOMs": key("ooms_recorded"),
        "bound": explained_bound,
    },
    ("top",): {
        "peak requested": key("requested_bytes"),
    },
}


def recordings():
    found = sorted(glob.glob(os.path.join(ROOT, "traces", "bundled",
                                          "*.pickle*")))
    for folder in ("dev", "batch", "causes", "h100", "multi"):
        found += sorted(glob.glob(os.path.join(SHARED, "recorded", folder,
                                               "*.pickle*")))
    return found


def devices(verb, answer):
    """{device: row} of a command's JSON."""
    rows = answer["results"]
    if verb == "info":
        rows = rows[0]["devices"]
    return {row["device"]: row for row in rows}


def ask(path, command):
    """{device: row}, or None if the recording has no history."""
    done = subprocess.run(
        [FRAGSIM, command[0], path, *command[1:], "-q", "--json", "-"],
        capture_output=True, text=True, check=False)
    if "choose one with --device" in done.stderr:
        numbers = done.stderr.rsplit(":", 1)[1].split(",")
        rows = [ask(path, [*command, "--device", n.strip()]) for n in numbers]
        return {device: row for found in rows for device, row in found.items()}
    if "no history" in done.stderr or "without history" in done.stderr:
        return None
    if not done.stdout:
        raise SystemExit(f"fragsim {command[0]} {path}: exit "
                         f"{done.returncode}: {done.stderr.strip()}")
    return devices(command[0], json.loads(done.stdout))


def said_of(path):
    """{(device, quantity): {command: value}} of a recording."""
    said = {}
    for command, quantities in SAYS.items():
        for device, row in (ask(path, command) or {}).items():
            for quantity, read in quantities.items():
                try:
                    value = read(row)
                except (KeyError, TypeError):
                    raise SystemExit(f"fragsim {command[0]} {path}: no "
                                     f"{quantity} in {row}")
                said.setdefault((device, quantity), {})[command[0]] = value
    for device, row in ask(path, ["info"]).items():
        # PyTorch's counter includes blocks that are freed and not yet reusable.
        if row["requests"]["free_requested"]:
            said[device, "peak requested"].pop("summary", None)
    return said


def differences(path, said):
    for (device, quantity), values in said.items():
        if len({json.dumps(value) for value in values.values()}) > 1:
            yield quantity, (f"{os.path.basename(path)}, device {device}: "
                             f"{quantity}: " + ", ".join(
                                 f"{verb} {value}"
                                 for verb, value in values.items()))


def main():
    need(FRAGSIM)
    paths = sys.argv[1:] or share(recordings(), 6)
    count, wrong = {}, {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, said in zip(paths, pool.map(said_of, paths)):
            for _, quantity in said:
                count[quantity] = count.get(quantity, 0) + 1
            for quantity, words in differences(path, said):
                wrong[quantity] = wrong.get(quantity, 0) + 1
                print(words)
    for quantity, total in count.items():
        print(f"{quantity}: equal in {total - wrong.get(quantity, 0)} of "
              f"{total}")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
