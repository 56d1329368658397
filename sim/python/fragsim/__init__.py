"""fragsim: would another allocator, or another setting of the same allocator,
have avoided this out-of-memory error, and at what price?

    import fragsim
    page = fragsim.triage("oom.pickle")   # a notebook shows it
    fragsim.explain("oom.pickle").evidence[0]
    fragsim.explain("oom.pickle", table="changes")
    fragsim.replay("a.pickle", "b.pickle", policies=["torch", "best_fit"],
                   capacity=[24 << 30, "inf"])
    fragsim.explain(torch.cuda.memory._snapshot())          # no file is needed
    fragsim.replay(fragsim.trace(bytes=[4096, 512], free=[2, -1]))

Each function is a command of the fragsim tool, which is part of the package and
also the command `fragsim`. Its keyword arguments are the command's options, with
_ for -; a list is several values. Sizes are bytes. An input is a path, a
snapshot of PyTorch as a dict, or blocks as arrays (fragsim.trace).

The functions return a pandas DataFrame; `table` chooses another one of the
tables that the docstring lists, and attrs["answer"] is all of the answer. `answer`
returns that as a dict, without pandas. Result files are read with h5py: `pip
install fragsim[tables]`. With tqdm installed, work of more than a second shows its
progress in a terminal or a notebook, unless progress=False. Nothing else is needed
but, for record, PyTorch and a GPU.

A command that fails raises fragsim.Error, which is a ValueError, an OSError or a
RuntimeError too. A simulated out-of-memory is a result, and no exception.

fragsim.fragsim_torch puts a policy of fragsim under PyTorch. `python -m
fragsim.dry train.py` runs a program without a GPU, and `python -m fragsim.gate` compares
such a run with a stored one.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from . import _tool
from ._inputs import Trace, trace
from ._options import Path
from ._pages import Page, Picture, plot, report, triage
from ._tables import arrays, package, read
from ._tool import Error, MissingPackage, run, tool_path
from ._verbs import Answer as Answer  # help(fragsim) need not list a dict
from ._verbs import answer, function

if TYPE_CHECKING:
    from .pytorch_record import Recording

    __version__: str

compare = function("compare")
diff = function("diff")
explain = function("explain")
fit = function("fit")
info = function("info")
leaks = function("leaks")
policies = function("policies")
replay = function("replay")
steps = function("steps")
summary = function("summary")
sweep = function("sweep")
top = function("top")
tune = function("tune")
validate = function("validate")


def record(prefix: Path = "snapshot", **history: Any) -> Recording:
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
    package("torch", "fragsim.record")
    from .pytorch_record import Recording  # it imports torch
    return Recording(prefix, **history)


def dry(*arguments: object, **options: object) -> NoReturn:
    """Raises RuntimeError, which says how a program runs without a GPU: that
    must be decided before it imports torch.

        python -m fragsim.dry --gpu t4 train.py
    """
    raise RuntimeError(
        "fragsim.dry cannot begin inside a program: PyTorch finds the libraries "
        "of CUDA when it is imported. Run the whole program with `python -m "
        "fragsim.dry train.py', or its tests with `pytest --fragsim-dry=h200'")


if not TYPE_CHECKING:
    def __getattr__(name):
        """__version__ is the tool's, which is asked when it is first read."""
        if name != "__version__":
            raise AttributeError(f"module 'fragsim' has no attribute {name!r}")
        try:
            globals()[name] = _tool.version()
        except FileNotFoundError as error:
            raise AttributeError(str(error)) from error
        return globals()[name]


__all__ = ["Error", "MissingPackage", "Page", "Picture", "Trace", "answer",
           "arrays", "compare", "diff", "dry", "explain",
           "fit", "info", "leaks", "plot", "policies", "read", "record",
           "replay", "report", "run", "steps", "summary", "sweep", "tool_path",
           "top", "trace", "triage", "tune", "validate"]
