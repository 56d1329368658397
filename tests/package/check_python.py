#!/usr/bin/python3
"""check_python.py [--installed]: checks the Python package against the tool: the
same numbers as its JSON and its files, every command as a table, inputs that are no
files, its words and exit codes as exceptions, options as keywords, its progress,
its end when the user interrupts, and the messages that name a missing package.
The package is read from the source tree, or, with --installed, from where
python3 finds it. tests/gpu/python/torch.py stands for PyTorch. What needs pandas,
numpy, h5py or gnuplot is left out without them, and the output says so.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import glob
import html
import importlib.util
import json
import lzma
import os
import pickle
import pty
import re
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
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import terminal  # pylint: disable=wrong-import-position
import fragsim  # pylint: disable=wrong-import-position

BUNDLED = os.path.join(ROOT, "traces", "bundled")
LEAK = os.path.join(BUNDLED, "leak.pickle.xz")
STREAMS = os.path.join(BUNDLED, "multistream.pickle.xz")
DEAD = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
SMALL = os.path.join(ROOT, "tests", "cli", "small.csv")
HAS = {name: importlib.util.find_spec(name) is not None
       for name in ("pandas", "numpy", "h5py")}


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
    calls = {"replay": f"replay({SMALL!r})", "policies": "policies()",
             "read": f"read({SMALL!r})", "record": "record('x')",
             "trace": "trace([1])"}
    done = python("import sys\n"
                  "for name in 'pandas', 'h5py', 'torch', 'numpy', 'tqdm':\n"
                  "    sys.modules[name] = None\n"
                  "import fragsim\n"
                  f"print(len(fragsim.answer('replay', {SMALL!r})['results']))\n"
                  f"print(len(fragsim.answer('tune', {SMALL!r}).rows('cases')))\n"
                  f"print(fragsim.answer('explain', {DEAD!r}).rows()[0]['cause'])\n"
                  f"for call in {list(calls.values())}:\n"
                  "    try:\n"
                  "        eval('fragsim.' + call)\n"
                  "    except fragsim.MissingPackage as error:\n"
                  "        print(error.name, error)\n")
    hint = "; fragsim.answer('{}', ...) needs no package"
    wanted = ["1", "1", "fragmentation"] + [
        f"{package} fragsim.{function} needs the package {package}, which is "
        f"not installed: pip install {package}" +
        (hint.format(function) if function in ("replay", "policies") else "")
        for function, package in zip(calls, ("pandas", "pandas", "pandas", "torch",
                                             "numpy"))]
    assert done.stdout.splitlines() == wanted, (done.stdout, done.stderr)
    for name in fragsim.__all__:
        doc = getattr(fragsim, name).__doc__
        assert doc, f"{name} has no docstring"
        if name.islower():
            assert f"fragsim.{name}(" in doc or name == "dry", f"{name}: no example"
            assert max(map(len, doc.splitlines())) < 82, name
    assert fragsim.__version__ == tool("--version").stdout.split()[1]
    raised(AttributeError, getattr, fragsim, "nothing")


def check_answers():
    assert fragsim.answer("explain", DEAD)["results"] == tool_json("explain", DEAD)
    assert fragsim.answer("info", LEAK)["results"] == tool_json("info", LEAK)
    assert fragsim.answer("tune", LEAK)["results"] == \
        tool_json("tune", LEAK)
    assert fragsim.answer("tune", LEAK, without=[
        "expandable_segments", "max_split_size_mb"])["results"] == \
        tool_json("tune", LEAK, "--without", "expandable_segments",
                  "--without", "max_split_size_mb")
    refused = fragsim.answer("tune", LEAK, capacity=10 << 20)
    assert refused["results"][0]["chosen"] is None and not refused.rows("chosen")
    assert fragsim.run("policies") == tool("policies").stdout


def check_options():
    """Options are keywords of Python: lists, sizes and switches; one that does
    not exist is named with the one that is meant."""
    words = fragsim._options.words  # pylint: disable=protected-access
    assert words("replay", {"policies": ["a", "b"], "capacities": [1, 2.0, "0.9x"],
                            "stop_at_oom": True, "check": False, "device": None,
                            "process_limit": float("inf"), "points": 7}) == [
        "--policy=a", "--policy=b", "--capacity=1B,2B,0.9x", "--stop-at-oom",
        "--process-limit=inf", "--points=7"]
    assert words("top", {"rows": 3}) == ["--rows=3"]
    for verb in fragsim._verbs.VERBS:
        assert {"force", "max_unpacked"} <= set(fragsim._options.known(verb)), verb
    for named, options in [("did you mean 'policies'", {"polcies": "torch"}),
                           ("the options are address_rule, ", {"json": "-"}),
                           ("got 'policy' twice", {"policy": 1, "policies": 1}),
                           ("check: expected True or False", {"check": 1}),
                           ("expected a value (SIZE)", {"capacity": True})]:
        error = raised(TypeError, fragsim.answer, "replay", SMALL, **options)
        assert named in str(error), error
    assert "whole number of bytes" in str(
        raised(ValueError, fragsim.answer, "replay", SMALL, capacity=0.9))
    assert "it has results, changes" in str(
        raised(ValueError, fragsim.answer("explain", DEAD).rows, "nothing"))


def check_errors(folder):
    missing = os.path.join(folder, "missing.pickle")
    there = shutil.copy(SMALL, os.path.join(folder, "there.h5"))
    for code, kind, words, call in [
            (4, FileNotFoundError, "No such file",
             lambda: fragsim.answer("explain", missing)),
            (4, FileExistsError, "there.h5 exists",
             lambda: fragsim.answer("replay", SMALL, output=there)),
            (4, OSError, "found a folder", lambda: fragsim.answer("info", folder)),
            (2, ValueError, "there is no policy",
             lambda: fragsim.answer("replay", SMALL, policy="nope")),
            (2, ValueError, "nocommand", lambda: fragsim.run("nocommand")),
            (3, ValueError, "check_python.py:",
             lambda: fragsim.answer("explain", __file__)),
            (3, ValueError, "expected a snapshot",
             lambda: fragsim.answer("explain", {"segment": []})),
            (2, ValueError, "FILE.html",
             lambda: fragsim.plot(SMALL, "map", "map.txt"))]:
        error = raised(kind, call)
        assert isinstance(error, fragsim.Error), error
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


def children(process, word):
    """The children of a process with this word in their command lines."""
    found = []
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        numbers = file.read().split()
    for number in numbers:
        try:
            with open(f"/proc/{number}/cmdline", encoding="utf-8") as file:
                if word in file.read() and \
                        os.readlink(f"/proc/{number}/exe") == \
                        os.path.realpath(fragsim.tool_path()):
                    found.append(int(number))
        except FileNotFoundError:  # it has ended
            pass
    return found


def wait_for(what, condition):
    end = time.time() + 60
    while not condition():
        assert time.time() < end, f"waited too long for {what}"
        time.sleep(0.02)


def stand_ins(folder):
    """Folders for PYTHONPATH with a tqdm that prints what it is told, and with
    one that is not there."""
    packages = {}
    for there in True, False:
        packages[there] = os.path.join(folder, f"tqdm{there:d}")
        os.makedirs(os.path.join(packages[there], "tqdm"), exist_ok=True)
        with open(os.path.join(packages[there], "tqdm", "__init__.py"), "w",
                  encoding="ascii") as file:
            file.write("" if there else "raise ImportError('tqdm is not here')\n")
    with open(os.path.join(packages[True], "tqdm", "auto.py"), "w",
              encoding="ascii") as file:
        file.write("class tqdm:\n"
                   "    def __init__(self, total, leave, bar_format):\n"
                   "        self.told = {'n': 0}\n"
                   "    def set_description_str(self, text, refresh):\n"
                   "        self.told['label'] = text\n"
                   "    def set_postfix_str(self, text, refresh):\n"
                   "        self.told['rest'] = text\n"
                   "    def refresh(self):\n"
                   "        print('TOLD', self.n, self.told)\n"
                   "    def close(self):\n"
                   "        print('CLOSED')\n")
    return packages


def check_interrupt(folder, with_bar):
    """A notebook interrupts Python alone: the tool ends too, and leaves no
    output; also while its progress is shown."""
    leader, follower = pty.openpty() if with_bar else (None, None)
    program = ("import fragsim\n"
               "try:\n"
               f"    fragsim.answer('replay', {STREAMS!r}, output={folder + '/out'!r},\n"
               "                   policy='plan:effort=1000000000000000')\n"
               "except KeyboardInterrupt:\n"
               "    print('interrupted')\n")
    paths = [stand_ins(folder)[with_bar], os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen([sys.executable, "-c", program], text=True,
                          stdout=subprocess.PIPE, stderr=follower,
                          env={**terminal.environment(), "PYTHONUNBUFFERED": "1",
                               "PYTHONPATH": os.pathsep.join(paths)}) as user:
        wait_for("the tool", lambda: children(user.pid, "effort"))
        child, = children(user.pid, "effort")
        if with_bar:
            assert user.stdout.readline().startswith("TOLD")
        else:
            time.sleep(0.3)
        start = time.time()
        user.send_signal(signal.SIGINT)
        *told, last = user.communicate(timeout=60)[0].splitlines()
        assert last == "interrupted" and (with_bar or not told), (told, last)
        assert time.time() - start < 9, "the tool was killed, not interrupted"
    wait_for("the end of the tool", lambda: not os.path.exists(f"/proc/{child}"))
    assert not glob.glob(folder + "/out*"), glob.glob(folder + "/out*")
    for end in filter(None, (leader, follower)):
        os.close(end)


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
               "    answer, = fragsim.answer('explain', path)['results']\n"
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
        assert table[name].dtype.kind in "bifO" or name in ("trace", "notes"), name


def check_tables(folder):
    import pandas  # pylint: disable=import-outside-toplevel
    path = os.path.join(folder, "results.h5")
    policies = ["torch", "torch:expandable_segments:True", "best_fit"]
    made = fragsim.replay(SMALL, DEAD, policy=policies, output=path,
                          capacity=[40 << 20, "0.9x", float("inf")])
    wanted = tool_json("replay", SMALL, DEAD, "-c", "41943040B,0.9x,inf",
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
    check_rows(fragsim.tune(LEAK),
               tool_json("tune", LEAK)[0]["ladder"])
    changes = fragsim.explain(DEAD, table="changes")
    check_rows(changes.drop(columns=["trace", "device"]),
               changes.attrs["answer"]["results"][0]["changes"])
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


def commands(folder):
    """Every command that answers with tables: its inputs, its options, and the
    tables with the number of their rows and one of their columns."""
    frames = os.path.join(BUNDLED, "leak_frames.pickle.xz")
    results = [os.path.join(folder, name) for name in ("before.h5", "after.h5")]
    for path in results:
        fragsim.run("replay", LEAK, "-q", "-o", path)
    return {
        "replay": ([LEAK, DEAD], {"policies": ["torch", "direct"]},
                   {"results": (4, "trace")}),
        "fit": ([frames], {"frontier": os.path.join(folder, "frontier.csv")},
                {"results": (1, "need_bytes"), "frontier": (None, "from_bytes")}),
        "tune": ([LEAK], {},
                 {"ladder": (3, "settings"), "chosen": (1, "outcome"),
                  "cases": (1, "replayed_peak_reserved_bytes"),
                  "results": (1, "settings_tried")}),
        "explain": ([DEAD], {}, {"results": (1, "request_event"),
                                 "changes": (7, "trace"), "spaces": (2, "holes"),
                                 "pins": (1, "segment_bytes")}),
        "top": ([frames], {"rows": 3}, {"groups": (3, "site_function"),
                                         "results": (1, "event")}),
        "steps": ([LEAK], {}, {"parts": (61, "trace"), "results": (1, "num_steps")}),
        "leaks": ([frames], {}, {"leaks": (3, "held_bytes"),
                                 "results": (1, "verdict")}),
        "summary": ([LEAK], {"at": "peak"},
                    {"stats": (41, "pool"), "results": (1, "fragmentation_overhead")}),
        "diff": ([frames, frames], {"at": [1000, 2000]},
                 {"changes": (4, "name"), "results": (1, "before_event")}),
        "diff of results": (results, {}, {"results": (1, "num_ooms_before")}),
        "validate": ([LEAK], {}, {"results": (1, "verdict"), "stats": (121, "trace")}),
        "info": ([LEAK], {}, {"devices": (1, "path"), "by_pool": (1, "device"),
                              "results": (1, "format")}),
        "policies": (["torch"], {}, {"policies": (1, "source"),
                                     "params": (None, "policy")}),
        "policies of settings": (["torch:max_split_size_mb:64"], {},
                                 {"settings": (1, "status"),
                                  "releases": (1, "why"),
                                  "results": (1, "verdict")}),
        "sweep": ([SMALL], {"policies": "direct", "capacity": ["0.9x", "inf"]},
                  {"results": (2, "num_ooms")}),
    }


def check_commands(folder):
    """Each command's tables; the first one is that of the call without a name,
    and all are those of the JSON."""
    cases = commands(folder)
    assert {case.split()[0] for case in cases} | {"compare"} == \
        set(fragsim._verbs.VERBS)  # compare needs a GPU
    for case, (inputs, options, tables) in cases.items():
        call = getattr(fragsim, case.split()[0])
        for number, (name, (rows, column)) in enumerate(tables.items()):
            if name == "frontier":
                os.unlink(options["frontier"])
            found = call(*inputs, **options) if number == 0 else \
                call(*inputs, **options, table=name)
            assert rows in (None, len(found)), (case, name, len(found))
            assert column is None or column in found, (case, name, list(found))
            assert len(found) == len(found.attrs["answer"].rows(name)), (case, name)
            assert not any(
                isinstance(value, dict) or
                isinstance(value, list) and any(isinstance(x, dict) for x in value)
                for value in found.values.flat), f"{case}: {name} has a table inside"
    two = fragsim.replay([LEAK, DEAD], policies=["torch"])
    assert list(two.trace) == ["leak", "lstm_varlen__cap_below"]
    assert two.peak_reserved_bytes[1] == \
        tool_json("replay", DEAD)[0]["peak_reserved_bytes"]
    raised(ValueError, fragsim.replay, "missing", table="nothing")  # before the work


def check_rows_of_verbs():
    """Every command that has --json is a function; an alias is none."""
    verbs = re.findall(r"^  (\w+) +(?!.*\(alias of)",
                       tool("help").stdout.split("More:")[0], re.M)
    assert len(verbs) > 20
    for verb in verbs:
        has_json = "--json=" in tool(verb, "--help").stdout
        # `dry` runs a program, which must not have begun; `triage` returns a page.
        assert has_json == (verb in fragsim._verbs.VERBS or
                            verb in ("dry", "triage")), verb
        assert verb not in fragsim._verbs.VERBS or verb in fragsim.__all__, verb


def check_snapshot():
    """A snapshot in memory has the answers of its file."""
    with lzma.open(DEAD) as file:
        snapshot = pickle.load(file)
    found = fragsim.answer("explain", snapshot, stats="none")["results"][0]
    wanted = tool_json("explain", DEAD, "--stats", "none")[0]
    assert found.pop("trace").endswith("snapshot.pickle") and wanted.pop("trace")
    assert found == wanted
    names = [row["trace"] for row in
             fragsim.answer("replay", [snapshot, snapshot])["results"]]
    assert names == ["snapshot", "snapshot2"], names


def check_arrays():
    """Blocks as arrays are the trace that they say."""
    import numpy  # pylint: disable=import-outside-toplevel

    def lines(trace):
        with open(trace, encoding="ascii") as file:
            return file.read().split()[1:]
    small = fragsim.trace(bytes=[4096, 512, 8], alloc=[0, 1, 5], stream=[0, 7, 0],
                          free=[5, numpy.nan, 9])
    assert lines(small) == ["alloc,0,4096,0", "alloc,1,512,7", "free,0,,",
                            "alloc,2,8,0", "free,2,,"]
    plain = numpy.array([[4096, 0, 0, 5], [512, 7, 1, -1], [8, 0, 5, 9]])
    named = numpy.zeros(3, dtype=[(name, "i8") for name in
                                  ("bytes", "stream", "alloc", "free")])
    for number, name in enumerate(named.dtype.names):
        named[name] = plain[:, number]
    policy = {"policies": ["torch", "direct"]}
    wanted = fragsim.answer("replay", small, **policy).rows()
    for other in plain, named:
        found = fragsim.answer("replay", other, **policy).rows()
        for row in (*found, *wanted):
            row["ns_per_event"] = 0
        assert found == wanted, found
    assert [row["peak_reserved_bytes"] for row in wanted] == [2097152 * 2, 4608]
    path = small.path
    del small
    assert not os.path.exists(path), "the temporary file is still there"
    random = numpy.random.default_rng(1)
    size, begin = random.integers(1, 1 << 20, 5000), random.permutation(5000) * 2
    end = begin + 2 * random.integers(0, 400, 5000) + 1
    events = numpy.arange(0, 10000)
    live = numpy.zeros(12000, dtype=int)
    numpy.add.at(live, begin, size)
    numpy.add.at(live, end, -size)
    assert fragsim.answer("replay", fragsim.trace(size, begin, end)).rows()[0][
        "peak_requested_bytes"] == live.cumsum()[events].max()
    for words, arrays in [("at least 1", {"bytes": [0]}),
                          ("expected an event after 3", {"bytes": [5], "alloc": [3],
                                                         "free": [3]}),
                          ("expected 2 values", {"bytes": [5, 6], "alloc": [1]})]:
        assert words in str(raised(ValueError, fragsim.trace, **arrays))
    assert "(2, 3)" in str(raised(ValueError, fragsim.answer, "replay",
                                  numpy.zeros((2, 3))))
    raised(TypeError, fragsim.answer, "replay", 5)


def check_page(folder):
    """The page is that of the tool, and the answers are those of its commands."""
    page = fragsim.triage(DEAD, capacity="6GiB")
    assert page.verdict["action"]["kind"] == "setting"
    path = os.path.join(folder, "page.html")
    tool("triage", DEAD, "-c", "6GiB", "-o", path)
    with open(path, encoding="utf-8") as file:
        assert file.read() == page.html
    frame = page._repr_html_()
    inside, = re.findall(r'^<iframe srcdoc="([^"]*)" [^>]*></iframe>$', frame)
    assert html.unescape(inside) == page.html
    bound = str(6 << 30) + "B"
    for name, arguments in [("explain", []),
                            ("tune", ["-c", bound]),
                            ("leaks", ["-c", bound]), ("summary", ["--at", "oom"])]:
        assert getattr(page, name)["results"] == tool_json(name, DEAD, *arguments)
        assert name in dir(page)
    for name in "fit", "top", "steps":
        assert getattr(page, name).rows()
    assert "it has html, explain, tune" in str(
        raised(AttributeError, getattr, page, "nothing"))
    with lzma.open(DEAD) as file:
        page = fragsim.triage(pickle.load(file), capacity=24 << 30, output=path,
                              force=True)
    assert page.top.rows()[0]["trace"] == "snapshot"
    raised(ValueError, fragsim.triage, DEAD, capacity="24GiB", output="a.pdf")
    results = os.path.join(folder, "reported.h5")
    fragsim.run("replay", SMALL, "-q", "-c", "inf,40MiB", "-o", results)
    if shutil.which("gnuplot"):
        fragsim.report(results).save(path)
        with open(path, encoding="utf-8") as file:
            assert "Policy review" in file.read()


def check_progress(folder):
    """On a terminal tqdm shows what the tool's bar says; without tqdm, without a
    terminal, or with progress=False nothing is shown. A stand-in records what
    tqdm is told."""
    packages = stand_ins(folder)
    # The bar appears after a second; where it must not, its time may be a close one.
    long, shorter = "plan:effort=25000000", "plan:effort=12000000"
    program = ("import fragsim\n"
               f"found = fragsim.answer('replay', {STREAMS!r}, policy=%r%s)\n"
               "print(len(found['results']))\n"
               "try:\n"
               f"    fragsim.answer('replay', {SMALL!r}, policy='nope')\n"
               "except fragsim.Error as error:\n"
               "    print(str(error)[:34])\n")
    words = ["1", "fragsim replay: there is no policy"]

    def shown(with_tqdm, on_terminal, policy, options=""):
        paths = [packages[with_tqdm], os.environ.get("PYTHONPATH", "")]
        command = ["env", "PYTHONPATH=" + os.pathsep.join(paths), sys.executable,
                   "-c", program % (policy, options)]
        with tempfile.TemporaryFile("w+", dir=folder) as out:
            if on_terminal:
                code, text = terminal.written(command, stdout=out, stderr=True)
            else:
                done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE,
                                      check=False)
                code, text = done.returncode, done.stderr
            assert code == 0 and not text, (code, text)
            out.seek(0)
            return out.read().splitlines()

    lines = shown(True, True, long)
    told = [line for line in lines if line.startswith("TOLD")]
    assert any("multistream plan" in line and "'rest': '" in line
               for line in told), lines
    assert [line for line in lines if line not in told and line != "CLOSED"] == \
        words, lines
    assert "CLOSED" in lines
    for case in ((True, False, shorter), (False, True, shorter),
                 (True, True, shorter, ", progress=False")):
        assert shown(*case) == words, case


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
    as_arrays = fragsim.arrays(path, run=failed)
    assert list(as_arrays) == list(series.columns)
    assert all((as_arrays[name] == series[name]).all() for name in series)
    for table, run in (("oom", 18), ("nothing", 0)):
        error = raised(ValueError, fragsim.read, path, table, run)
        assert str(raised(ValueError, fragsim.arrays, path, table, run)) == str(error)
        assert f"/runs/{run}/{table}" in str(error) and "0 to 17" in str(error)


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
    assert '<section class="view"' in fragsim.plot(SMALL, "map", policy="best_fit").html


def check_example(folder):
    """The example for notebooks runs; its table has the fitting settings."""
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tests", "examples", "oom_review.py"),
         DEAD, "5.1GiB", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("no figure" in done.stdout) == (not shutil.which("gnuplot")), done.stdout
    for words in ("device 0: the free memory was fragmented",
                  "serves what was recorded", "best_fit",
                  "note: ", "no setting is promised to survive 5.1GiB",
                  "reserved_max"):
        assert words in done.stdout, (words, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_import()
        check_answers()
        check_options()
        check_rows_of_verbs()
        check_errors(folder)
        check_snapshot()
        check_page(folder)
        if terminal.has_terminals():
            check_progress(folder)
            check_interrupt(folder, True)
        check_command()
        check_interrupt(folder, False)
        check_record(folder)
        if shutil.which("gnuplot"):
            check_plot(folder)
        if HAS["numpy"]:
            check_arrays()
        if HAS["pandas"]:
            check_tables(folder)
            check_commands(folder)
        if HAS["pandas"] and HAS["h5py"]:
            check_example(folder)
    left_out = [name for name, there in HAS.items() if not there] + \
        ([] if shutil.which("gnuplot") else ["gnuplot"])
    print("the package answers as the tool does",
          *(f"; left out: what needs {name}" for name in left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
