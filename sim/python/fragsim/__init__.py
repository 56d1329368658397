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
fragsim.fragsim_torch puts a policy of fragsim under PyTorch.
"""
from ._answers import Picture, explain, fit, plot, record, replay, tune
from ._tables import read
from ._tool import Error, MissingPackage, answer, run, tool_path

__all__ = ["Error", "MissingPackage", "Picture", "answer", "explain", "fit",
           "plot", "read", "record", "replay", "run", "tool_path", "tune"]
