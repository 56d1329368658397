#!/usr/bin/env python3
"""check_explain.py: explains every recording that ran out of memory.

For each of them the replay must fail where the recording failed, with the live
and cached bytes of PyTorch's own message. The cause is judged again from the
entries of the snapshot: a job whose live blocks and failed request need more
than 63/64 of its limit died of demand, and no recorded job survived with more.
Where the cause is known, the answer must name it. No change promises that a job
that died survives, and where expandable segments are said to fail, a request
failed in the recorded run with them. A share of the batch must lie between the
recorded batches that fit and those that cannot; what recomputing saves is
computed again for a program of known layers. A limit of the process makes the
complete recording fail where the recording under that limit failed.
Environment: FRAGSIM, FRAG_SHARED_DIR. Exit code 77: there are no recordings.
"""
import copy
import glob
import importlib.util
import json
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, share

RECORDED = os.path.join(os.environ.get(
    "FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared")), "recorded")
LEAKS = {"leak": None, "leak_frames": "(train.py:164)",
         "leak_cpp": "(train.py:164)"}


def load_table():
    sys.path.insert(0, os.path.join(ROOT, "paper", "tables"))
    spec = importlib.util.spec_from_file_location(
        "explain_table", os.path.join(ROOT, "paper", "tables", "explain_table.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


table = load_table()
wrong = []


def expect(name, what, holds):
    if not holds:
        wrong.append(f"{name}: {what}")


def entries_of(snapshot):
    with lzma.open(snapshot) as file:
        return pickle.load(file)["device_traces"][0]


def share_at_death(snapshot, cap):
    """Live and requested bytes at the last OOM, by the entries alone."""
    live, share = {}, 0
    for entry in entries_of(snapshot):
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"], None)
        elif entry["action"] == "oom":
            share = (sum(live.values()) + entry["size"]) / cap
    return share


def check_death(snapshot, facts):
    name = os.path.basename(snapshot)
    answer = table.explain(FRAGSIM, snapshot)
    expect(name, "not reproduced", answer["request"]["reproduced"])
    expect(name, "bytes differ from PyTorch's message",
           table.agrees(answer, facts))
    expect(name, f"limit {answer['limit_bytes']} is not {facts['cap']}",
           answer["limit_bytes"] == facts["cap"])
    expect(name, "no change serves what was recorded", any(
        c["result"] == "serves what was recorded" for c in answer["changes"]))
    expect(name, "the bytes of the spaces do not sum up",
           sum(s["reserved_bytes"] for s in answer["spaces"])
           == answer["reserved_bytes"])
    expect(name, f"cause {answer['cause']}, known to be {facts.get('cause')}",
           facts.get("cause", answer["cause"]) == answer["cause"])
    share = share_at_death(snapshot, facts["cap"])
    expect(name, f"{answer['cause']} at {share:.4f} of the limit",
           (share > 63 / 64) == (answer["cause"] == "demand"))
    expect(name, "a promise for a job that died, and no word about that",
           answer["unknown"] and not any(
               c["result"] == "survives" for c in answer["changes"]))
    expect(name, "what is predicted", all(
        c["predicted"] == ((c["fails_at_event"] or 0) >
                           answer["request"]["event"])
        for c in answer["changes"]))
    advice = answer["advice"]
    expect(name, f"the advice is a promise: {advice}",
           advice["kind"] not in ("setting", "nothing") and
           advice["odds"] != "enough" and
           advice["change_kind"] in (None, "batch", "recompute", "step_free"))
    check_expandable(snapshot, answer)
    check_interval(snapshot, facts)
    return answer


def check_expandable(snapshot, answer):
    """The recorded run with expandable segments."""
    with_them = snapshot.replace(".pickle.xz", "_exp.pickle.xz")
    said = [c for c in answer["changes"]
            if c["change"] == "expandable_segments:True"]
    if said and os.path.exists(with_them):
        failed = any(e["action"] == "oom" for e in entries_of(with_them))
        expect(snapshot, f"{said[0]['result']}; recorded: {failed}",
               failed or said[0]["result"] != "fails")


def check_interval(snapshot, facts):
    """Without its file the limit is an interval that holds the true one."""
    name = os.path.basename(snapshot)
    answer = table.explain(FRAGSIM, snapshot, "--stats", "none")
    expect(name, "the interval of the limit", answer["limit_bytes"] is None
           and answer["limit_source"] == "inferred"
           and answer["limit_least_bytes"] <= facts["cap"]
           <= answer["limit_most_bytes"])
    ends = [answer["need_bytes"] > 63 / 64 * answer[key]
            for key in ("limit_least_bytes", "limit_most_bytes")]
    expect(name, f"demand at the ends: {ends}", (ends[0] != ends[1]) == any(
        "needed too much memory depends" in text
        for text in answer["unknown"]))
    given = table.explain(FRAGSIM, snapshot)
    results = {c["change"]: c["result"] for c in given["changes"]
               if c["kind"] == "setting"}
    for change in answer["changes"]:
        if change["kind"] == "setting" and change["result"] != "not known":
            expect(name, f"{change}: {results[change['change']]}",
                   results[change["change"]] in (change["result"], "not known"))


def check_survivors():
    """The fullest recorded run that survived: the source of 63/64."""
    shares = {}
    for folder in ("dev", "batch"):
        for path in glob.glob(os.path.join(RECORDED, folder, "*.json")):
            with open(path, encoding="utf-8") as file:
                facts = json.load(file)
            if facts.get("cap") and not facts.get("oom"):
                shares[path] = facts["stats"]["requested_bytes.all.peak"] \
                    / facts["cap"]
    if shares:
        fullest = max(shares, key=shares.get)
        expect(fullest, f"survived with {shares[fullest]:.4f} of its limit",
               0.98 < shares[fullest] < 63 / 64)


def check_limits():
    """A recording fails under a limit of the process where the run under that
    limit failed."""
    for snapshot, facts in table.died(os.path.join(RECORDED, "dev")):
        died = table.explain(FRAGSIM, snapshot)
        if died["request"]["num_ooms"] > 1 or facts.get("conf"):
            continue
        whole = os.path.join(RECORDED, "dev", os.path.basename(snapshot)
                             .split("__")[0] + ".pickle.xz")
        at = table.explain(FRAGSIM, whole, "--process-limit",
                           f"{facts['cap']}B")
        expect(whole, f"under {facts['cap']} bytes not as {snapshot}",
               (at["request"] or {}).get("event") == died["request"]["event"]
               and at["reserved_bytes"] == died["reserved_bytes"])


def check_batches():
    """A share of the batch at the limit that a smaller recorded batch used."""
    for model in ("gpt2", "llama_ckpt", "resnet"):
        runs = {}
        for path in glob.glob(os.path.join(RECORDED, "batch",
                                           model + "_b*.json")):
            with open(path, encoding="utf-8") as file:
                facts = json.load(file)
            if not facts["oom"]:
                runs[facts["batch"]] = (path[:-5] + ".pickle.xz", facts)
        for small, (_, used) in runs.items():
            limit = used["peak_reserved"]
            cannot = [b for b in runs if runs[b][1]["peak_allocated"] > limit]
            for large in sorted(cannot)[:1]:
                answer = table.explain(
                    FRAGSIM, runs[large][0], "--process-limit", f"{limit}B")
                shares = [int(re.search(r"(\d+) %", c["change"])[1])
                          for c in answer["changes"] if c["kind"] == "batch"]
                expect(runs[large][0], f"{answer['cause']}: {shares} % of "
                       f"{large}, {small} fit, {min(cannot)} cannot",
                       answer["cause"] == "demand" and len(shares) == 1 and
                       0.87 * small - 0.01 * large <= shares[0] / 100 * large
                       < 1.02 * min(cannot))


def peak_around_largest(snapshot, largest=0):
    """The largest request, and the most bytes that live while it does."""
    entries = entries_of(snapshot)
    largest = largest or max(e["size"] for e in entries
                             if e["action"] == "alloc")
    live, peak = {}, 0
    for entry in entries:
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"], None)
        if largest in live.values():
            peak = max(peak, sum(live.values()))
    return largest, peak


def check_checkpointing():
    """llama_ckpt is llama_varlen with torch.utils.checkpoint around each
    layer; in their first step both ask for equal logits."""
    plain, saves = (os.path.join(RECORDED, "dev", name + ".pickle.xz")
                    for name in ("llama_varlen_frames", "llama_ckpt"))
    if not os.path.exists(plain):
        return
    largest, peak = peak_around_largest(plain)
    _, true = peak_around_largest(saves, largest)
    answer = table.explain(FRAGSIM, plain, "--process-limit", "8GiB")
    said, = [c for c in answer["changes"] if c["kind"] == "recompute"]
    expect(plain, f"{said}: {peak} to {true}", answer["need_bytes"] == peak and
           0.98 < (peak - said["saved_bytes"]) / true < 1.15)


LAYERS, OPS = 6, ("attend", "expand", "shrink")


def sizes(weight):
    """The loss and the gradients are as large as a weight."""
    return {"attend": 24 << 20, "expand": 96 << 20, "shrink": 20 << 20,
            "output": 100 << 20, **dict.fromkeys(
                ("weight", "gradient", "loss"), weight)}


def layered(steps, passes_on=False):
    """The calls of a program with LAYERS equal layers: what each step does, in
    its order. A block is (step, layer, name). With passes_on, the output of a
    step lives until the next step has its own."""
    for layer in range(LAYERS):
        yield "alloc", (0, layer, "weight")
    for step in range(1, steps + 1):
        for layer in range(LAYERS):
            yield from (("alloc", (step, layer, op)) for op in OPS)
        yield "alloc", (step, LAYERS, "loss")
        if passes_on:
            yield "alloc", (step, LAYERS, "output")
            if step > 1:
                yield "free", (step - 1, LAYERS, "output")
        for layer in reversed(range(LAYERS)):
            yield "alloc", (step, layer, "gradient")
            yield from (("free", (step, layer, op)) for op in reversed(OPS))
        yield "free", (step, LAYERS, "loss")
        for layer in range(LAYERS):
            yield "free", (step, layer, "gradient")


def peak_of(calls, size):
    live = peak = 0
    for action, block in calls:
        live += size[block[2]] * (1 if action == "alloc" else -1)
        peak = max(peak, live)
    return peak


def recomputed(calls):
    """Every layer but the last keeps its last block only; the others come back
    when the backward pass frees the largest block of the layer above."""
    for action, block in calls:
        step, layer, name = block
        if action == "alloc" and name == OPS[0] and layer:
            yield from (("free", (step, layer - 1, op)) for op in OPS[:-1])
        if action == "free" and name == "expand" and layer:
            yield from (("alloc", (step, layer - 1, op)) for op in OPS[:-1])
        yield action, block


def freed_early(calls):
    """The output is freed where its step ends."""
    for action, block in calls:
        step, layer, name = block
        if (action, layer, name) == ("free", LAYERS - 1, "gradient"):
            yield action, block
            yield "free", (step, LAYERS, "output")
        elif (action, name) != ("free", "output"):
            yield action, block


STEP = ("step", "train.py", 9)
OUTER = (("forward", "model.py", 30), STEP)
TORCH = (("_call_impl", "/a/site-packages/torch/nn/modules/module.py", 5),
         ("_PyEval_EvalFrame", "pycore_ceval.h", 46))
# What lies between an op and the loop over the layers, the loop, and its name.
LOOPS = (((("forward", "layer.py", 20),), OUTER, "under forward (layer.py:20)"),
         (TORCH, OUTER, "under forward (model.py:30)"),
         (TORCH + (("forward", "transformers/llama.py", 8),), OUTER,
          "of the forward pass"),
         (TORCH, (("<module>", "train.py", 3),), "of the forward pass"))


def frames_of(block, loop=LOOPS[0], others=STEP):
    name = block[2]
    frames = loop[1] if name == "loss" else (others,)
    if name in OPS:
        frames = (("torch::unwind::unwind()", "??", 0),
                  (name, "ops.py", 7), ("forward", name + ".py", 4),
                  *loop[0], *loop[1])
    return [dict(zip(("name", "filename", "line"), f)) for f in frames]


def write_calls(path, calls, sizes_of, *how):
    entries, places, at = [], {}, 1 << 40
    for action, block in calls:
        size = sizes_of[block[2]]
        if action == "alloc":
            places[block] = at
            at += size
            entries.append({"action": "segment_alloc", "addr": places[block],
                            "size": size, "stream": 0, "frames": []})
        entries += [{"action": a, "addr": places[block], "size": size,
                     "stream": 0, "frames": frames_of(block, *how)}
                    for a in ((action,) if action == "alloc" else
                              ("free_requested", "free_completed"))]
    with open(path, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [entries]}, file)


def check_places(folder):
    """The layers are named by the user's line that calls them. What an optimizer
    allocates is not freed early, and no line of a library is named."""
    path = os.path.join(folder, "places.pickle")
    for loop in LOOPS:
        write_calls(path, layered(5), sizes(16 << 20), loop)
        answer = table.explain(FRAGSIM, path, "--process-limit", "700MiB")
        said, = [c["change"] for c in answer["changes"]
                 if c["kind"] == "recompute"]
        expect("places", f"{said}, not {loop[2]}",
               f"each layer {loop[2]} allocates" in said)
    for others, count, named in ((STEP, 1, 1), (("adam", "torch/optim/a.py", 3), 0, 0),
                                 (("apply", "torch/nn/functional.py", 1), 1, 0)):
        write_calls(path, layered(5, True), sizes(64 << 20), LOOPS[0], others)
        answer = table.explain(FRAGSIM, path, "--process-limit", "1GiB")
        said = [c["change"] for c in answer["changes"] if c["kind"] == "early_free"]
        expect("places", f"{others}: {said}", len(said) == count and named == sum(
            "allocated by step (train.py:9)" in text for text in said))


def check_calls(folder, limit, kind, calls, size, changed):
    """The need, and what the change of that kind saves."""
    path = os.path.join(folder, "calls.pickle")
    write_calls(path, calls, size)
    answer = table.explain(FRAGSIM, path, "--process-limit", f"{limit}MiB")
    said, = [c for c in answer["changes"] if c["kind"] == kind]
    peak = peak_of(calls, size)
    saved = peak - peak_of(changed(calls), size)
    expect(kind, f"cause {answer['cause']}", answer["cause"] == "demand")
    expect(kind, f"need {answer['need_bytes']}, not {peak}",
           answer["need_bytes"] == peak)
    expect(kind, f"{said}, not {saved} saved",
           saved > 0 and said["saved_bytes"] == saved)
    return answer, said


def check_program(folder):
    calls = list(layered(5))
    _, said = check_calls(folder, 700, "recompute", calls, sizes(16 << 20),
                          recomputed)
    expect("recompute", said, "each layer under forward (layer.py:20)"
           in said["change"] and said["result"] == "serves what was recorded")
    check_calls(folder, 1024, "early_free", list(layered(5, True)),
                sizes(64 << 20), freed_early)
    size = sizes(64 << 20)
    answer, _ = check_calls(folder, 1024, "recompute", calls, size, recomputed)
    batch, = [c for c in answer["changes"] if c["kind"] == "batch"]
    share = int(re.search(r"(\d+) %", batch["change"])[1])
    grows = LAYERS * sum(size[op] for op in OPS)
    left = (1 << 30) - (peak_of(calls, size) - grows)
    expect("batch", f"{share} %, and {left / grows:.3f} would fit",
           0 <= left / grows - share / 100 < 0.07)
    expect("batch", batch, batch["result"] == "serves what was recorded")


def check_leak(name, site):
    snapshot = os.path.join(ROOT, "traces", "bundled", name + ".pickle.xz")
    answer = table.explain(FRAGSIM, snapshot, "-c", "300MiB")
    expect(name, f"cause {answer['cause']}", answer["cause"] == "growth")
    expect(name, "the advice is no free", answer["advice"]["kind"] == "fix_leak"
           and answer["advice"]["change_kind"] == "step_free")
    expect(name, f"site {answer['grown_site']}",
           site is None or answer["grown_site"].endswith(site))


def cells(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split("\t") for line in file.read().splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def check_holes(name, kept, answer):
    """The picture of the holes shows the bytes of the answer, to scale."""
    facts, = cells(os.path.join(kept, "holes.facts.tsv"))
    scale = int(facts["row_bytes"]) / int(facts["wide"])
    rows = int(facts["rows"])
    kinds = [0] * 4
    for run in cells(os.path.join(kept, "holes.tsv"))[1:]:
        expect(name, f"{run} lies outside", int(run["row"]) < rows and
               0 <= int(run["from"]) < int(run["to"]) <= int(facts["wide"]))
        kinds[int(run["kind"])] += (int(run["to"]) - int(run["from"])) * scale
    room = 0.02 * answer["reserved_bytes"]
    for what, shown in (("live", kinds[0]), ("pending", kinds[1]),
                        ("cached", kinds[2] + kinds[3])):
        expect(name, f"{what}: {shown:.0f} bytes are drawn",
               abs(shown - answer[what + "_bytes"]) <= room)
    request = answer["request"]
    useful = sum(s["cached_bytes"] for s in answer["spaces"] if not request or
                 (s["pool"], s["stream"], s["blocks"]) ==
                 (request["pool"], request["stream"],
                  "large" if request["rounded_bytes"] > 1 << 20 else "small"))
    expect(name, f"{kinds[2]:.0f} bytes of {useful} are drawn as usable",
           abs(kinds[2] - useful) <= room and int(facts["usable"]) == useful)
    frames = {}
    for frame in cells(os.path.join(kept, "holes.frames.tsv"))[1:]:
        frames.setdefault(frame["kind"], 0)
        frames[frame["kind"]] += (float(frame["to"]) - float(frame["from"])) \
            * scale
    largest, own = answer["largest_hole_bytes"], \
        answer["own_largest_hole_bytes"]
    expect(name, f"frames {frames}, not {largest} and {own}",
           abs(frames.get("usable", 0) - own) <= 3 * scale and
           ("largest" in frames) == (largest > own) and
           abs(frames.get("largest", largest) - largest) <= 3 * scale)
    expect(name, "the segments are not all framed",
           frames["segment"] <= answer["reserved_bytes"] * 1.001 and
           frames["segment"] >= 0.5 * answer["reserved_bytes"])
    labels = cells(os.path.join(kept, "holes.spaces.tsv"))
    expect(name, f"{len(labels)} labels", len(labels) ==
           min(len(answer["spaces"]), 13))
    expect(name, "bytes of the labels", len(answer["spaces"]) > 12 or
           sum(int(l["reserved"]) for l in labels) == answer["reserved_bytes"])
    request = (request or {}).get("rounded_bytes", 0)
    expect(name, "a row is shorter than the request",
           int(facts["row_bytes"]) >= request == int(facts["request"]))
    expect(name, f"{rows} rows", rows <= 24)


def check_pictures(folder):
    """The pictures show the failure, or the end of a job that did not fail."""
    for name, more, heading in (
            ("lstm_varlen__cap_below", (), "Holes at the failed request"),
            ("gpt2_train", (), "Holes at the end"),
            ("cudagraph", (), "Holes at the end"),
            ("leak_frames", ("-c", "300MiB"), "Holes at the failed request"),
            ("multistream", ("-c", "740MiB"), "Holes at the failed request"),
            ("cudagraph", ("-c", "700MiB"), "Holes at the failed request"),
            ("late_start", (), "Holes at the end")):
        holes, kept = (os.path.join(folder, "-".join((name, *more)) + end)
                       for end in (".svg", ".kept"))
        answer = table.explain(
            FRAGSIM, os.path.join(ROOT, "traces", "bundled",
                                  name + ".pickle.xz"),
            "-o", holes, "--keep", kept, *more)
        check_holes(name, kept, answer)
        with open(holes, encoding="utf-8") as file:
            expect(name, "no heading", heading in file.read().replace(
                "\xa0", " "))


def check_devices(folder):
    """A picture shows one device of a snapshot of two."""
    with lzma.open(os.path.join(ROOT, "traces", "bundled",
                                "cudagraph.pickle.xz")) as file:
        snapshot = pickle.load(file)
    others, trace = copy.deepcopy(([s for s in snapshot["segments"]
                                    if s["device"] == 0],
                                   snapshot["device_traces"][0]))
    for segment in others:
        segment["device"] = 1
    snapshot["segments"] += others
    snapshot["device_traces"] = [snapshot["device_traces"][0], trace]
    path, out = (os.path.join(folder, n) for n in ("two.pickle", "two.svg"))
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)

    def run(*more):
        return subprocess.run([FRAGSIM, "explain", path, "-q", *more],
                              capture_output=True, text=True, check=False)

    lines = run().stdout.split("\n")
    expect("two devices", f"lines {lines[:3]}",
           [l for l in lines if "two.pickle" in l] ==
           [f"{path}, device 0", f"{path}, device 1"] and
           lines[lines.index(f"{path}, device 1") - 1] == "")
    done = run("-o", out)
    expect("two devices", f"drawn: {done}", done.returncode == 2 and
           "choose one with --device" in done.stderr and
           not os.path.exists(out))
    expect("device 1", "not drawn", run("-o", out, "--device", "1")
           .returncode == 0 and os.path.exists(out))


def main():
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("gnuplot"):
            check_pictures(folder)
            check_devices(folder)
        check_program(folder)
        check_places(folder)
    for name, site in LEAKS.items():
        check_leak(name, site)
    check_survivors()
    check_checkpointing()
    check_limits()
    check_batches()
    deaths = [d for folder in ("dev", "causes", "batch")
              for d in table.died(os.path.join(RECORDED, folder))]
    for snapshot, facts in share(deaths):
        check_death(snapshot, facts)
    for text in wrong:
        print(text)
    if not wrong and not deaths:
        print("no recordings")
        return 77
    print(f"{len(deaths)} recordings that ran out of memory, {len(wrong)} "
          "differences")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
