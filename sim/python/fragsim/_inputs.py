"""Inputs that are not files: snapshots of PyTorch as they are in memory, and
traces as arrays. They are written to temporary files, which the tool reads."""
from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

from ._options import Path
from ._tables import package

if TYPE_CHECKING:
    import numpy

# A path, a snapshot as a dict, a Trace, an array of blocks; or a list of
# inputs.
Input = Union[Path, Mapping[Any, Any], "numpy.ndarray[Any, Any]", Iterable[Any]]
COLUMNS = ("bytes", "stream", "alloc", "free")  # of an array of blocks


class Trace:
    """Requests from arrays, as an input of every command. `path` is the
    temporary file, which is removed with this object."""

    def __init__(self, events: Iterable[str], blocks: int, name: str) -> None:
        folder = tempfile.TemporaryDirectory(prefix="fragsim")
        self._remove = weakref.finalize(self, folder.cleanup)
        self.path = os.path.join(folder.name, name + ".csv")
        self.blocks = blocks
        with open(self.path, "w", encoding="ascii") as file:
            file.write("op,id,bytes,stream\n")
            file.writelines(events)

    def close(self) -> None:
        """Removes the file."""
        self._remove()

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<fragsim.Trace of {self.blocks} blocks>"


def trace(bytes: Any, alloc: Any = None, free: Any = None, stream: Any = 0,
          name: str = "trace") -> Trace:
    """A trace from numpy arrays, or lists, with one element for each block: its
    bytes, the events (or times) at which it is allocated and freed, and its
    stream. A block is never freed if `free` is NaN or negative, and none is
    without `free`; without `alloc` the blocks are allocated in their order. Of
    requests at the same event, frees come first. numpy is needed.

        blocks = fragsim.trace(bytes=[4096, 512], alloc=[0, 1], free=[2, -1])
        fragsim.replay(blocks, policies=["torch", "best_fit"])

    Every command also takes such blocks as one array: one with the fields
    bytes, alloc, free and stream, or one of four columns: bytes, stream, alloc,
    free. ValueError if the arrays are not blocks.
    """
    np = package("numpy", "fragsim.trace")
    size = np.atleast_1d(np.asarray(bytes))
    count = len(size)
    if size.ndim != 1 or (count and not (size >= 1).all()):
        raise ValueError("bytes: expected a size of at least 1 for each block")

    def column(what: str, given: Any) -> Any:
        values = np.asarray(given)
        if values.shape not in ((), (count,)):
            raise ValueError(f"{what}: expected {count} values, one for each "
                             f"block, found the shape {values.shape}")
        return np.broadcast_to(values, count)

    begin = column("alloc", np.arange(count) if alloc is None else alloc)
    end = column("free", -1 if free is None else free)
    on = column("stream", stream)
    freed = np.flatnonzero(end >= 0)  # NaN is not
    if (end[freed] <= begin[freed]).any():
        block = int(freed[np.argmax(end[freed] <= begin[freed])])
        raise ValueError(f"free: expected an event after {begin[block]}, at which "
                         f"block {block} is allocated, found {end[block]}")
    block = np.concatenate([freed, np.arange(count)])
    is_alloc = np.arange(len(block)) >= len(freed)
    order = np.lexsort((is_alloc, np.concatenate([end[freed], begin])))
    sizes, streams = size.tolist(), on.tolist()
    return Trace((f"alloc,{b},{int(sizes[b])},{int(streams[b])}\n" if made
                  else f"free,{b},,\n"
                  for b, made in zip(block[order].tolist(),
                                     is_alloc[order].tolist())), count, name)


def _is_table(one: Any) -> bool:
    """Whether it is an array or a DataFrame of blocks."""
    return hasattr(one, "dtype") or hasattr(one, "to_records")


def _blocks(table: Any) -> Trace:
    if hasattr(table, "to_records"):
        table = table.to_records(index=False)
    if table.dtype.names:
        unknown = set(table.dtype.names) - set(COLUMNS)
        if unknown or "bytes" not in table.dtype.names:
            raise ValueError("an array of blocks has the fields bytes and, where "
                             "they are known, stream, alloc and free; found "
                             + ", ".join(table.dtype.names))
        return trace(**{name: table[name] for name in table.dtype.names})
    if table.ndim != 2 or table.shape[1] != len(COLUMNS):
        raise ValueError("an array of blocks has four columns, bytes, stream, alloc "
                         f"and free; found the shape {table.shape}")
    return trace(**dict(zip(COLUMNS, table.T)))


class Files(contextlib.ExitStack):
    """The files of inputs. Temporary ones are removed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def _pickled(self, snapshot: Mapping[Any, Any]) -> str:
        self._count += 1
        name = "snapshot" + (str(self._count) if self._count > 1 else "") + ".pickle"
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="fragsim"))
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)
        return path

    def output(self, suffix: str) -> str:
        """A path for an output that nobody keeps."""
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="fragsim"))
        return os.path.join(folder, "output" + suffix)

    def paths(self, given: Input) -> list[str]:
        """One input, or several, as the tool's arguments."""
        if isinstance(given, (str, os.PathLike)):
            return [os.fspath(given)]
        if isinstance(given, Mapping):
            return [self._pickled(given)]
        if _is_table(given):
            made = _blocks(given)
            self.callback(made.close)
            return [made.path]
        if isinstance(given, Iterable):
            return [path for one in given for path in self.paths(one)]
        raise TypeError("expected a path, a snapshot as a dict, or an array of "
                        f"blocks, found {type(given).__name__}")
