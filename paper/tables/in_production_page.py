"""in_production_page.py: makes the page of in_production.py from its rows."""
import json
from collections import Counter

from inside_page import NAMES, failures, line, resolution, time_cells, times

PROGRAMS = {
    "oom": "requests that cannot be met are refused; the program goes on",
    "peers": "copies between two devices, both directions",
    "second_device": "`set_device(1)` before `use()`",
    "statistics": "statistics, snapshot and history against a model",
    "graphs": "CUDA graphs and memory pools against eager kernels",
    "compiled": "`torch.compile(mode=\"reduce-overhead\")`",
    "snapshot": "a snapshot taken inside",
    "other_process": "a tensor sent to another process",
    "soak": "8 threads, streams, graphs, refusals",
}
WARM = 5  # rounds that are not counted
MODES = ("ddp", "fsdp")  # of training on two GPUs
# Why a test of PyTorch fails only under a policy.
SETTINGS = ("changes the settings of PyTorch's own allocator; those of a policy are "
            "fixed at its start")
REASONS = {
    "test_allocator_backend": "asks for the name of another backend",
    "test_allocator_settings": SETTINGS,
    "test_mempool_expandable": SETTINGS,
    "test_memory_plots": "looks for the size of a request in a block after its free",
}
GIB = 1 << 30
TEXT = """# Policies of fragsim under programs as people run them

PyTorch {about}; made by `paper/gpu/in_production.py` from `paper/data/in_production.jsonl`
(commands: {commands}; PyTorch's own tests: `tests/gpu/torch/upstream.py rows`).

## Small programs

Each row is one program of `in_production_programs.py` in a process of its own.
`PyTorch` is PyTorch's own allocator; the others are policies of fragsim, through the
class over PyTorch's whole interface, or through the pluggable allocator where the row
says so. All rows are of the versions of 2026-11-23: `remap` meshed then, unless it was told
not to, and `expandable` was another policy. What these cost today is in steps.md and
live.md.

{lines}

{wrong}

All counters of `memory_stats()` at {looks} moments of the random program, the policy
of fragsim against the same algorithm in PyTorch. The counters of the two pools with
expandable segments were mended after these rows and before PyTorch's own tests below;
`tests/gpu/check_torch_class.py`, which needs no GPU, compares them. `num_device_alloc` and
`num_device_free` count maps: PyTorch maps several pages by one, a policy page by page.

{compared}

The snapshot of the random program, replayed afterwards by the tool with the policy it
was taken under, against what the program itself said it had reserved at most (`remap`
with `mesh=no`, since it never meshes under a running program):

{replays}

## Training on one GPU

All processes run on one GPU at once and advance in turns of one step
(`lockstep.py`; inside_torch.md says how the times are compared). The capacity of the
last two rows of a workload is a multiple of the bytes that PyTorch's default
allocated at most in the same steps ({peaks}). A row with dashes ended in a request
that was refused, after the steps that its times come from ("What failed").

{times}

{resolution}

Driver calls are rare: steps with any call, of all steps: {busy}.

## Training on two GPUs

A Llama model of 8 layers with tokens of varying lengths, a rank on each GPU
(`in_production_ranks.py`), in turns of one step of both ranks. A capacity is a multiple
of the bytes that PyTorch's default allocated at most on that rank in the same steps
({rank_peaks}). `one step` compares loss and gradients of a step with one order of
sums, over both ranks; a side that a refused request ended early has none.

{ranks}

## Many threads

{soak}

The last three rows are a second run, all on the second device, while PyTorch's own tests
ran on the first one. In the first run, each request of
4 TiB under `torch:expandable_segments:True` used up addresses, until requests were
refused although memory was there; this was mended between the runs.

## PyTorch's own tests

The memory tests of PyTorch's test file test/test_cuda.py, of its main branch after
2.11, under PyTorch 2.11, which lacks some functions that they call. A test that failed
ran once more alone. A test that fails with PyTorch's own allocator too says nothing
about the policy.

{upstream}
{failed}"""


def of(rows, kind):
    return [r for r in rows if r["kind"] == kind]


def code(side):
    plain = side.removesuffix(" pluggable")
    name = plain if plain == "PyTorch" else f"`{plain}`"
    return name + (", pluggable" if plain != side else "")


def lines(rows):
    yield from ["| program | allocator | checks | hold |",
                "|---|---|---:|---:|"]
    for name, what in PROGRAMS.items():
        found = {}
        for r in of(rows, "line"):
            if r["line"] == name:
                held = (len(r["checks"]), sum(c[1] for c in r["checks"]))
                found.setdefault(held, []).append(code(r["side"]))
        for (count, hold), sides in found.items():
            yield line([what, ", ".join(dict.fromkeys(sides)), str(count),
                        str(hold)])


def short(words):
    text = words if isinstance(words, str) else json.dumps(words)
    return " ".join(text.split())[:240]


def wrong(rows):
    found = [f"- `{r['line']}`, {code(r['side'])}: {c[0]}: {short(c[2])}"
             for r in of(rows, "line") for c in r["checks"] if not c[1]]
    return "\n".join(["What does not hold:", "", *found]) if found \
        else "All checks hold."


def compared(rows):
    yield from ["| policy | in PyTorch | moments | counters | different |",
                "|---|---|---:|---:|---|"]
    for r in of(rows, "statistics"):
        yield line([code(r["side"]), code(r["against"]), str(r["looks"]),
                    str(r["counters"]), ", ".join(r["differ"]) or "none"])


def replays(rows):
    yield from ["| policy | reserved at most, inside | by the replay |  |",
                "|---|---:|---:|---|"]
    for r in of(rows, "replay"):
        found = r.get("peak_replayed")
        yield line([code(r["side"]), f"{r['peak_reserved']:,}",
                    f"{found:,}" if found else "-",
                    "equal" if found == r["peak_reserved"] else
                    short(r.get("words", "different"))])


def first_steps(ends):
    """Loss and gradients of the first step, by side, of both ranks."""
    return {r["side"]: r["firsts"] for r in ends}


def rank_rows(rows):
    yield from ["| training | allocator | rounds | reserved, GiB | / allocated, rank "
                "0 | rank 1 | step, ms | median ratio, % above 1 | all steps, % above "
                "1 | within 1 % | one step |",
                "|---|---|---:|---:|---:|---:|---:|---|---|---|---|"]
    for mode in MODES:
        rounds = [r["sides"] for r in of(rows, "ranks") if r["mode"] == mode]
        firsts = first_steps(r for r in of(rows, "ranks end")
                             if r["mode"] == mode)
        for side in dict.fromkeys(s for r in rounds for s in r):
            mine = [r[side] for r in rounds if side in r]
            last = [mine[-1], mine[-1]["rank 1"]]
            same = "-" if not {side, "default"} <= set(firsts) else \
                "equal" if firsts[side] == firsts["default"] else "different"
            yield line([mode.upper(), NAMES.get(side, side), str(len(mine)),
                        f"{last[0]['peak_reserved'] / GIB:.3f}",
                        *(f"{p['peak_reserved'] / p['peak_allocated']:.3f}"
                          for p in last),
                        *time_cells(rounds[WARM:], side), same])


def soaked(rows):
    """The row of each soak: its end, or the last row of one that was cut off."""
    done = [r for r in of(rows, "line") if r["line"] == "soak" and "counts" in r]
    ended = {r["side"] for r in done}
    last = {r["side"]: {**r, "cut": ", cut off"} for r in of(rows, "soak")
            if r["side"] not in ended}
    return [*done, *last.values()]


def soaks(rows):
    yield from ["| allocator | seconds | blocks | contents checked | wrong | refused "
                "at the limit | refused, 4 TiB | graphs | reserved at most, GiB |",
                "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for r in soaked(rows):
        c = r["counts"]
        yield line([code(r["side"]) + r.get("cut", ""), f"{r['seconds']:.0f}",
                    f"{c['blocks']:,}", f"{c['checked']:,}",
                    *(str(c[k]) for k in ("wrong", "refused", "too large",
                                          "graphs")),
                    f"{r['peak_reserved'] / GIB:.2f}"])
    for r in of(rows, "used"):
        yield f"\nIn use on the devices, MiB: {r['before']} before, " \
              f"{r['after']} after the processes of the soak."


PASSED = ("ok", "expected failure")


def upstream(rows):
    """The last result of each test, by side."""
    found = {}
    for r in of(rows, "upstream"):
        found.setdefault(r["side"], {})[r["test"]] = r
    own = found.get("PyTorch", {})
    yield from ["| allocator | tests | passed | skipped | failed | failed, not with "
                "PyTorch's own |", "|---|---:|---:|---:|---:|---|"]
    for side, tests in found.items():
        tests = {k: v for k, v in tests.items() if k != "load"}
        count = Counter("passed" if t["state"] in PASSED else t["state"]
                        for t in tests.values())
        bad = [k for k, t in tests.items()
               if t["state"] not in (*PASSED, "skipped")]
        only = [k for k in bad if own.get(k, {}).get("state") in PASSED]
        yield line([code(side), str(len(tests)), str(count["passed"]),
                    str(count["skipped"]), str(len(bad)), "; ".join(
                        f"`{k}`: {REASONS[k.split('.')[1]]}" for k in sorted(only))
                    or ("" if side == "PyTorch" else "none")])


def busy_steps(rows):
    """Of each program and side in turns: the steps that called the driver."""
    steps = {}
    for r in of(rows, "round"):
        if r["round"] >= WARM:
            for side, a in r["sides"].items():
                steps.setdefault((r["workload"], side), []).append(
                    a.get("calls", 0) > 0)
    return ", ".join(f"`{workload}` {side} {sum(found)} of {len(found)}"
                     for (workload, side), found in sorted(steps.items())
                     if side != "again")


def rank_peaks(rows):
    return "; ".join(
        f"{r['mode'].upper()} " + " and ".join(
            f"{p / GIB:.3f}" for p in r["peak_allocated"]) + " GiB"
        for r in of(rows, "ranks peak") if r["peak_allocated"])


def page(rows):
    about = of(rows, "about")[0]
    looks = max((r["looks"] for r in of(rows, "statistics")), default=0)
    peaks = ", ".join(f"`{r['workload']}` {r['peak_allocated'] / GIB:.3f} GiB"
                      for r in of(rows, "peak") if "peak_allocated" in r)
    dates = ", ".join(sorted({r["date"] for r in of(rows, "about")}))
    return TEXT.format(
        about=f"{about['torch']} ({about.get('devices', 1)} devices), driver "
        f"{about['driver']}, {about['cores']} cores, {dates}",
        commands=", ".join(dict.fromkeys(
            f"`{r['command']}`" for r in of(rows, "about")
            if "in_production.py" in r.get("command", ""))),
        busy=busy_steps(rows),
        lines="\n".join(lines(rows)), wrong=wrong(rows), looks=looks,
        compared="\n".join(compared(rows)), replays="\n".join(replays(rows)),
        peaks=peaks, times="\n".join(times(rows)),
        resolution="\n".join(resolution(rows)),
        ranks="\n".join(rank_rows(rows)), rank_peaks=rank_peaks(rows), soak="\n".join(soaks(rows)),
        upstream="\n".join(upstream(rows)), failed=failures(rows))


def make_page(path, out):
    with open(path, encoding="utf-8") as file:
        text = page([json.loads(l) for l in file])
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
