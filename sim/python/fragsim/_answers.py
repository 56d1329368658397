"""The commands of the tool that Python programs use most, as functions. Each is
one command; its options are the keyword arguments, named as in `fragsim help
COMMAND` with _ for -, for example further_steps=5 or as_recorded=True."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _tables, _tool

if TYPE_CHECKING:
    import pandas

    from .pytorch_record import Recording


def _list(sizes: _tool.Option) -> str | None:
    """Several sizes as the one value that --capacity takes."""
    return ",".join(_tool.texts(sizes)) or None


def replay(*traces: _tool.Path, policy: _tool.Option = "torch",
           capacity: _tool.Option = None,
           **options: _tool.Option) -> pandas.DataFrame:
    """Replays traces against policies, each at every capacity.

    `policy` is one or a list of them, such as "torch:expandable_segments:True".
    `capacity` is the memory of the device, or a list of such sizes: bytes,
    "24GiB", "0.9x" (a share of peak requested) or "inf" (the default). With
    output="results.h5" the runs are also written to a result file, for plot and
    read; force=True overwrites an existing one.

    Returns one row for each run, with the columns of `fragsim help results`
    (names that end in _bytes are bytes, in _seconds s, in _ratio a share of 1)
    and `notes`, a list of texts that states what the run rests on. A request
    that failed is a result: num_ooms counts them.

    Error if the tool refuses an input; MissingPackage without pandas
    (answer("replay", ...) returns the same as a dict).
    """
    return _rows("replay", traces, policy=policy, capacity=_list(capacity),
                 **options)


def fit(*traces: _tool.Path, policy: _tool.Option = "torch",
        **options: _tool.Option) -> pandas.DataFrame:
    """Finds what each policy needs to survive each trace.

    Returns one row for each trace and policy; need_bytes is the least bound from
    which on nothing fails, found to step_bytes, and NaN if there is none. The
    option `bound` says of what: "capacity", of the device, or "limit", of the
    process; by default the one of which the recorded job died. Errors as replay.
    """
    return _rows("fit", traces, policy=policy, **options)


def _rows(command: str, traces: Sequence[_tool.Path],
          **options: _tool.Option) -> pandas.DataFrame:
    _tables.package("pandas", f"fragsim.{command}")  # before the work
    found = _tool.answer(command, *traces, **options)
    return _tables.frame(found["results"], f"fragsim.{command}")


def tune(*traces: _tool.Path, capacity: _tool.Option = None,
         **options: _tool.Option) -> dict[str, Any]:
    """Finds the simplest PYTORCH_CUDA_ALLOC_CONF that saves memory.
    `capacity` is the memory of the device in bytes, or as "24GiB".

    Returns a dict: `chosen` has the `settings` and what they save
    (saving_ratio, of 1), or is None if no setting is within the bounds;
    `cases` has each trace's peak_reserved_bytes as recorded and as chosen;
    `ladder` all settings that were tried. Error if the tool refuses an input.
    """
    found: dict[str, Any] = _tool.answer(
        "tune", *traces, capacity=capacity, **options)["results"][0]
    return found


def explain(snapshot: _tool.Path, **options: _tool.Option) -> list[dict[str, Any]]:
    """Explains why a request of a recorded job failed, and what would have
    served it.

    Returns a dict for each device of the snapshot: `cause` in one word ("none"
    if no request failed), `evidence` in a sentence, the `request`, sizes in
    bytes, the `changes` that were tried, each with its `result` ("survives",
    "serves what was recorded", "fails" or "not known"), the best of them as
    `advice`, and in `unknown` what the recording cannot tell.
    The counters in NAME.json beside NAME.pickle, as record writes them, are
    read too. Error if the tool refuses the input.
    """
    found: list[dict[str, Any]] = _tool.answer(
        "explain", snapshot, **options)["results"]
    return found


class Picture:
    """A figure as SVG, which Jupyter shows. `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def plot(source: _tool.Path | Sequence[_tool.Path], figure: str,
         output: _tool.Path | None = None, *, capacity: _tool.Option = None,
         **options: _tool.Option) -> Picture | str:
    """Draws a figure of `fragsim help plot`: of one or more result files, or,
    for `distributions` and `map`, of a trace. gnuplot must be installed.

    With `output`, a path that ends in .svg, .png or .pdf (for `map` also .html,
    the interactive view, without gnuplot), writes the file and returns its path
    (force=True overwrites an existing one); without it, returns a Picture.
    `capacity`, `policy` and `trace` choose runs. Error if the tool cannot draw
    it.
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    options = {"capacity": _list(capacity), **options}

    def draw(path: str, **more: _tool.Option) -> None:
        _tool.call(["plot", "--quiet", *_tool.arguments(
            [*sources, figure], {"output": path, **options, **more})])

    if output is not None:
        draw(os.fspath(output))
        return os.fspath(output)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figure.svg")
        draw(path)
        with open(path, encoding="utf-8") as file:
            return Picture(file.read())


def record(prefix: _tool.Path = "snapshot", **history: Any) -> Recording:
    """Records the requests to PyTorch's CUDA allocator in this process.

        with fragsim.record("run") as recording:
            train()
        fragsim.explain(recording.files[-1])

    PREFIX.rankR.oom.pickle is written each time memory runs out, and
    PREFIX.rankR.exit.pickle at the end of the block, or of the process if the
    block does not end. R is the rank in torch.distributed, or $RANK, or 0. The
    .json beside each holds the allocator's counters and its limit. `history`
    are arguments of torch.cuda.memory._record_memory_history, such as
    stacks="python" or max_entries=100000. `recording.files` lists the
    snapshots that were written.

    Needs PyTorch 2.1 or later and a GPU: MissingPackage without PyTorch,
    PyTorch's own error at the start of the block without a GPU, and
    RuntimeError while another recording is active.
    """
    _tables.package("torch", "fragsim.record")
    from .pytorch_record import Recording  # it imports torch
    return Recording(prefix, **history)
