"""Answers, result files and traces as pandas DataFrames. Texts are str, and a
number that is none is NaN."""
from __future__ import annotations

import importlib
import io
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _options, _tool

if TYPE_CHECKING:
    import numpy
    import pandas

# The first number of the schema of result files, and the columns that it renamed.
SCHEMA = 3
RENAMED = {"overhead_at_live_peak": "overhead_at_peak_requested",
           "overhead_at_held_peak": "overhead_at_peak_reserved"}
HDF5_BEGINS = b"\x89HDF\r\n\x1a\n"
# What rows of a part of an answer have from the whole that they are a part of,
# and its name there: a policy has a name.
OF_WHOLE = {"trace": "trace", "path": "path", "device": "device",
            "policy": "policy", "name": "policy"}


def package(name: str, purpose: str, otherwise: str = "") -> Any:
    """Imports a package that not everyone has. MissingPackage if it is not
    installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise _tool.MissingPackage(
            f"{purpose} needs the package {name}, which is not installed: "
            f"pip install {name}{otherwise}", name=name) from error


# ---- tables of an answer ----

def _inside(whole: Any, steps: list[str], of: dict[str, Any]) -> Iterator[Any]:
    """The rows at the end of the steps: names of members, of which a list stands
    for each of its elements. A step {NAME} is each member of a dict, whose name
    becomes the column NAME."""
    if isinstance(whole, list):
        for one in whole:
            yield from _inside(one, steps, of)
    elif not steps:
        row = whole if isinstance(whole, dict) else {"value": whole}
        yield {**{key: value for key, value in of.items() if key not in row}, **row}
    elif steps[0].startswith("{") and isinstance(whole, dict):
        named = steps[0].strip("{}")
        if len(steps) == 1 or any(isinstance(one, dict) for one in whole.values()):
            for name, one in whole.items():
                yield from _inside(one, steps[1:], {**of, named: name})
        else:  # a level that this member does not have
            yield from _inside(whole, steps[1:], of)
    elif isinstance(whole, dict) and whole.get(steps[0]) is not None:
        here = {OF_WHOLE[key]: value for key, value in whole.items()
                if key in OF_WHOLE}
        yield from _inside(whole[steps[0]], steps[1:], {**of, **here})
    elif not isinstance(whole, dict):  # a number where others have members
        yield from _inside(whole, [], of)


def has(answer: dict[str, Any], path: str) -> bool:
    """Whether the answer has this table, which may be empty."""
    *steps, last = path.split(".")
    if last.startswith("{"):
        return has(answer, ".".join(steps))
    return any(last in one for one in _inside(answer, steps, {}))


def _flat(row: dict[str, Any], parts: set[str], before: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in row.items():
        if name in parts:
            continue
        if isinstance(value, dict):
            made.update(_flat(value, set(), f"{before}{name}_"))
        else:
            made[before + name] = value
    return made


def rows(answer: dict[str, Any], path: str, others: list[str]) -> list[dict[str, Any]]:
    """The rows of the table at the path, without the columns that are tables of
    their own; members of members are columns with joined names."""
    parts = {other[len(path) + 1:].split(".")[0] for other in others
             if other.startswith(path + ".")}
    return [_flat(row, parts) for row in _inside(answer, path.split("."), {})]


def frame(found: list[dict[str, Any]]) -> pandas.DataFrame:
    """Rows as a table; lists, such as the notes, stay lists."""
    table: pandas.DataFrame = package("pandas", "a table").DataFrame(found)
    # A column of nulls alone has no numbers to make its type a number.
    empty = [name for name in table.columns if table[name].isna().all()]
    return table.astype({name: float for name in empty})


# ---- files ----

def read(path: _options.Path, table: str | None = None, run: int = 0,
         **options: _options.Option) -> pandas.DataFrame:
    """Reads a result file or a trace as a DataFrame.

        fragsim.read("results.h5")
        fragsim.read("results.h5", "series", run=2).plot("event", "reserved_max")
        fragsim.read("oom.pickle").bytes.describe()

    A result file has the tables `summary` (the default: one row for each run),
    and of run number `run`, as /runs/N counts them from 0: `series`, `oom` and
    `segments`. `fragsim help results` lists the columns; sizes are bytes,
    times are s or ns as stated there, and an unlimited capacity is NaN.
    DataFrame.attrs["units"] has the unit of each column. The column `notes` of
    the summary, a list of texts, states what the run rests on. h5py is needed.

    Of a trace, in any format that fragsim reads, the table is `events`: op, id,
    bytes, stream of each event (op is alloc, free or another word that `fragsim
    help formats` explains). `options` are those of `fragsim help export`, such
    as device=1. DataFrame.attrs["notes"], a list of texts, states what these
    columns do not hold.

    MissingPackage without pandas or h5py; Error if the tool cannot read the
    file; ValueError if the file has no such table; OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        is_hdf5 = file.read(len(HDF5_BEGINS)) == HDF5_BEGINS
    pd = package("pandas", "fragsim.read")
    if is_hdf5:
        with _open(path, "fragsim.read") as results:
            if "summary" in results:
                return _summary(results, pd) if table in (None, "summary") \
                    else _columns(results, str(table), run, pd)
    if table not in (None, "events"):
        raise ValueError(f"{os.fspath(path)}: expected the table 'events', because "
                         f"the file is a trace, found {table!r}")
    return _events(path, options, pd)


def arrays(path: _options.Path, table: str = "series",
           run: int = 0) -> dict[str, numpy.ndarray[Any, Any]]:
    """A table of one run of a result file as numpy arrays by the name of the
    column: `series`, `oom` or `segments`, as read has them. Needs h5py, and not
    pandas.

        series = fragsim.arrays("results.h5", run=0)
        series["reserved_max"].max()
    """
    with _open(path, "fragsim.arrays") as results:
        return {name: data[:] for name, data in _members(results, table, run)}


def _open(path: _options.Path, purpose: str) -> Any:
    h5py = package("h5py", f"{purpose} of the HDF5 file {os.fspath(path)}")
    return h5py.File(path, "r")


def _events(path: _options.Path, options: dict[str, _options.Option],
            pd: Any) -> pandas.DataFrame:
    found, words = _tool.call(["export", "--to=csv",
                               *_options.words("export", options), "--",
                               os.fspath(path)])
    table: pandas.DataFrame = pd.read_csv(io.StringIO(found))
    table.attrs["notes"] = words.splitlines()
    return table


def _schema(results: Any) -> int:
    """The first number of the file's schema."""
    return int(_text(results.attrs["schema_version"]).split(".")[0])


def _place(results: Any, place: str) -> Any:
    if "summary" not in results:
        raise ValueError(f"{results.filename}: expected a result file, found another "
                         "HDF5 file")
    if _schema(results) < SCHEMA:
        warnings.warn(f"{results.filename}: result files of schema "
                      f"{_text(results.attrs['schema_version'])} are deprecated; "
                      f"`fragsim merge NEW.h5 {results.filename}' writes schema "
                      f"{SCHEMA}", FutureWarning, stacklevel=5)
    if place not in results:
        raise ValueError(f"{results.filename}: expected the table /{place}, found "
                         "none; there are summary, and of the runs 0 to "
                         f"{len(results['summary']) - 1} series, oom and segments")
    return results[place]


def _summary(results: Any, pd: Any) -> pandas.DataFrame:
    data = _place(results, "summary")
    made: pandas.DataFrame = pd.DataFrame(data[:])
    for name in data.dtype.names:
        if data.dtype[name].kind in "OS":  # O: before schema 2.2
            made[name] = made[name].map(_text)
    if _schema(results) == 1:  # -1 was none
        for name in ("capacity_bytes", "first_oom_event"):
            made[name] = made[name].where(made[name] >= 0)
    notes = (results[f"runs/{run}"].attrs["trace_notes"]
             for run in range(len(made)))
    made["notes"] = pd.Series([[_text(note) for note in run] for run in notes],
                              dtype=object)
    made.attrs["units"] = dict(zip(data.dtype.names,
                                   map(_text, data.attrs["units"])))
    return made.rename(columns=RENAMED)


def _members(results: Any, table: str, run: int) -> list[tuple[str, Any]]:
    data = _place(results, f"runs/{run}/{table}")
    first = [name for name in ("event", "time") if name in data]
    return [(name, data[name]) for name in
            first + [name for name in data if name not in first]]


def _columns(results: Any, table: str, run: int, pd: Any) -> pandas.DataFrame:
    members = _members(results, table, run)
    made: pandas.DataFrame = pd.DataFrame({name: data[:] for name, data in members})
    made.attrs["units"] = {name: _text(data.attrs["units"]) for name, data in members}
    return made


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) \
        else str(value)
