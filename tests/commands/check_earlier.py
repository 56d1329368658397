#!/usr/bin/python3
"""check_earlier.py: reads the kept files of every earlier schema, each written by
the last fragsim of that schema (tests/support/earlier), and checks that the numbers
of versions are in one place and in CHANGELOG.md. Each column and series that a file
has is read as it stands there, a file of an earlier first number is called deprecated
by the commands and by Python, and the remedy that they name works. Skipped (77)
without h5py.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import re
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, EARLIER, FRAGSIM, ROOT, SMALL, attempt, earlier, need, \
    output, results, run, skip

try:
    import h5py
    import numpy
except ImportError:
    skip("h5py is missing")

# A column of earlier schemas, and its name today.
RENAMED = {"overhead_at_live_peak": "overhead_at_peak_requested",
           "overhead_at_held_peak": "overhead_at_peak_reserved"}


def kept(kind):
    """The versions of the kept files of a kind."""
    found = (re.fullmatch(kind + r"-([\d.]+)\.h5\.xz", name)
             for name in os.listdir(EARLIER))
    return sorted(match[1] for match in found if match)


def versions():
    """The versions that the tool names."""
    line = output("--version").splitlines()[-1]
    return dict(part.rsplit(" ", 1) for part in line.split(", "))


def none_is_nan(values, schema):
    """-1 was none in schema 1."""
    if schema.startswith("1.") and values.dtype == "<i8":
        return numpy.where(values < 0, numpy.nan, values)
    return values


def equal(a, b):
    return numpy.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")


def order(table):
    """The rows of the two capacities in one order."""
    return numpy.argsort([-1 if numpy.isnan(x) else float(x)
                          for x in none_is_nan(table["capacity_bytes"], "1.")])


def compare(schema, before, after):
    """What today's fragsim wrote of the file is what stands in the file."""
    old, new = before["summary"][:], after["summary"][:]
    rows = list(zip(order(old), order(new)))
    assert len(rows) == len(old) == len(new) == 2, schema
    for name in old.dtype.names:
        values = none_is_nan(old[name], schema)
        now = new[RENAMED.get(name, name)]
        for i, k in rows:
            a, b = values[i], now[k]
            if old.dtype[name].kind in "OS":
                as_text = [x.decode() if isinstance(x, bytes) else x for x in (a, b)]
                assert as_text[0] == as_text[1], (schema, name, as_text)
            else:
                assert a == b or a != a and b != b, (schema, name, a, b)
    for i, k in rows:
        for group in ("series", "oom", "segments"):
            was, now = before[f"runs/{i}/{group}"], after[f"runs/{k}/{group}"]
            assert set(was) <= set(now), (schema, group)
            assert all(equal(was[name][:], now[name][:]) for name in was), \
                (schema, group)
    assert len(before["runs/0/oom/event"]) + len(before["runs/1/oom/event"]) == 5
    lacking = set(new.dtype.names) - {RENAMED.get(n, n) for n in old.dtype.names}
    assert not any(value and value == value for name in lacking
                   for value in new[name].tolist()), (schema, lacking)


def check_results(schema, present, folder):
    path, out = (os.path.join(folder, name) for name in ("old.h5", "new.h5"))
    earlier(f"results-{schema}", path)
    done = run("merge", "-q", "-f", out, path)
    with h5py.File(path) as before, h5py.File(out) as after:
        assert after.attrs["schema_version"].decode() == present
        compare(schema, before, after)
    deprecated = schema.split(".")[0] != present.split(".")[0]
    for words in (["diff", path, out], ["diff", out, path],
                  ["report", "-f", path, "-o", os.path.join(folder, "page.html")]):
        done = attempt(*words)
        assert done.returncode == 0, (schema, words, done.stderr)
        assert deprecated == (f"of schema {schema} are deprecated" in done.stderr), \
            (schema, words, done.stderr)
        assert not attempt(*words, "-q").stderr, words
    assert "0.00 %" in output("diff", "-q", path, out)
    check_python(schema, deprecated, path, out)


def check_python(schema, deprecated, path, out):
    os.environ["FRAGSIM"] = FRAGSIM
    sys.path.insert(0, os.path.join(ROOT, "sim", "python"))
    import fragsim  # pylint: disable=import-outside-toplevel
    try:
        import pandas  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = fragsim.read(path)
        assert len(table) == 2 and table.capacity_bytes.isna().sum() == 1
        assert set(RENAMED.values()) <= set(table.columns), schema
        now = fragsim.read(out)
        assert all(sorted(table[name].fillna(0)) == sorted(now[name].fillna(0))
                   for name in table.columns if name != "notes"), schema
        assert len(fragsim.arrays(path, "oom", run=1)) == len(
            fragsim.arrays(out, "oom", run=1))
    said = [one for one in said if one.category is FutureWarning]
    assert bool(said) == deprecated, (schema, said)
    assert all("fragsim merge" in str(one.message) for one in said)


def check_trace(schema, folder):
    """The same requests as those of the snapshot that the file was made of."""
    path = os.path.join(folder, "trace.h5")
    earlier(f"trace-{schema}", path)
    snapshot = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
    rows = []
    for trace in (path, snapshot):
        found = results("replay", "-q", trace, "-p", "best_fit", "-p", "torch@2.11",
                        "-c", "inf,1.1x")
        for row in found:
            for name in ("trace", "notes", "trace_sha256", "ns_per_event"):
                del row[name]
        rows.append(found)
    assert rows[0] == rows[1] and len(rows[0]) == 4, schema


def check_numbers(said, folder):
    """What is written has the versions that the tool names; CHANGELOG.md names
    all of them, and of each earlier schema a file is kept."""
    out, trace = (os.path.join(folder, name) for name in ("r.h5", "t.h5"))
    run("replay", "-q", SMALL, "-p", "torch", "-o", out)
    run("import", "-q", SMALL, "-o", trace)
    for path, name in ((out, "result file"), (trace, "trace file")):
        with h5py.File(path) as file:
            written = file.attrs["schema_version"]
            written = written.decode() if isinstance(written, bytes) else written
            assert written == said[name], (name, written, said)
    answer = json.loads(output("replay", "-q", SMALL, "-p", "torch", "--json", "-"))
    assert answer["schema_version"] == said["JSON"]
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(ROOT, "CITATION.cff"), encoding="utf-8") as file:
        citation = file.read()
    for name, present in said.items():
        named = set(re.findall(rf"\b{name} (\d+(?:\.\d+)?)", text))
        assert present in named, f"CHANGELOG.md lacks {name} {present}"
        if name == "result file":
            assert named == {present, *kept("results")}, (named, kept("results"))
        topic = output("help", "versions")
        assert f"\nversion: {output('--version').split()[1]}\n" in citation
        assert f"\n  {name} {present}\n" in topic, name


def main():
    need(FRAGSIM)
    said = versions()
    with tempfile.TemporaryDirectory() as folder:
        check_numbers(said, folder)
        for schema in kept("results"):
            check_results(schema, said["result file"], folder)
        for schema in kept("trace"):
            check_trace(schema, folder)
    print(f"read: results of {', '.join(kept('results'))}; "
          f"traces of {', '.join(kept('trace'))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
