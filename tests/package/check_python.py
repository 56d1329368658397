#!/usr/bin/python3
"""check_python.py [--installed]: checks the Python package against the tool: the
same numbers as its JSON and its files, its words and exit codes as exceptions,
its end when the user interrupts, and the messages that name a missing package.
The package is read from the source tree, or, with --installed, from where
python3 finds it. tests/gpu/python/torch.py stands for PyTorch. What needs pandas,
h5py or gnuplot is left out without them, and the output says so.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import glob
import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
INSTALLED = "--installed" in sys.argv
if not INSTALLED:
    os.environ["FRAGSIM"] = os.path.realpath(
        os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim")))
    if not os.access(os.environ["FRAGSIM"], os.X_OK):
        print(f"check_python: no tool at {os.environ['FRAGSIM']}; skipped")
        sys.exit(77)
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "sim", "python")
    sys.path.insert(0, os.environ["PYTHONPATH"])
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
import fragsim  # pylint: disable=wrong-import-position

BUNDLED = os.path.join(ROOT, "traces", "bundled")
LEAK = os.path.join(BUNDLED, "leak.pickle.xz")
STREAMS = os.path.join(BUNDLED, "multistream.pickle.xz")
DEAD = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
SMALL = os.path.join(ROOT, "tests", "cli", "small.csv")
HAS = {name: importlib.util.find_spec(name) is not None
       for name in ("pandas", "h5py")}


def tool(*arguments):
    return subprocess.run([fragsim.tool_path(), *arguments], check=False,
                          capture_output=True, text=True)


def tool_json(*arguments):
    return json.loads(tool(*arguments, "-q", "--json", "-").stdout)["results"]


def raised(kind, function, *arguments, **options):
    """The exception of that kind that the function raises."""
    try:
        function(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{arguments} {options}: no {kind.__name__}")


def python(program, **environment):
    return subprocess.run([sys.executable, "-W", "error", "-c", program],
                          env={**os.environ, **environment}, check=False,
                          capture_output=True, text=True)


# ---- what needs the tool alone ----

def check_import():
    """The package loads nothing that not everyone has, and says what is
    missing; the dictionaries need nothing."""
    done = python("import sys\n"
                  "for name in 'pandas', 'h5py', 'torch', 'numpy':\n"
                  "    sys.modules[name] = None\n"
                  "import fragsim\n"
                  f"print(len(fragsim.answer('replay', {SMALL!r})['results']))\n"
                  f"print(len(fragsim.tune({SMALL!r})['cases']))\n"
                  f"print(fragsim.explain({DEAD!r})[0]['cause'])\n"
                  f"for call in (lambda: fragsim.replay({SMALL!r}),\n"
                  f"             lambda: fragsim.fit({SMALL!r}),\n"
                  f"             lambda: fragsim.read({SMALL!r}),\n"
                  "             lambda: fragsim.record('x')):\n"
                  "    try:\n"
                  "        call()\n"
                  "    except fragsim.MissingPackage as error:\n"
                  "        print(error.name, error)\n")
    wanted = ["1", "1", "fragmentation"] + [
        f"{package} fragsim.{function} needs the package {package}, which is "
        f"not installed: pip install {package}"
        for package, function in (("pandas", "replay"), ("pandas", "fit"),
                                  ("pandas", "read"), ("torch", "record"))]
    assert done.stdout.splitlines() == wanted, (done.stdout, done.stderr)
    for name in fragsim.__all__:
        assert getattr(fragsim, name).__doc__, f"{name} has no docstring"


def check_answers():
    assert fragsim.explain(DEAD) == tool_json("explain", DEAD)
    assert fragsim.answer("info", LEAK)["results"] == tool_json("info", LEAK)
    few = {"no_hold_out": True}
    flags = ["--no-hold-out"]
    assert fragsim.tune(LEAK, **few) == tool_json("tune", LEAK, *flags)[0]
    assert fragsim.tune(LEAK, **few, without=["expandable_segments",
                                              "max_split_size_mb"]) == \
        tool_json("tune", LEAK, *flags, "--without", "expandable_segments",
                  "--without", "max_split_size_mb")[0]
    assert fragsim.tune(LEAK, capacity=10 << 20, **few)["chosen"] is None
    assert fragsim.run("policies") == tool("policies").stdout


def check_errors(folder):
    missing = os.path.join(folder, "missing.pickle")
    for code, words, call in [
            (4, "No such file", lambda: fragsim.explain(missing)),
            (2, "there is no policy", lambda: fragsim.answer(
                "replay", SMALL, policy="nope")),
            (2, "--bogus", lambda: fragsim.tune(SMALL, bogus=True)),
            (2, "nocommand", lambda: fragsim.run("nocommand")),
            (3, "check_python.py:", lambda: fragsim.explain(__file__)),
            (2, "FILE.svg", lambda: fragsim.plot(SMALL, "map", "map.txt"))]:
        error = raised(fragsim.Error, call)
        assert error.code == code and words in str(error), (code, words, error)
        copy = pickle.loads(pickle.dumps(error))
        assert vars(copy) == vars(error)
    os.rename(shutil.copy(SMALL, folder), os.path.join(folder, "-q.csv"))
    home = os.getcwd()
    os.chdir(folder)
    assert fragsim.answer("info", "-q.csv")["results"][0]["path"] == "-q.csv"
    os.chdir(home)
    done = python("import fragsim; fragsim.run('help')", FRAGSIM="/missing/tool")
    assert "/missing/tool: expected the fragsim tool" in done.stderr, done.stderr
    done = python("import runpy; runpy.run_module('fragsim', "
                  "run_name='__main__')", FRAGSIM="/missing/tool")
    assert done.returncode == 4, done
    assert done.stderr.startswith("fragsim: /missing/tool: expected"), done.stderr


def check_command():
    """`python -m fragsim` is the tool: output, exit code and signals."""
    for arguments in (["help", "exits"], ["replay", "missing"], []):
        done = subprocess.run([sys.executable, "-m", "fragsim", *arguments],
                              capture_output=True, text=True, check=False)
        alone = tool(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == \
            (alone.returncode, alone.stdout, alone.stderr), arguments


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def wait_for(what, condition):
    end = time.time() + 60
    while not condition():
        assert time.time() < end, f"waited too long for {what}"
        time.sleep(0.02)


def check_interrupt(folder):
    """A notebook interrupts Python alone: the tool ends too, and leaves no
    output."""
    program = ("import fragsim\n"
               "try:\n"
               f"    fragsim.answer('replay', {STREAMS!r}, output={folder + '/out'!r},\n"
               "                   policy='plan:effort=1000000000000000')\n"
               "except KeyboardInterrupt:\n"
               "    print('interrupted')\n")
    with subprocess.Popen([sys.executable, "-c", program], text=True,
                          stdout=subprocess.PIPE) as user:
        wait_for("the tool", lambda: children(user.pid))
        child, = children(user.pid)
        with open(f"/proc/{child}/status", encoding="ascii") as file:
            assert file.readline().split()[1]
        time.sleep(0.3)
        start = time.time()
        user.send_signal(signal.SIGINT)
        assert user.communicate(timeout=60)[0] == "interrupted\n"
        assert time.time() - start < 9, "the tool was killed, not interrupted"
    wait_for("the end of the tool", lambda: not os.path.exists(f"/proc/{child}"))
    assert not glob.glob(folder + "/out*"), glob.glob(folder + "/out*")


def check_record(folder):
    """The recorder, with a stand-in for PyTorch: `explain` learns the limit
    from the counters beside the snapshot."""
    program = ("import fragsim, torch\n"
               "torch.LIMIT = 5418724131\n"
               f"with fragsim.record({folder + '/job'!r}) as recording:\n"
               "    try:\n"
               "        torch.run_out()\n"
               "    except torch.OutOfMemoryError:\n"
               "        pass\n"
               "for path in recording.files:\n"
               "    answer, = fragsim.explain(path)\n"
               "    print(path[-20:], answer['limit_bytes'],\n"
               "          answer['limit_source'], answer['cause'])\n"
               "    answer, = fragsim.answer('validate', path)['results']\n"
               "    print(answer['verdict'], answer['stats_matched'])\n"
               f"with fragsim.record({folder + '/late'!r}) as recording:\n"
               "    pass\n"
               "answer, = fragsim.answer('validate', *recording.files)['results']\n"
               "print(answer['verdict'], answer['stats_matched'])\n")
    standin = os.path.join(ROOT, "tests", "gpu", "python")
    name = DEAD[:-len(".pickle.xz")]
    done = python(program, STANDIN_SNAPSHOT=DEAD, STANDIN_STATS=name + ".json",
                  RANK="7", PYTHONPATH=os.pathsep.join(
                      [standin, os.environ.get("PYTHONPATH", "")]))
    wanted = []
    for why in ("oom", "exit"):
        wanted += [f"job.rank7.{why}.pickle"[-20:] +
                   " 5418724131 given fragmentation", "exact 121"]
    assert done.stdout.splitlines() == [*wanted, "exact 29"], \
        (done.stdout, done.stderr)


# ---- what needs pandas, h5py or gnuplot ----

def check_rows(table, wanted):
    """A table equals rows of JSON, null for NaN, and holds str."""
    assert list(table.columns) == list(wanted[0])
    for name in table.columns:
        found = [None if value != value else value for value in table[name]]
        assert found == [row[name] for row in wanted], (name, found)
        assert table[name].dtype.kind in "ifO" or name in ("trace", "notes"), name


def check_tables(folder):
    import pandas  # pylint: disable=import-outside-toplevel
    path = os.path.join(folder, "results.h5")
    policies = ["torch", "torch:expandable_segments:True", "best_fit"]
    made = fragsim.replay(SMALL, DEAD, policy=policies, output=path,
                          capacity=[40 << 20, "0.9x", float("inf")])
    wanted = tool_json("replay", SMALL, DEAD, "-c", "40MiB,0.9x,inf",
                       "-o", os.path.join(folder, "tool.h5"),
                       *(word for policy in policies for word in ("-p", policy)))
    for row in wanted:  # a clock measures it
        row["ns_per_event"] = 0
    check_rows(made.assign(ns_per_event=0), wanted)
    assert made.capacity_bytes.isna().sum() == 6 and made.notes[17]
    alone = fragsim.replay(SMALL)
    assert alone.capacity_bytes.dtype == alone.first_oom_event.dtype == float
    check_rows(fragsim.fit(LEAK, policy=policies[1:]), tool_json(
        "fit", LEAK, "-p", policies[1], "-p", policies[2]))
    events = fragsim.read(SMALL)
    assert list(events.columns) == ["op", "id", "bytes", "stream"]
    exported = tool("export", SMALL).stdout
    assert [line.split(",")[0] for line in exported.splitlines()[1:]] == \
        list(events.op)
    two = fragsim.read(os.path.join(BUNDLED, "two_streams.pt"))
    assert any("no place" in note for note in two.attrs["notes"])
    assert (two.bytes.isna() == (two.op != "alloc")).all()
    assert "expected the table 'events'" in str(
        raised(ValueError, fragsim.read, SMALL, "summary"))
    raised(FileNotFoundError, fragsim.read, "missing.h5")
    stored = os.path.join(folder, "trace.h5")
    tool("import", SMALL, "-o", stored)
    if not HAS["h5py"]:
        assert raised(fragsim.MissingPackage, fragsim.read, path).name == "h5py"
        return
    pandas.testing.assert_frame_equal(fragsim.read(stored), events)
    check_file(path, made, pandas)


def check_file(path, made, pandas):
    stored = fragsim.read(path)
    pandas.testing.assert_frame_equal(stored, made)
    assert stored.attrs["units"]["capacity_bytes"] == "byte"
    failed = int((made.num_ooms > 0).idxmax())
    ooms = fragsim.read(path, "oom", run=failed)
    assert len(ooms) == made.num_ooms[failed] > 0
    assert ooms.event[0] == made.first_oom_event[failed]
    series = fragsim.read(path, "series", run=failed)
    assert series.reserved_max.max() == made.peak_reserved_bytes[failed]
    assert list(series.columns[:2]) == ["event", "time"]
    assert series.attrs["units"]["time"] == "ns"
    assert {"address", "size"} <= set(fragsim.read(path, "segments").columns)
    for table, run in (("oom", 18), ("nothing", 0)):
        error = raised(ValueError, fragsim.read, path, table, run)
        assert f"/runs/{run}/{table}" in str(error) and "0 to 17" in str(error)
    import h5py  # pylint: disable=import-outside-toplevel
    with h5py.File(path, "r+") as file:
        file.attrs["schema_version"] = b"1.4"
    assert "found 1.4" in str(raised(ValueError, fragsim.read, path))


def check_plot(folder):
    path = os.path.join(folder, "drawn.h5")
    fragsim.run("replay", SMALL, "-q", "-c", "inf,40MiB", "-o", path)
    picture = fragsim.plot(path, "timeline", capacity=["inf", "40MiB"])
    assert picture.svg != fragsim.plot(path, "timeline", capacity="inf").svg
    assert "<svg" in picture.svg and picture._repr_svg_() == picture.svg
    assert fragsim.plot([path], "compare", folder + "/a.png",
                        capacity="40MiB") == folder + "/a.png"
    with open(folder + "/a.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    error = raised(fragsim.Error, fragsim.plot, path, "compare", folder + "/a.png")
    assert error.code == 4 and "exists" in str(error), error
    assert "<svg" in fragsim.plot(SMALL, "map", policy="best_fit").svg


def check_example(folder):
    """The example for notebooks runs; its table has the fitting settings."""
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tests", "examples", "oom_review.py"),
         DEAD, "5.1GiB", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in ("device 0: the free memory was fragmented",
                  "serves what was recorded", "best_fit",
                  "note: ", "no setting is promised to survive 5.1GiB",
                  "reserved_max"):
        assert words in done.stdout, (words, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_import()
        check_answers()
        check_errors(folder)
        check_command()
        check_interrupt(folder)
        check_record(folder)
        if shutil.which("gnuplot"):
            check_plot(folder)
        if HAS["pandas"]:
            check_tables(folder)
        if HAS["pandas"] and HAS["h5py"]:
            check_example(folder)
    left_out = [name for name, there in HAS.items() if not there] + \
        ([] if shutil.which("gnuplot") else ["gnuplot"])
    print("the package answers as the tool does",
          *(f"; left out: what needs {name}" for name in left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
