#!/usr/bin/python3
"""check_pandas.py: runs the lines of sim/cli/site/more.md that read a result file with h5py
and pandas, as they stand there, and checks the table that they make: texts are
texts, none is NaN, and everything else equals the JSON of the same run.
`fragsim help results` must print the same lines. Skipped (77) without h5py or
pandas.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need, output

try:
    import h5py  # pylint: disable=unused-import
    import pandas
except ImportError as error:
    print(f"check_pandas: {error.name} is missing; skipped")
    sys.exit(77)

TRACE = os.path.join(ROOT, "tests", "cli", "small.csv")
LINES = re.compile(r"^```python\n(import h5py, pandas\n.*?)^```$", re.S | re.M)


def page_lines():
    with open(os.path.join(ROOT, "sim", "cli", "site", "more.md"),
              encoding="utf-8") as file:
        found = LINES.findall(file.read())
    assert len(found) == 1, "more.md: expected one block that imports pandas"
    return found[0]


def paste(lines, folder):
    """The table that the lines make in Python's prompt, where a block without
    an empty line after it would be an error. Warnings are errors too."""
    more = 'df.to_pickle("table")\n'
    done = subprocess.run([sys.executable, "-W", "error", "-q", "-i"],
                          input=lines + more, cwd=folder, check=False,
                          capture_output=True, text=True)
    assert "Error" not in done.stderr and "Warning" not in done.stderr, \
        done.stderr
    return pandas.read_pickle(os.path.join(folder, "table"))


def check_table(df, path):
    assert len(df) == 6
    assert len(df[df.policy == "torch"]) == 2
    assert df[df.policy == "torch"].capacity_bytes.isna().tolist() == \
        [True, False]
    assert (df.first_oom_event.isna() == (df.num_ooms == 0)).all()
    with open(path, encoding="utf-8") as file:
        wanted = json.load(file)["results"]
    # The notes of a trace are an attribute of the run, not a column.
    assert list(df.columns) == [key for key in wanted[0] if key != "notes"]
    for name in df.columns:
        found = [None if pandas.isna(x) else x for x in df[name].tolist()]
        assert found == [row[name] for row in wanted], (name, found)


def main():
    need(FRAGSIM)
    lines = page_lines()
    assert textwrap.indent(lines, "  ") in output("help", "results"), \
        "`fragsim help results` has other lines than more.md"
    with tempfile.TemporaryDirectory() as folder:
        # A file name need not be UTF-8.
        odd = os.path.join(os.fsencode(folder), b"caf\xe9.csv")
        with open(TRACE, "rb") as source, open(odd, "wb") as copy:
            copy.write(source.read())
        grid = ["-q", "-p", "torch", "-p", "best_fit", "-p", "direct", "-c",
                "inf,40MiB", "-o", "results.h5", "--json", "out.json", "-f"]
        output("replay", TRACE, *grid, cwd=folder)
        check_table(paste(lines, folder), os.path.join(folder, "out.json"))
        output("replay", odd, *grid, cwd=folder)
        assert set(paste(lines, folder).trace) == {"caf\ufffd"}
        with h5py.File(os.path.join(folder, "results.h5"), "r+") as file:
            rows = file["summary"][:0]
            del file["summary"]
            file["summary"] = rows
        assert len(paste(lines, folder)) == 0
    print("the lines of more.md read what was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
