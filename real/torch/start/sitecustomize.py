"""Puts PyTorch on a policy of fragsim as soon as `import torch` is complete, or
on the stand-ins for a GPU before it begins; or tells the recorder which calls change
the settings of PyTorch's allocator.

`fragsim run`, `fragsim dry` and `fragsim record` make this folder the first of PYTHONPATH, so that
every Python of the program imports this module at its start, before any line of
the program. A process that never imports torch is not affected. `fragsim dry` names its module
(real/dry/fragsim_dry.py) in FRAGSIM_DRY_MODULE. The sitecustomize that Python
would have imported without this one runs too. This file avoids syntax that an
older Python lacks, since the program may start any.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CANNOT = 5  # the exit code for a device that cannot be used, as of the tool
DRY = os.environ.get("FRAGSIM_DRY_MODULE")
RECORD = "FRAGSIM_RECORD_FOLDER" in os.environ
FRAMES = 16  # of the stack of a recorded call


def load(name):
    """Loads a module of fragsim. The program may be importing it now:
    fragsim_torch imports torch first, and stays the one of that name."""
    from importlib.util import module_from_spec
    spec = own_spec(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.setdefault(name, module)
    return module


def own_spec(name):
    from importlib.util import spec_from_file_location
    return spec_from_file_location(
        name, DRY if name == "fragsim_dry" else
        os.path.join(os.path.dirname(HERE), name + ".py"))


def end(words, error):
    """The message does not rely on SystemExit, which is silent in a thread."""
    sys.stderr.write("fragsim: this process cannot run %s: %s: %s\n"
                     % (words, type(error).__name__, error))
    raise SystemExit(CANNOT)


def prepare(spec):
    """Loads the stand-ins, before torch looks for CUDA's libraries."""
    if not DRY:
        return
    try:
        load("fragsim_dry").before(spec)
    except Exception as error:
        end("without a GPU", error)


def record():
    """Tells the recorder (real/recorder/recorder_changes.c). A process whose calls
    are not seen runs all the same."""
    try:
        from ctypes import PyDLL, c_uint64  # it keeps the lock of the interpreter
        log = PyDLL(None).frag_record_change

        def hear(call):
            lines = [call.get("settings", "").replace("\n", " ")]
            lines += ["%d\t%s\t%s" % (frame["line"], frame["name"], frame["filename"])
                      for frame in call["frames"][:FRAMES]]
            log("\n".join(lines).encode("utf-8", "replace"),
                call.get("device", -1), c_uint64(call.get("limit", 0)))

        load("pytorch_record").Changes.of_process().hears.append(hear)
    except Exception as error:
        sys.stderr.write("fragsim record: the changes of PyTorch's settings are not "
                         "recorded: %s: %s\n" % (type(error).__name__, error))


def use():
    """Ends the process with a message if it cannot run on the policy: it must
    never run without it."""
    if RECORD:
        record()
        if not DRY and "FRAGSIM_STARTED" not in os.environ:
            return
    try:
        if DRY:
            sys.modules["fragsim_dry"].after()
            return
        module = sys.modules.get("fragsim_torch")
        if not hasattr(module, "use"):
            module = load("fragsim_torch")
        module.use()
    except Exception as error:
        end("without a GPU" if DRY else
            "on the policy %s" % os.environ.get("FRAGSIM_POLICY"), error)


class Finder:
    """Finds torch as the other finders do, and calls use() after it. Finds
    fragsim_torch if no other finder does."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("torch", "fragsim_torch"):
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None
            if find is not None and finder is not self:
                spec = find(name, path, target)
            if spec is not None:
                if name == "torch" and self.wrap(spec.loader):
                    prepare(spec)
                return spec
        if DRY and name == "torch":
            sys.stderr.write("fragsim dry: %s has no PyTorch; `fragsim dry "
                             "--setup FOLDER' makes an environment that has it\n"
                             % sys.executable)
        return own_spec(name) if name == "fragsim_torch" else None

    @staticmethod
    def wrap(loader):
        """The loader keeps its type, since others ask it for more than this.
        A folder without an __init__.py has no loader, and is not PyTorch."""
        run = getattr(loader, "exec_module", None)
        if run is None:
            return False

        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            run(module)
            use()

        loader.exec_module = exec_module
        return True


def run_next():
    """Runs the sitecustomize that Python would have imported, in this one's
    place."""
    from importlib.machinery import PathFinder
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec
    sys.modules["sitecustomize"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


sys.path[:] = [folder for folder in sys.path
               if os.path.realpath(folder or ".") != os.path.realpath(HERE)]
if "FRAGSIM_TORCH_PROBE" in os.environ:  # the process tests the compiled class
    pass
elif "torch" in sys.modules:  # a .pth file was faster
    use()
else:
    sys.meta_path.insert(0, Finder())
run_next()
if DRY:  # torch.compile starts Python with the folders of sys.path as PYTHONPATH
    sys.path.insert(0, HERE)
