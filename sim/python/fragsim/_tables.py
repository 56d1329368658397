"""Result files, traces and answers as pandas DataFrames. Texts are str, and a
number that is none is NaN."""
from __future__ import annotations

import importlib
import io
import os
from typing import TYPE_CHECKING, Any

from . import _tool

if TYPE_CHECKING:
    import pandas

HDF5_BEGINS = b"\x89HDF\r\n\x1a\n"


def package(name: str, purpose: str) -> Any:
    """Imports a package that not everyone has. MissingPackage if it is not
    installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise _tool.MissingPackage(
            f"{purpose} needs the package {name}, which is not installed: "
            f"pip install {name}", name=name) from error


def frame(rows: list[dict[str, Any]], purpose: str) -> pandas.DataFrame:
    """Rows of JSON as a table; its notes are a column of lists of texts."""
    table: pandas.DataFrame = package("pandas", purpose).DataFrame(rows)
    # A column of nulls alone has no numbers to make its type a number.
    empty = [name for name in table.columns if table[name].isna().all()]
    return table.astype({name: float for name in empty})


def read(path: _tool.Path, table: str | None = None, run: int = 0,
         **options: _tool.Option) -> pandas.DataFrame:
    """Reads a result file or a trace as a DataFrame.

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
        h5py = package("h5py", f"fragsim.read of the HDF5 file {os.fspath(path)}")
        with h5py.File(path, "r") as results:
            if "summary" in results:
                return _result(results, table or "summary", run, pd)
    if table not in (None, "events"):
        raise ValueError(f"{os.fspath(path)}: expected the table 'events', because "
                       f"the file is a trace, found {table!r}")
    return _events(path, options, pd)


def _events(path: _tool.Path, options: dict[str, _tool.Option],
            pd: Any) -> pandas.DataFrame:
    rows, words = _tool.call(
        ["export", "--to=csv", *_tool.arguments([path], options)])
    table: pandas.DataFrame = pd.read_csv(io.StringIO(rows))
    table.attrs["notes"] = words.splitlines()
    return table


def _result(results: Any, table: str, run: int, pd: Any) -> pandas.DataFrame:
    version = _text(results.attrs.get("schema_version", b"1"))
    if version.startswith("1"):
        raise ValueError(f"{results.filename}: expected schema_version 2 or later, "
                       f"where a number that is none is NaN, found {version}: "
                       "write the file again with this version of fragsim")
    is_summary = table == "summary"
    place = table if is_summary else f"runs/{run}/{table}"
    if place not in results:
        raise ValueError(f"{results.filename}: expected the table /{place}, found "
                       "none; there are summary, and of the runs 0 to "
                       f"{len(results['summary']) - 1} series, oom and segments")
    data = results[place]
    return _summary(results, data, pd) if is_summary else _columns(data, pd)


def _summary(results: Any, data: Any, pd: Any) -> pandas.DataFrame:
    made: pandas.DataFrame = pd.DataFrame(data[:])
    for name in data.dtype.names:
        if data.dtype[name].kind == "S":
            made[name] = made[name].map(_text)
    notes = (results[f"runs/{run}"].attrs["trace_notes"]
             for run in range(len(made)))
    made["notes"] = pd.Series([[_text(note) for note in run] for run in notes],
                                  dtype=object)
    made.attrs["units"] = dict(zip(data.dtype.names,
                                   map(_text, data.attrs["units"])))
    return made


def _columns(data: Any, pd: Any) -> pandas.DataFrame:
    first = [name for name in ("event", "time") if name in data]
    names = first + [name for name in data if name not in first]
    made: pandas.DataFrame = pd.DataFrame(
        {name: data[name][:] for name in names})
    made.attrs["units"] = {name: _text(data[name].attrs["units"])
                           for name in names}
    return made


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) \
        else str(value)
