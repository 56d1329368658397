"""fragsim: would another allocator, or another setting of the same allocator,
have avoided this out-of-memory error, and at what price?

    import fragsim
    fragsim.replay("oom.pickle", policy=["torch", "best_fit"], capacity="24GiB")
    fragsim.explain("oom.pickle")[0]["cause"]
    fragsim.tune("oom.pickle", capacity="24GiB")["chosen"]

The functions run the fragsim tool, which is part of the package and also the
command `fragsim`; `answer` and `run` reach its other commands. Sizes are bytes.
Tables are pandas DataFrames, and result files are read with h5py: `pip install
fragsim[tables]`. Nothing else is needed but, for record, PyTorch and a GPU.
fragsim.fragsim_torch puts a policy of fragsim under PyTorch. `python -m
fragsim.dry train.py` runs a program without a GPU.
"""
from typing import NoReturn

from ._answers import Picture, explain, fit, plot, record, replay, tune
from ._tables import read
from ._tool import Error, MissingPackage, answer, run, tool_path



def dry(*arguments: object, **options: object) -> NoReturn:
    """Raises RuntimeError, which says how a program runs without a GPU: that
    must be decided before it imports torch."""
    raise RuntimeError(
        "fragsim.dry cannot begin inside a program: PyTorch finds the libraries "
        "of CUDA when it is imported. Run the whole program with `python -m "
        "fragsim.dry train.py', or its tests with `pytest --fragsim-dry=h200'")


__all__ = ["Error", "MissingPackage", "Picture", "answer", "dry", "explain", "fit",
           "plot", "read", "record", "replay", "run", "tool_path", "tune"]
