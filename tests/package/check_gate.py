#!/usr/bin/env python3
"""check_gate.py: checks `python -m fragsim.gate` and the action that runs it: what
passes, what fails and which site it names, a baseline that is absent, damaged, of
another PyTorch or of another origin, a tool that is absent, a program that fails, a
leak, bounds, and comments whose Markdown holds whatever a recording contains. The
recordings are bundled or made from them; tests/gpu/dry/torch stands for PyTorch. With
FRAG_DRY_PYTHON (a Python with PyTorch's build for CUDA), one real program is judged too.
Environment: FRAGSIM, FRAG_BUILD_DIR, FRAG_DRY_PYTHON.
"""
import importlib.util
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, BUNDLED, FRAGSIM, ROOT, need, run as tool

ENV = {**os.environ, "FRAGSIM": FRAGSIM, "PYTHONDONTWRITEBYTECODE": "1",
       "PYTHONPATH": os.path.join(ROOT, "sim", "python")}
SHORT = os.path.join(BUNDLED, "leak_cpp.pickle.xz")
LONG = os.path.join(BUNDLED, "leak_frames.pickle.xz")
HOSTILE = "w`_``leak|<img src=x>@all\n#1 <!-- \u202e"
LEAKING = ("train.py:162", "train.py:163", "train.py:164")


def gate(*words, code=0, env=None, **options):
    """The gate's comment and its words on stderr."""
    done = subprocess.run([sys.executable, "-m", "fragsim.gate", *words],
                          env={**ENV, **(env or {})}, text=True, check=False,
                          capture_output=True, timeout=200, **options)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    check_markdown(done.stdout)
    return done.stdout, done.stderr


def outside_code(line):
    """The line without its code spans."""
    return re.sub(r"`[^`]*`", "", line)


def check_markdown(text):
    """Fences are closed, the rows of a table have as many cells as its head, and
    outside of code there is no tag but ours, no mention and no number of an issue."""
    fence, cells = None, None
    for line in text.splitlines():
        run = re.match("`{3,}", line)
        if fence:
            fence = None if line == fence else fence
            continue
        if run:
            fence = run.group()
            continue
        bare = outside_code(line)
        if line.startswith("|"):
            count = len(re.findall(r"(?<!\\)\|", line))
            assert cells in (None, count), line
            cells = count
        else:
            cells = None
        bare = re.sub("</?(details|summary)>", "", bare)
        assert not re.search("[<>@]|#[0-9]", re.sub("^<!-- [^<>]* -->$", "", bare)), line
        assert line.count("`") % 2 == 0, line
    assert fence is None, text


def snapshot(path, change):
    """A copy of the long recording, changed."""
    with lzma.open(LONG) as file:
        made = pickle.load(file)
    change(made)
    with open(path, "wb") as file:
        pickle.dump(made, file)
    return path


def frames_of(made):
    lists = {id(e["frames"]): e["frames"] for trace in made["device_traces"]
             for e in trace if e.get("frames")}
    return [frame for frames in lists.values() for frame in frames]


# ---- what it says ----

def check_pass_and_fail(folder):
    baseline = os.path.join(folder, "baseline.zip")
    text, words = gate("--baseline", baseline, "--snapshot", SHORT, code=4)
    assert "there is no baseline" in text and "294.119 MiB" in text, text
    assert "fragsim.gate --update --baseline" in text and "--update stores" in words
    assert not os.path.exists(baseline)
    _, words = gate("--baseline", baseline, "--snapshot", SHORT, "--update")
    assert "stored" in words, words
    tool("validate", baseline)  # every command reads it
    text, words = gate("--baseline", baseline, "--snapshot", SHORT)
    assert "within the limits" in text and "more than" not in text, text
    comment, answer = (os.path.join(folder, name) for name in ("c.md", "c.json"))
    text, _ = gate("--baseline", baseline, "--snapshot", LONG, "--capacity", "400MiB",
                   "--capacity", "1TiB", "--markdown", comment, "--json", answer, code=1)
    for part in ("live at the peak: +139.914 MiB (+47.57 %), more than 2%",
                 "What grew most is `w_leak (train.py:164)`",
                 "| `w_leak (train.py:164)` | 40 MiB | 120 MiB | +80 MiB | +40 |",
                 "\nw_leak (train.py:164)\n", "- no longer fits `400MiB`\n",
                 "step to step, as in the baseline:", f"--snapshot {LONG} --capacity 400MiB "
                 "--capacity 1TiB\n```"):
        assert part in text, (part, text)
    assert text.count("1TiB") == 1, text  # in the command alone
    with open(comment, encoding="utf-8") as file:
        assert file.read() == text
    with open(answer, encoding="utf-8") as file:
        found = json.load(file)
    assert found["exit_code"] == 1 and found["sites"][0] == "w_leak (train.py:164)"
    assert len(found["reasons"]) == 3, found["reasons"]
    gate("--baseline", baseline, "--snapshot", LONG, "--fail-over", "60%")
    # A shrinking run passes, and an update compares before it stores.
    gate("--baseline", LONG, "--snapshot", SHORT)
    text, _ = gate("--baseline", baseline, "--snapshot", LONG, "--update")
    assert "+47.57 %" in text, text


def check_bounds(folder):
    """A bound that the baseline missed too is no growth, and fails all the same."""
    del folder
    text, _ = gate("--baseline", LONG, "--snapshot", LONG, "--capacity", "300MiB", code=1)
    assert "does not fit `300MiB`, nor did the baseline" in text, text


def check_leak(folder):
    """The baseline does not leak; the growth that is allowed is larger than the
    difference of the peaks."""
    baseline = os.path.join(folder, "no_leak.h5")
    tool("edit", LONG, "-o", baseline, *(word for site in LEAKING
                                         for word in ("-e", f"drop:site={site}")))
    text, _ = gate("--baseline", baseline, "--snapshot", LONG, "--fail-over", "3000%",
                   code=1)
    assert "- memory grows from step to step" in text, text
    assert "| `w_leak (train.py:164)` | +2 MiB | 57 |" in text, text
    text, _ = gate("--baseline", baseline, "--snapshot", LONG, "--fail-over", "9000%")
    assert "from step to step, too little to fail:" in text, text


def check_hostile(folder):
    """Whatever a recording contains stays in code."""
    def rename(made):
        for frame in frames_of(made):
            frame["name"] = HOSTILE
            if frame["line"] == 164:
                frame["filename"] = "/tmp/`````/a|b.py"

    path = snapshot(os.path.join(folder, "hostile.pickle"), rename)
    text, _ = gate("--baseline", SHORT, "--snapshot", path, code=1)
    assert "\\|<img src=x>@all?#1" in text, text
    assert "".join(text.split("\n")).isprintable(), text
    gate("--baseline", os.path.join(folder, "a --> <b>|`.zip"), "--snapshot", path, code=4)


def check_versions(folder):
    baseline = os.path.join(folder, "old.zip")
    gate("--baseline", baseline, "--snapshot", SHORT, "--update")
    with zipfile.ZipFile(baseline) as packed:
        kept = packed.read("snapshot.pickle")
        facts = json.loads(packed.read("gate.json"))
    assert facts["torch"] == "2.11.0+cu130", facts
    with zipfile.ZipFile(baseline, "w") as packed:
        packed.writestr("snapshot.pickle", kept)
        packed.writestr("gate.json", json.dumps({**facts, "torch": "2.9.1<x>"}))
    text, _ = gate("--baseline", baseline, "--snapshot", SHORT)
    assert "PyTorch: the baseline has `2.9.1<x>`, this run `2.11.0+cu130`" in text, text
    text, _ = gate("--baseline", SHORT, "--snapshot", SHORT)
    assert "has `?`" in text, text  # a recording of another origin


# ---- what it refuses ----

def check_damaged(folder):
    baseline = os.path.join(folder, "damaged.zip")
    gate("--baseline", baseline, "--snapshot", SHORT, "--update")
    with open(baseline, "rb") as file:
        whole = file.read()
    facts = os.path.join(folder, "facts.zip")
    with zipfile.ZipFile(facts, "w") as packed:
        packed.writestr("snapshot.pickle", b"\x80\x02N.")
        packed.writestr("gate.json", "[1")
    with open(facts, "rb") as file:
        no_json = file.read()
    for text, part in ((whole[:len(whole) // 2], "damaged.zip"), (b"no recording\n", ""),
                       (no_json, "gate.json"), (b"", "")):
        with open(baseline, "wb") as file:
            file.write(text)
        out, words = gate("--baseline", baseline, "--snapshot", SHORT, code=3)
        assert not out and "fragsim gate: " in words and part in words, words
    gate("--baseline", baseline, "--snapshot", SHORT, "--update")  # replaces it
    gate("--baseline", baseline, "--snapshot", SHORT)
    before = open(baseline, "rb").read()
    gate("--baseline", baseline, "--snapshot", os.path.join(folder, "facts.zip"),
         "--update", code=3)
    assert open(baseline, "rb").read() == before
    assert not [n for n in os.listdir(folder) if "partial" in n]


def check_misuse(folder):
    baseline = os.path.join(folder, "no.zip")
    gate("--baseline", baseline, code=2)
    gate("--snapshot", SHORT, code=2)
    for text in ("2", "abc", '"2%"'):
        _, words = gate("--baseline", SHORT, "--snapshot", SHORT, "--fail-over", text,
                        code=2)
        assert "expected a percentage" in words, words
    dead = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
    text, _ = gate("--baseline", dead, "--snapshot", dead)
    assert "refused in the baseline" in text and "refused in this run" in text, text
    _, words = gate("--baseline", SHORT, "--snapshot", SHORT, "--gpu", "t4", code=2)
    assert "--capacity" in words, words
    _, words = gate("--baseline", SHORT, "--snapshot", SHORT, code=4,
                    env={"FRAGSIM": os.path.join(folder, "absent")})
    assert "expected the fragsim tool" in words, words
    _, words = gate("--baseline", SHORT, "--snapshot", os.path.join(folder, "n.pickle"),
                    code=4)
    assert "n.pickle" in words, words
    gate("--baseline", SHORT, "--snapshot", SHORT, code=4, *["--markdown", "/absent/c.md"])


# ---- programs ----

def check_programs(folder):
    """The dry run of a program, on what stands for PyTorch."""
    env = {"PYTHONPATH": os.pathsep.join([ENV["PYTHONPATH"],
                                          os.path.join(ROOT, "tests", "gpu", "dry")])}
    program, baseline = (os.path.join(folder, n) for n in ("p.py", "p.zip"))

    def judge(text, *words, code=0):
        with open(program, "w", encoding="utf-8") as file:
            file.write("import sys, torch\n" + text)
        return gate("--baseline", baseline, *words, "--", sys.executable, program,
                    code=code, env=env)

    text, _ = judge("torch.empty(10 << 30)\n", "--gpu", "t4", code=4)
    assert "| needs | 10 GiB |" in text, text
    judge("torch.empty(10 << 30)\n", "--gpu", "t4", "--update")
    judge("torch.empty(10 << 30)\n", "--gpu", "t4")
    text, _ = judge("torch.empty(20 << 30)\n", "--gpu", "t4", code=1)
    assert "- no longer fits `t4`" in text, text
    _, words = judge("torch.empty(20 << 30)\n", "--gpu", "l4", code=2)
    assert "as on the GPU t4, this run as on l4" in words, words
    text, _ = judge("torch.empty(24 << 30)\n", code=1)
    assert "`l4`, `t4`" in text, text
    ranks = [*("--", "sh", "-c"), f"RANK=0 {sys.executable} {program} & "
             f"RANK=1 {sys.executable} {program} 2; wait"]
    with open(program, "w", encoding="utf-8") as file:
        file.write("import sys, torch\ntorch.empty(len(sys.argv) << 30)\n")
    absent = ["--baseline", os.path.join(folder, "ranks.zip")]
    for rank, need_text in (("0", "1 GiB"), ("1", "2 GiB")):
        text, _ = gate(*absent, "--rank", rank, *ranks, code=4, env=env)
        assert f"| needs | {need_text} |" in text, text
    _, words = gate(*absent, "--rank", "2", *ranks, code=2, env=env)
    assert "and none is 2: --rank chooses one" in words, words
    for text, part, code in (("torch.empty(1 << 30)\nsys.exit(3)\n", "ended with 3", 5),
                             ("raise SystemExit(1)\n", "exit code 1", 5),
                             ("pass\n", "no process did", 2)):
        out, words = judge(text, code=code)
        assert not out and part in words, words
    _, words = gate("--baseline", baseline, "--", "/absent/python", program, code=5)
    assert "/absent/python" in words, words


def check_record(folder):
    """A program on a GPU, for which tests/gpu/python/torch.py stands, by the recorder
    of the package."""
    program, baseline = (os.path.join(folder, n) for n in ("p.py", "r.zip"))
    with open(program, "w", encoding="utf-8") as file:
        file.write("import sys\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")

    def judge(name, *words, leave="0", code=0):
        source = os.path.join(BUNDLED, name)
        return gate("--baseline", baseline, "--record", *words, "--", sys.executable,
                    program, leave, code=code, env={
                        "PYTHONPATH": os.pathsep.join(
                            [ENV["PYTHONPATH"], os.path.join(ROOT, "tests", "gpu",
                                                             "python")]),
                        "STANDIN_SNAPSHOT": source + ".pickle.xz",
                        "STANDIN_STATS": source + ".json"})

    judge("leak_cpp", "--update")
    text, words = judge("leak_cpp")
    assert "what changed can be due" not in text and "['0']" in words, (text, words)
    text, _ = judge("leak_frames", code=1)
    assert "What grew most is `w_leak (train.py:164)`" in text, text
    _, words = judge("leak_cpp", leave="3", code=5)
    assert "found the exit code 3" in words, words
    text, _ = gate("--baseline", baseline, "--snapshot", SHORT)
    assert "recorded: the baseline has `on a GPU`, this run `as recorded`" in text, text


def check_real(folder):
    """A retained list, by PyTorch itself."""
    python = os.environ.get("FRAG_DRY_PYTHON")
    if not python:
        print("FRAG_DRY_PYTHON is not set: no program of PyTorch was judged")
        return
    program, baseline = (os.path.join(folder, n) for n in ("train.py", "real.zip"))
    lines = ["import torch", "kept = []", "layer = torch.nn.Linear(1024, 1024).cuda()",
             "for step in range(9):", "    y = layer(torch.ones(512, 1024).cuda())",
             "    y.sum().backward()"]
    for more, words, code in (([], ["--update"], 0), ([], [], 0),
                              (["    kept.append(y)"], [], 1)):
        with open(program, "w", encoding="utf-8") as file:
            file.write("\n".join(lines + more) + "\n")
        text, _ = gate("--baseline", baseline, *words, "--", python, program, code=code)
    assert "What grew most is `<module> (train.py:5)`" in text, text


# ---- the action ----

GH = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *--jq*) cat "$IDS" ;; esac
case "$*" in *body=@*) [ -z "$REFUSE" ] ;; esac
"""


def check_inputs(action):
    """The inputs that are declared, used, and named by the examples."""
    inputs = set(re.findall(r"^  ([\w-]+):\n    description", action, re.M))
    used = set(re.findall(r"inputs\.([\w-]+)", action))
    assert used <= inputs and inputs - used == {"exit-code", "comment"}, (inputs, used)
    assert not re.findall(r"run:.*\$\{\{", action)  # inputs are never part of a command
    with open(os.path.join(ROOT, "tests", "examples", "memory_gate.yml"),
              encoding="utf-8") as file:
        example = file.read()
    with open(os.path.join(ROOT, "sim", "cli", "site", "gate.md"),
              encoding="utf-8") as file:
        line = re.search("fragsim@main\n +with: {(.*)}", file.read()).group(1)
    named = re.findall(r"^          ([\w-]+):", example, re.M) + \
        re.findall(r"([\w-]+): ", line)
    assert len(named) == 5 and set(named) <= used, named


def wheel(folder):
    """The package without the tool, which $FRAGSIM names."""
    path = os.path.join(folder, "fragsim-0-py3-none-any.whl")
    package = os.path.join(ROOT, "sim", "python", "fragsim")
    with zipfile.ZipFile(path, "w") as made:
        for name in os.listdir(package):
            if name.endswith(".py"):
                made.write(os.path.join(package, name), "fragsim/" + name)
        made.writestr("fragsim-0.dist-info/METADATA",
                      "Metadata-Version: 2.1\nName: fragsim\nVersion: 0\n")
        made.writestr("fragsim-0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                      "Root-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("fragsim-0.dist-info/RECORD", "")
    return path


def check_action(folder):
    """The steps of the action, with stand-ins for `gh' and the environment."""
    with open(os.path.join(ROOT, "action.yml"), encoding="utf-8") as file:
        check_inputs(file.read())
    if importlib.util.find_spec("ensurepip") is None:
        print("no ensurepip: the steps of the action were not run")
        return
    env = {name: value for name, value in ENV.items() if name != "PYTHONPATH"}
    subprocess.run([os.path.join(ROOT, ".ci", "gate"), "install"], check=True, env={
        **env, "FRAGSIM_PIP": wheel(folder), "RUNNER_TEMP": folder}, timeout=200)
    calls, ids, output, home = (os.path.join(folder, n) for n in
                                ("calls", "ids", "output", "environment"))
    os.makedirs(os.path.join(home, "bin"))
    os.symlink(sys.executable, os.path.join(home, "bin", "python"))
    with open(os.path.join(home, "bin", "gh"), "w", encoding="utf-8") as file:
        file.write(GH)
    os.chmod(file.name, 0o755)
    program = os.path.join(folder, "q.py")

    def judge(count, code, known="", number="7", refuse="", options=""):
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"import torch\ntorch.empty({count} << 30)\n")
        with open(ids, "w", encoding="utf-8") as file:
            file.write(known)
        for path in (calls, output):
            open(path, "w", encoding="utf-8").close()
        done = subprocess.run(
            [os.path.join(ROOT, ".ci", "gate"), "judge"], text=True, check=False,
            capture_output=True, env={
                **env, "PATH": os.path.join(home, "bin") + ":" + ENV["PATH"],
                "PYTHONPATH": os.path.join(ROOT, "tests", "gpu", "dry"),
                "BASELINE": os.path.join(folder, "q.zip"), "OPTIONS": options,
                "PROGRAM": f"python {program}", "ENVIRONMENT": home, "CALLS": calls,
                "IDS": ids, "REFUSE": refuse, "NUMBER": number, "GH_TOKEN": "x",
                "GITHUB_REPOSITORY": "o/r", "GITHUB_OUTPUT": output,
                "RUNNER_TEMP": folder})
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        with open(output, encoding="utf-8") as file:
            assert f"exit-code={code}\n" in file.read()
        with open(calls, encoding="utf-8") as file:
            return [line for line in file if "body=@" in line], done.stdout

    assert len(judge(2, 4)[0]) == 1
    judge(2, 0, options="--update", number="")
    assert judge(2, 0)[0] == []
    written, _ = judge(3, 1)
    assert "repos/o/r/issues/7/comments -F" in written[0], written
    written, _ = judge(2, 0, known="55\n66\n")  # an earlier comment is edited
    assert len(written) == 1 and "-X PATCH repos/o/r/issues/comments/55 " in written[0]
    assert "::warning::" in judge(3, 1, refuse="yes")[1]
    assert judge(3, 1, number="")[0] == []
    judge(3, 0, options='--fail-over\n"90%"')  # words with quotes, on two lines
    done = subprocess.run([os.path.join(ROOT, ".ci", "gate"), "judge"], text=True,
                          check=False, capture_output=True,
                          env={**env, "PROGRAM": "python", "OPTIONS": '"90%'})
    assert done.returncode == 2 and "whole quotes" in done.stderr, done


def main():
    need(FRAGSIM, os.path.join(BUILD, "dry", "libcuda.so.1"))
    for check in (check_pass_and_fail, check_bounds, check_leak, check_hostile,
                  check_versions, check_damaged, check_misuse, check_programs, check_record,
                  check_real, check_action):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
        print(check.__name__, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
