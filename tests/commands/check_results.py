#!/usr/bin/python3
"""check_results.py: checks with h5py that a result file agrees with the JSON of
the same replay: every column of every run, with units and long_name, the exact
peaks inside the decimated series, and one row for each OOM. Then it checks
files of schemas 1 and 2, made by h5py: they have to be read as new files are
(check_earlier.py reads those of earlier versions of fragsim). Skipped (77) without h5py.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, attempt, need

try:
    import h5py
    import numpy
except ImportError:
    print("check_results: h5py is missing; skipped")
    sys.exit(77)

DIVISIONS = ",".join(f"{1 << k}:{1 << 63 - k}" for k in range(16))
LONG = (f"torch:roundup_power2_divisions:[{DIVISIONS}],max_split_size_mb:1234567"
        ",garbage_collection_threshold:0.12345678901234568"
        ",per_process_memory_fraction:0.12345678901234568")
POLICIES = ["torch", "torch:expandable_segments:True", "best_fit", "direct",
            LONG]
# The columns of whole numbers that may be none.
OPTIONAL = ("capacity_bytes", "first_oom_event")
INPUT = 3  # exit code


def write_trace(path, events=20000):
    """Random traffic of a few hundred live blocks."""
    rng, live, lines = random.Random(1), [], ["op,id,bytes,stream"]
    for number in range(events):
        if len(live) > 300 or (live and rng.random() < 0.45):
            lines.append(f"free,{live.pop(rng.randrange(len(live)))},0,0")
        else:
            live.append(number)
            size = int(2 ** rng.uniform(4, 25))
            lines.append(f"alloc,{number},{size},{rng.randrange(2)}")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def plain(value):
    """A value of the table in its JSON form."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float) or value.dtype.kind == "f":
        return None if math.isnan(value) else float(value)
    assert value >= 0, "only a double can be none"
    return int(value)


def check_row(row, wanted, names):
    for name in names:
        found = plain(row[name])
        assert found == wanted[name], (name, found, wanted[name])
    assert set(names) == set(wanted) - {"notes"}, set(names) ^ set(wanted)


def check_run(run, wanted):
    series, oom = run["series"], run["oom"]
    for name, data in [*series.items(), *oom.items(), *run["segments"].items()]:
        assert data.attrs["units"] in (b"byte", b"ns", b"1"), name
        assert data.attrs["long_name"], name
    assert series["reserved_max"][:].max() == wanted["peak_reserved_bytes"]
    assert series["allocated_max"][:].max() == wanted["peak_allocated_bytes"]
    assert series["requested_max"][:].max() == wanted["peak_requested_bytes"]
    assert series["reserved"][-1] == wanted["end_reserved_bytes"]
    assert series["reserved"].dims[0][0] == series["event"]
    assert len(oom["event"]) == min(wanted["num_ooms"], 1000)
    if wanted["num_ooms"]:
        assert oom["event"][0] == wanted["first_oom_event"]
    parts = sum(oom[name][:] for name in oom if name.startswith("part_"))
    assert (parts == oom["reserved"][:]).all(), "the breakdown has to sum up"
    assert run.attrs["trace_sha256"].decode() == wanted["trace_sha256"]
    assert run.attrs["params"].decode() == wanted["params"]
    assert plain(run.attrs["capacity_bytes"]) == wanted["capacity_bytes"]


def check_texts(name, thing):
    """Texts have a fixed length: libhdf5 1.10 does not survive damage to texts
    of variable length."""
    for key, value in thing.attrs.items():
        assert not h5py.check_string_dtype(thing.attrs.get_id(key).dtype) or \
            thing.attrs.get_id(key).dtype.kind == "S", (name, key, value)


def check_file(path, rows):
    with h5py.File(path) as f:
        table = f["summary"]
        names = table.dtype.names
        assert f.attrs["complete"] == 1
        assert f.attrs["schema_name"] == b"fragsim-results"
        assert f.attrs["schema_version"] == b"3.1"
        f.visititems(check_texts)
        check_texts("/", f)
        for key in ("units", "long_name", "formula"):
            assert len(table.attrs[key]) == len(names), key
        for name in OPTIONAL:
            assert table.dtype[name] == "<f8", name
        assert len(table) == len(rows) == 3 * len(POLICIES)
        # Capacities as they were asked for.
        assert sorted({row["capacity"] for row in rows}) == \
            ["0.9x", "256MiB", "inf"], rows
        for i, wanted in enumerate(rows):
            check_row(table[i], wanted, names)
            check_run(f[f"runs/{i}"], wanted)


# -- files of schema 1 --------------------------------------------------------


def rewrite(path, old, change):
    """Copies the file; `change` gets the new dtypes of the summary and returns
    its rows."""
    shutil.copy(path, old)
    with h5py.File(old, "r+") as f:
        rows, attrs = change(f, f["summary"][:]), dict(f["summary"].attrs)
        del f["summary"]
        data = f.create_dataset("summary", data=rows)
        for name, value in attrs.items():
            data.attrs[name] = value


def as_schema_1(f, rows):
    """In schema 1, every count is a signed number, and -1 is none."""
    dtype = [(name, "<i8" if name in OPTIONAL else rows.dtype[name])
             for name in rows.dtype.names]
    old = numpy.empty(len(rows), dtype)
    for name in rows.dtype.names:
        old[name] = numpy.nan_to_num(rows[name], nan=-1) \
            if name in OPTIONAL else rows[name]
    for run in f["runs"].values():
        value = run.attrs["capacity_bytes"]
        del run.attrs["capacity_bytes"]
        run.attrs["capacity_bytes"] = numpy.int64(
            -1 if math.isnan(value) else value)
    f.attrs["schema_version"] = "1.0"
    assert -1 in old["capacity_bytes"] and -1 in old["first_oom_event"]
    return old


RENAMED = {"overhead_at_peak_requested": "overhead_at_live_peak",
           "overhead_at_peak_reserved": "overhead_at_held_peak"}


def as_schema_2(f, rows):
    """Schema 3 renamed two columns."""
    f.attrs["schema_version"] = "2.3"
    names = [RENAMED.get(name, name) for name in rows.dtype.names]
    assert names != list(rows.dtype.names)
    return rows.astype([(name, rows.dtype[i]) for i, name in enumerate(names)])


def merge(out, *files):
    done = attempt("merge", "-q", "-f", out, *files)
    assert done.returncode == 0, done.stderr
    with open(out, "rb") as file:
        return file.read()


def check_old_and_new(folder, new):
    """A merge reads and writes everything: its bytes must not show whether the
    input was an old file."""
    old, out = os.path.join(folder, "old.h5"), os.path.join(folder, "merged.h5")
    wanted = merge(out, new)
    rewrite(new, old, as_schema_2)
    assert merge(out, old) == wanted
    rewrite(new, old, as_schema_1)
    for files in ([old], [old, new], [new, old]):
        assert merge(out, *files) == wanted, files
    pages = []
    for path in (old, new):
        shutil.copy(path, os.path.join(folder, "one.h5"))
        page = os.path.join(folder, "page.html")
        done = attempt("report", "-q", "-f", os.path.join(folder, "one.h5"),
                       "-o", page)
        assert done.returncode == 0, done.stderr
        with open(page, encoding="utf-8") as file:
            pages.append(file.read())
    assert pages[0] == pages[1] and "unlimited" in pages[0]


def check_refused(folder, new):
    """Versions that are not known, and numbers that cannot be one."""
    def version(text):
        def change(f, rows):
            f.attrs["schema_version"] = text
            return rows
        return change

    def number(x):
        def change(f, rows):
            rows["first_oom_event"][1] = x
            return rows
        return change

    bad = os.path.join(folder, "bad.h5")
    for change, words in ((version("4.0"), 'up to 3.1, found "4.0"'),
                          (version("12.0"), 'found "12.0"'),
                          (number(0.5), "/summary"),
                          (number(-2), "/summary"),
                          (number(1e300), "/summary")):
        rewrite(new, bad, change)
        done = attempt("merge", "-f", os.path.join(folder, "never.h5"), bad)
        assert done.returncode == INPUT, (words, done.returncode)
        assert words in done.stderr, (words, done.stderr)


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        trace, out, text = (os.path.join(folder, name)
                            for name in ("t.csv", "r.h5", "r.json"))
        write_trace(trace)
        command = [FRAGSIM, "replay", trace, "-q", "--check", "-c",
                   "inf,0.9x,256MiB", "-o", out, "--json", text]
        for policy in POLICIES:
            command += ["-p", policy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(text, encoding="utf-8") as lines:
            rows = json.load(lines)["results"]
        check_file(out, rows)
        check_old_and_new(folder, out)
        check_refused(folder, out)
    failed = sum(1 for row in rows if row["num_ooms"])
    assert failed, "no run has an OOM to compare"
    print(f"{len(rows)} runs agree, {failed} of them with an OOM")
    return 0


if __name__ == "__main__":
    sys.exit(main())
