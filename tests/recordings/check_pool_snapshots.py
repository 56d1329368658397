#!/usr/bin/env python3
"""check_pool_snapshots.py: snapshots of PyTorch 2.15 with pools, pinned host memory
and metadata (traces/bundled/releases/pools, written by the programs of
tests/gpu/releases/pool_programs.py on the stand-ins), through every command.

Each must be exact, but for those of DIFFERS; the commands must end as they should,
and show pools by the names that PyTorch's ids in the snapshot give; what `info`
says of a pool is compared with a naive sum over the entries.
Environment: FRAG_SHORT (one snapshot in three), FRAGSIM.
"""
import collections
import glob
import json
import lzma
import os
import pickle
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness  # noqa: E402

MIB = 1 << 20
KEPT = os.path.join(harness.BUNDLED, "releases", "pools")
# What the policy torch does not model, by snapshot.
DIFFERS = {
    "placed": "mallocWithAddress places a block where it is told to",
}
# The exit codes of the commands that a job without a complete step fails.
DEAD = {"tune": 1, "triage": 1}
# Those that ask for a longer recording where one event was recorded.
RECORD = ("tune", "triage", "fit")
# The arguments of each command: {T} is the snapshot, {D} a folder of the test.
# None: the command reads no trace, or needs a GPU.
VERBS = {
    "triage": ["{T}", "--capacity", "1GiB", "-o", "{D}/page.html"],
    "explain": ["{T}", "-o", "{D}/holes.svg", "--json", "{D}/explain.json"],
    "tune": ["{T}"],
    "fit": ["{T}", "-p", "torch@2.15"],
    "replay": ["{T}", "-p", "torch@2.15", "-p", "best_fit", "--check"],
    "sweep": ["{T}", "-p", "torch", "-o", "{D}/grid.h5"],
    "merge": ["{D}/all.h5", "{D}/grid.h5"],
    "top": ["{T}", "--by", "pool", "--json", "{D}/top.json"],
    "steps": ["{T}"],
    "leaks": ["{T}"],
    "summary": ["{T}", "--at", "peak"],
    "diff": ["{T}", "{T}", "--by", "pool"],
    "validate": ["{T}"],
    "info": ["{T}", "--json", "{D}/info.json"],
    "import": ["{T}", "-o", "{D}/trace.h5"],
    "edit": ["{T}", "-e", "pool:to=0:0", "-o", "{D}/edited.h5"],
    "export": ["{T}", "--to", "snapshot", "-o", "{D}/out.pickle"],
    "plot": ["{T}", "map", "-p", "torch@2.15", "-o", "{D}/map.html"],
    "report": ["{D}/grid.h5", "-o", "{D}/report.html"],
    "conf": None, "policies": None, "gen": None, "help": None, "record": None,
    "run": None, "dry": None, "compare": None,
}


def load(path):
    with lzma.open(path) as file:
        return pickle.load(file)


def name_of(pool):
    """The name of PyTorch's pool id."""
    if pool == (0, 0):
        return "default pool"
    return f"{'graph' if pool[0] else 'MemPool'} {pool[0]}:{pool[1]}"


def pools_of(snapshot):
    """What the requests of each pool needed: peak, live and reserved at the end."""
    live, now, peak, held = {}, collections.Counter(), collections.Counter(), \
        collections.Counter()
    for entry in snapshot["device_traces"][0]:
        pool = entry["pool_id"]
        if entry["action"] == "alloc":
            live[entry["addr"]] = pool, entry["size"]
            now[pool] += entry["size"]
            peak[pool] = max(peak[pool], now[pool])
        elif entry["action"] == "free_requested":
            of, size = live.pop(entry["addr"])
            now[of] -= size
    for segment in snapshot["segments"]:
        held[segment["segment_pool_id"]] += segment["total_size"]
    return {name_of(pool): (peak[pool], now[pool], held[pool])
            for pool in {(0, 0)} | set(peak) | set(held)}


def json_of(folder, name, key):
    """All values of a key, at any depth."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        todo, found = [json.load(file)], []
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found += [value[key]] if key in value else []
            value = list(value.values())
        todo += value if isinstance(value, list) else []
    return found


def check_info(folder, want):
    rows = json_of(folder, "info.json", "by_pool")[0]
    got = {p["pool_name"]: (p["peak_requested_bytes"], p["end_live_bytes"],
                            p["end_reserved_bytes"]) for p in rows}
    assert got == want, (got, want)


def check_names(folder, snapshot, want):
    """The pools that hold memory at the end have their names in the answers."""
    held = {name for name, numbers in want.items() if numbers[2]}
    seen = set(json_of(folder, "explain.json", "pool_name"))
    assert seen >= held and seen <= set(want), (seen, held)
    if not any(e["action"] == "oom" for e in snapshot["device_traces"][0]):
        with open(os.path.join(folder, "holes.svg"), encoding="utf-8") as file:
            text = file.read()
        assert all(name in text for name in held), held


def check_commands(name, path, folder):
    for verb, row in VERBS.items():
        if row is None:
            continue
        code = 3 if name == "pinned" and verb in RECORD else \
            DEAD.get(verb, 0) if name == "oom_in_pool" else \
            verb == "validate" and name in DIFFERS
        done = harness.attempt(verb, *(a.format(T=path, D=folder) for a in row))
        assert done.returncode == code, (name, verb, done.returncode,
                                         done.stderr)
        assert "(null)" not in done.stdout, (name, verb)


def check_map(folder, want):
    """The private pools that have much of the height have their names."""
    total = sum(held for _, _, held in want.values())
    with open(os.path.join(folder, "map.html"), encoding="utf-8") as file:
        text = file.read()
    for name, (_, _, held) in want.items():
        if name != "default pool" and held > total / 4:
            assert name in text, (name, want)


def check_counters(name, path):
    """`summary` counts the pools as PyTorch does."""
    with open(os.path.join(KEPT, name + ".json"), encoding="utf-8") as file:
        told = json.load(file)
    bound = ["-c", str(told["cap"])] if told["cap"] else []
    row, = harness.results("summary", path, "-p",
                           "torch@recorded:torch_version:2.15", *bound)
    got = row["stats"]["reserved_bytes_by_private_pools"]
    for key, value in told["stats"].items():
        if key.startswith("reserved_bytes_by_private_pools."):
            _, pool, part, number = key.split(".")
            assert got[pool][part][number] == value, (name, key, value)
            got[pool].setdefault("seen", 0)
            got[pool]["seen"] += 1
    assert all(pool["seen"] == 12 for pool in got.values()), (name, got)


def check_merged(folder):
    """Without pools, all is in the default pool."""
    row, = harness.results("info", os.path.join(folder, "edited.h5"))
    names = [p["pool_name"] for p in row["devices"][0]["by_pool"]]
    assert names == ["default pool"], names


def held_by(path, grouping):
    row, = harness.results("top", path, "--by", grouping)
    return {g["name"]: g["held_bytes"] for g in row["groups"]}


def check_metadata(folder):
    """A request has the text that was set; other values, and what PyTorch before
    2.15 adds for mallocWithAddress, are none of it."""
    kept = os.path.join(KEPT, "metadata.pickle.xz")
    assert held_by(kept, "metadata") == {
        '{"phase":"prefill","request":7}': 40 * MIB, "weights": 12 * MIB,
        "no metadata": 5 * MIB}, held_by(kept, "metadata")
    assert len(held_by(kept, "site")) == 1  # metadata is no place in a program
    snapshot = load(kept)
    texts = {"weights": "weights\nmallocWithAddress", "": {"a": 1},
             '{"phase":"prefill","request":7}': "mallocWithAddress"}
    for entry in snapshot["device_traces"][0]:
        entry["user_metadata"] = texts.get(entry["user_metadata"], "")
    changed = os.path.join(folder, "changed.pickle")
    with open(changed, "wb") as file:
        pickle.dump(snapshot, file)
    assert held_by(changed, "metadata") == {
        "weights": 12 * MIB, "no metadata": 45 * MIB}, held_by(changed, "metadata")
    only = os.path.join(folder, "only.h5")
    harness.run("edit", kept, "-e", "keep:site=prefill", "-o", only)
    assert list(held_by(only, "metadata").values()) == [40 * MIB]


def peak_of(path):
    row, = harness.results("replay", path, "-p", "torch@2.15", "-p",
                           "torch@2.15:expandable_segments:True")[:1]
    return row["peak_reserved_bytes"]


def check_what_if(folder):
    """What one pool would need: `tune' and `explain' say it, and advise nothing."""
    kept = os.path.join(KEPT, "shared_graphs.pickle.xz")
    merged = os.path.join(folder, "merged.h5")
    harness.run("edit", kept, "-e", "pool:to=0:0", "-o", merged)
    assert (peak_of(kept), peak_of(merged)) == (136 * MIB, 68 * MIB)
    others = [word for key in ("expandable_segments", "large_segment_size_mb")
              for word in ("--without", key)]
    text = harness.output("tune", kept, *others)
    assert "would be 68 MiB, not 136 MiB" in text, text
    text = harness.output("tune", merged)
    assert "private pools" not in text, text
    row, = harness.results("explain", kept, "--capacity", "100MiB")
    change, = [c for c in row["changes"] if c["kind"] == "one_pool"]
    assert change["result"] == "survives", change
    assert change["peak_reserved_bytes"] == 68 * MIB, change
    assert row["advice"]["kind"] == "larger_device", row["advice"]


def main():
    listed = re.findall(r"^  (\S+)  ", harness.output("help").split("usage")[1]
                        .split("More:")[0], re.M)
    assert set(listed) == set(VERBS), set(listed) ^ set(VERBS)
    paths = sorted(glob.glob(os.path.join(KEPT, "*.pickle.xz")))
    assert len(paths) >= 10, paths
    some = harness.sample(paths, 3)
    for path in harness.share(some):
        name = os.path.basename(path).split(".")[0]
        snapshot = load(path)
        with tempfile.TemporaryDirectory() as folder:
            want = pools_of(snapshot)
            check_commands(name, path, folder)
            check_info(folder, want)
            check_names(folder, snapshot, want)
            check_map(folder, want)
            check_counters(name, path)
            check_merged(folder)
    with tempfile.TemporaryDirectory() as folder:
        check_metadata(folder)
        check_what_if(folder)
    print(f"{len(some)} of {len(paths)} snapshots through {len(VERBS)} commands; "
          f"all but {DIFFERS} exact")
    return 0


if __name__ == "__main__":
    sys.exit(main())
