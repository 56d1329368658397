#!/usr/bin/env python3
"""check_run.py: checks that `fragsim run` puts each process that imports torch
on the policy, and no other process; that the program is otherwise as without
it; and that the tool refuses what it cannot run.

tests/gpu/python/torch.py stands for PyTorch and real/dry for the driver.
PyTorch's own classes cannot be compiled for a stand-in, so the policy is its
pluggable allocator here.
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

LIBRARY = os.path.join(BUILD, "libfragsim_torch.so")
START = os.path.join(ROOT, "real", "torch", "start")
PYTHON = sys.executable
ENV = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "FRAGSIM_DRY_LEAKS": "1",
       "PYTHONWARNINGS": "ignore:fragsim", "CXX": "false",
       "PYTHONPATH": os.path.join(ROOT, "tests", "gpu", "python"),
       "LD_LIBRARY_PATH": os.path.join(BUILD, "dry")}
# Prints whether the process runs on a policy, and which one the file names.
SERVED = """
import os, sys, torch
address = torch.empty(5 << 20)
print(os.environ["FRAGSIM_POLICY"] if address else "no policy")
"""


def start_sanitizer():
    """Python is not built with the sanitizer that the library may need."""
    done = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True,
                          check=True)
    for line in done.stdout.splitlines():
        if "libasan" in line:
            ENV["LD_PRELOAD"] = line.split()[2]
            ENV["ASAN_OPTIONS"] = "detect_leaks=0"


def run(*words, tool=(FRAGSIM, "run"), env=None, **options):
    return subprocess.run([*tool, *words], env={**ENV, **(env or {})},
                          capture_output=True, text=True, check=False,
                          timeout=60, **options)


UNUSED = "fragsim run: no process of the program used a GPU through PyTorch: " \
    "the policy served nothing, and there are no results\n"


def is_done(done, out=None, code=0, err="", unused=False):
    """The exit code, stdout, words of stderr ("" for none), and whether stderr
    ends with the line that the policy was not used."""
    said = done.stderr.removesuffix(UNUSED)
    assert done.returncode == code and (out is None or done.stdout == out) \
        and (err in said if err else not said) \
        and (said != done.stderr) == unused, \
        (done.args, done.returncode, done.stdout, done.stderr)


def python(code, *options, policy="best_fit", **more):
    return run("-p", policy, *options, "--", PYTHON, "-c", code, **more)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def settings_in(path):
    """The policy and the capacity of a result file, as the figure compare has
    them; it writes its data also where there is no gnuplot."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([FRAGSIM, "plot", path, "compare", "-q", "-f", "--keep",
                        folder, "-o", os.path.join(folder, "x.svg")],
                       capture_output=True, check=False)
        with open(os.path.join(folder, "compare.tsv"), encoding="utf-8") as file:
            return file.read()


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ---- what runs on the policy ----

# Requests of the driver itself, each of another size.
DRIVER = """
import ctypes, torch
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert not driver.cuInit(0) and not driver.cuDevicePrimaryCtxRetain(
    ctypes.byref(context), 0) and not driver.cuCtxSetCurrent(context)
def ask(mib):
    assert not driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()),
                                    ctypes.c_size_t(mib << 20))
ask(2)
"""
CHANGES = """
torch._C._accelerator_setAllocatorSettings("max_split_size_mb:64")
def lower():
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
lower()
torch._C._cuda_setMemoryFraction(0.5, 0)
"""


def check_changes():
    """The policy keeps its settings, and its results say that the program changed
    those of PyTorch; a recording has the calls among its requests."""
    is_done(python(SERVED + CHANGES, "-o", "changed.h5"), "best_fit\n")
    assert b"2 calls changed the settings of PyTorch's own allocator while the program " \
        b'ran, the last one to "expandable_segments:True"' in read("changed.h5")
    is_done(python(SERVED, "-o", "unchanged.h5"), "best_fit\n")
    assert b"own allocator" not in read("unchanged.h5")
    write("job.py", DRIVER + CHANGES + "ask(4)\n")
    done = run("-q", "-o", "log.h5", "--", PYTHON, "job.py", tool=(FRAGSIM, "record"),
               env={"LD_PRELOAD": ""})  # the sanitizer would not be the first
    is_done(done, "")
    info = run("log.h5", "--json", "-", tool=(FRAGSIM, "info"))
    device, = json.loads(info.stdout)["results"][0]["devices"]
    assert [(row["event"], row["settings"], row["limit_bytes"])
            for row in device["settings_changes"]] == [
                (1, "max_split_size_mb:64", None), (1, "expandable_segments:True", None),
                (1, None, 75054940160)], device
    assert all(word in read("log.h5") for word in (b"job.py", b"lower", b"<module>"))
    if "LD_PRELOAD" not in ENV:  # a program that is on a policy too stays there
        is_done(run("--", PYTHON, "-c", SERVED, tool=(
            FRAGSIM, "record", "-q", "-f", "-o", "log.h5", "--", FRAGSIM, "run", "-p",
            "best_fit")), "best_fit\n")

def check_ways():
    """However Python is started, and whatever starts it."""
    script = write("job.py", SERVED)
    write("shell.sh", f"cd /; exec {PYTHON} {os.path.abspath(script)} \"$@\"\n")
    for words in ([PYTHON, "job.py"], [PYTHON, "-m", "job"],
                  [PYTHON, "-W", "ignore", "job.py", "-I"],
                  [PYTHON, "-c", SERVED, "-S"], ["sh", "shell.sh", "-E"],
                  [PYTHON, "-c", "import subprocess, sys\n"
                   "subprocess.run([sys.executable, 'job.py'], check=True)"]):
        is_done(run("-p", "best_fit", "--", *words), "best_fit\n")
    is_done(run("job.py", tool=(PYTHON,)), "no policy\n")


def check_processes():
    """Each process of multiprocessing has its results; a fork is fine until the
    GPU is used, and the parent that does not use it has none."""
    write("many.py", """
import multiprocessing, os, sys, torch


def work(_):
    assert torch.empty(3 << 20)
    os.write(1, b"p%d.h5 " % os.getpid())  # in one piece

if __name__ == "__main__":
    assert not torch.cuda.is_initialized()
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=work, args=(i,)) for i in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    sys.exit(max(child.exitcode for child in children))
""")
    for how in "fork", "spawn":
        done = run("-p", "tlsf", "-o", "p%p.h5", "--", PYTHON, "many.py", how)
        is_done(done)
        assert sorted(done.stdout.split()) == sorted(glob.glob("p*.h5")), \
            (how, done.stdout, glob.glob("*.h5"))
        assert len(glob.glob("p*.h5")) == 2, how
        for path in glob.glob("p*.h5"):
            os.remove(path)
    done = run("-p", "tlsf", "-o", "one.h5", "--", PYTHON, "many.py", "spawn")
    is_done(done, err="since another process wrote it")
    assert len(glob.glob("one.*h5")) == 2, glob.glob("*")
    # What this run wrote is never overwritten; what was there before is.
    done = run("-p", "tlsf", "-o", "one.h5", "-f", "--", PYTHON, "many.py",
               "spawn")
    is_done(done, err="since another process wrote it")
    assert len(glob.glob("one.*h5")) == 3, glob.glob("*")


def check_results():
    """The file has the settings; its name is relative to the tool's folder."""
    code = "import os; os.chdir('/')" + SERVED
    is_done(python(code, "-c", "3GiB", "-o", "out.h5", policy="remap"),
            "remap\n")
    assert "remap on 3 GiB" in settings_in("out.h5"), settings_in("out.h5")
    is_done(python(code, "-o", "out.h5"), "", 4, "out.h5 exists; -f overwrites")
    assert "remap on 3 GiB" in settings_in("out.h5")
    is_done(python(code, "-o", "out.h5", "-f"), "best_fit\n")
    assert "best_fit" in settings_in("out.h5")
    is_done(python("import torch", "-o", "unused.h5"), "", unused=True)
    assert not os.path.exists("unused.h5"), "results of a device never used"
    is_done(python(SERVED, "-o", "none/out.h5"), "", 4, "none/out.h5: No such file")
    write("file", "")
    is_done(python(SERVED, "-o", "file/out.h5"), "", 4, "file/out.h5: Not a dir")


def check_settings():
    """The options are the whole settings, also of a run inside of a run."""
    inner = f"{FRAGSIM} run -q -p tlsf -- {PYTHON} -c 'import os; print(*sorted(" \
        "name for name in os.environ if name[:8] == \"FRAGSIM_\" " \
        "and name != \"FRAGSIM_DRY_LEAKS\"))'"
    wanted = "FRAGSIM_CAPACITY FRAGSIM_POLICY FRAGSIM_STARTED " \
        "FRAGSIM_TORCH_CACHE FRAGSIM_TORCH_LIBRARY\n"
    is_done(run("-p", "remap", "-o", "x.h5", "-f", "--", "sh", "-c", inner),
            wanted, unused=True)
    is_done(run("-p", "plan:online,rest=expandable", "--", "sh", "-c",
                "echo $FRAGSIM_POLICY"), "plan_online:rest=expandable\n",
            unused=True)
    is_done(run("-p", "torch@2.6:expandable_segments:True", "--", "sh", "-c",
                "echo $FRAGSIM_POLICY"),
            "torch:torch_version:2.6,expandable_segments:True\n", unused=True)
    for first in "", "import torch; torch.empty(9)\n":
        is_done(python(first + "import fragsim_torch\n"
                       "print(fragsim_torch.use('best_fit'))" + SERVED),
                "pluggable\nbest_fit\n")
    is_done(python("import torch, fragsim_torch\nfragsim_torch.use('remap')"),
            "", 1, "comes too late: this process runs on the policy 'best_fit'",
            unused=True)
    late = "import torch; torch.empty(9); import fragsim_torch\n" \
        "fragsim_torch.use('remap')"
    is_done(run("-c", late, tool=(PYTHON,), env={
        "PYTHONPATH": ENV["PYTHONPATH"] + ":" + os.path.dirname(START),
        "FRAGSIM_TORCH_LIBRARY": LIBRARY}), "", 1,
            "comes too late: this program has used the GPU already")


# ---- the program is as without it ----


def check_nothing_else():
    """A process without torch is as without the tool; with torch, the loader
    keeps its type."""
    show = "import sys; print(sys.path, sorted(sys.modules))"
    plain = run("-c", show, tool=(PYTHON,))
    done = python(show)
    before = set(eval(plain.stdout[plain.stdout.index("] [") + 2:]))
    after = set(eval(done.stdout[done.stdout.index("] [") + 2:]))
    assert done.stdout[:done.stdout.index("] [")] == \
        plain.stdout[:plain.stdout.index("] [")], (done.stdout, plain.stdout)
    # What the search of the next sitecustomize needs, in one Python or another.
    assert not {name.split(".")[0] for name in after - before} - {
        "sitecustomize", "importlib", "warnings", "contextlib", "collections",
        "functools", "types", "keyword", "operator", "reprlib",
        "abc"}, after - before
    is_done(python("import inspect, torch\nprint(type(torch.__loader__)"
                   ".__name__, len(inspect.getsource(torch)) > 100,\n"
                   "'exec_module' in vars(torch.__loader__))"),
            "SourceFileLoader True False\n", unused=True)


def check_sitecustomize():
    """The program's own sitecustomize runs, and its errors are reported as
    without the tool."""
    os.mkdir("site")
    path = os.path.abspath("site")
    env = {"PYTHONPATH": path + ":" + ENV["PYTHONPATH"]}
    write("site/sitecustomize.py", "print('own', __name__, __file__)\n")
    own = f"own sitecustomize {path}/sitecustomize.py\n"
    is_done(python(SERVED + "print(sys.modules['sitecustomize'].__file__)",
                   env=env), f"{own}best_fit\n{path}/sitecustomize.py\n")
    write("site/sitecustomize.py", "import torch\n")
    is_done(python(SERVED, env=env), "best_fit\n")
    write("site/sitecustomize.py", "1 // 0\n")
    is_done(python(SERVED, env=env), "best_fit\n",
            err=run("-c", "", tool=(PYTHON,), env=env).stderr)
    inner = f"{FRAGSIM} run -p tlsf -- {PYTHON} -c '{SERVED}'"
    write("site/sitecustomize.py", "print('own')\n")
    is_done(run("-p", "remap", "--", "sh", "-c", inner, env=env),
            "own\ntlsf\n", unused=True)  # of the outer policy


def check_imports():
    """A failed import may be repeated; a folder torch is not PyTorch."""
    os.makedirs("broken/torch")
    write("broken/torch/__init__.py", "raise ImportError('broken')\n")
    env = {"PYTHONPATH": os.path.abspath("broken") + ":" + ENV["PYTHONPATH"]}
    is_done(python("import sys\ntry:\n    import torch\n"
                   "except ImportError as error:\n    print(error)\n"
                   "sys.path.remove(%r)\n" % os.path.abspath("broken") + SERVED,
                   env=env), "broken\nbest_fit\n")
    os.makedirs("space/torch")
    is_done(python("import torch; print(torch.__path__ is not None)",
                   env={"PYTHONPATH": os.path.abspath("space")}), "True\n",
            unused=True)


def check_ends():
    """Exit codes and signals are those of the program, which has the tool's
    process number."""
    is_done(python("import torch, sys; sys.exit(7)"), "", 7, unused=True)
    code = "import os, signal, sys, torch\n" \
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))\n" \
        "print(os.getpid(), flush=True)\nsignal.pause()"
    for number, wanted in ((signal.SIGUSR1, 9), (signal.SIGTERM, -15),
                           (signal.SIGINT, -2)):
        with subprocess.Popen([FRAGSIM, "run", "-p", "remap", "--", PYTHON, "-c",
                               code], env=ENV, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as child:
            assert int(child.stdout.readline()) == child.pid
            child.send_signal(number)
            assert child.wait(timeout=30) == wanted, (number, child.returncode)


def check_package():
    """python -m fragsim.run is the command; fragsim.run stays a function."""
    env = {"PYTHONPATH": os.path.join(ROOT, "sim", "python") + ":" +
           ENV["PYTHONPATH"], "FRAGSIM": FRAGSIM}
    is_done(run("-p", "best_fit", "--", PYTHON, "-c", SERVED, env=env,
                tool=(PYTHON, "-m", "fragsim.run")), "best_fit\n")
    is_done(python("import torch; torch.empty(9)\n"
                   "from fragsim import fragsim_torch\n"
                   "print(fragsim_torch.use('best_fit'))", env=env),
            "pluggable\n")
    is_done(run("-c", "import fragsim\ntry:\n    import fragsim.run\n"
                "except ImportError:\n    print(callable(fragsim.run))",
                tool=(PYTHON,), env=env), "True\n")


# ---- what cannot run ----


def check_without_cuda():
    """Never without the policy: the process ends, also in a thread and where
    the program expects that torch is missing."""
    words = "cannot run on the policy best_fit: RuntimeError: PyTorch " \
        "2.11.0+cu130 was built without CUDA"
    for code in (SERVED, "try:\n    import torch\nexcept Exception:\n    pass"):
        done = python(code, env={"STANDIN_CUDA": ""})
        is_done(done, "", 5, words, unused=True)
        assert done.stderr.count("\n") == 2, done.stderr
    thread = "import threading\ndef load():\n    import torch\n" \
        "t = threading.Thread(target=load); t.start(); t.join()"
    is_done(python(thread, env={"STANDIN_CUDA": ""}), "", err=words,
            unused=True)


def check_unused():
    """A program that leaves the policy unused is told so, whatever it is; its
    exit code stays. One process that uses it is enough. No file stays."""
    env = {"TMPDIR": os.getcwd()}
    is_done(python("print(1)", env=env), "1\n", unused=True)
    is_done(run("-p", "best_fit", "--", "sh", "-c", "exit 3", env=env), "", 3,
            unused=True)
    is_done(run("-p", "best_fit", "--", "sh", "-c", "kill -9 $$", env=env), "",
            -9, unused=True)
    is_done(run("-q", "-p", "best_fit", "--", "true", env=env), "")
    write("train.py", SERVED)
    is_done(run("-p", "best_fit", "--", "sh", "-c",
                f"true; {PYTHON} train.py; true", env=env), "best_fit\n")
    is_done(python("import subprocess, sys\nsubprocess.run([sys.executable, "
                   "'train.py'])", env=env), "best_fit\n")
    is_done(run("-p", "best_fit", "--", "no_such_program", env=env), "", 4,
            "cannot be run")
    is_done(run("-p", "best_fit", "--", "sh", "-c", "exit 2",
                env={"TMPDIR": "/nowhere"}), "", 2, "is not watched: No such")
    assert os.listdir() == ["train.py"], os.listdir()


def check_refusals():
    """Nothing of a refused program is executed."""
    for policy, words in (("compact", "moves blocks"), ("plan", "such as remap"),
                          ("remp", "\"remap\"?"),
                          ("best_fit:segment=x", "segment"),
                          ("torch@recorded", "has no trace"),
                          ("bfc:initial=9GiB,limit=1", "")):
        done = run("-p", policy, "--", "echo", "ran")
        assert done.returncode == 2 and not done.stdout and words in \
            done.stderr, (policy, done)
    is_done(run("-p", "remap", "--", "no_such_program"), "", 4,
            "cannot be run")
    is_done(run("--", "echo", "ran"), "", 2, "expected -p POLICY")


def main():
    if not os.path.exists(LIBRARY):
        print(f"check_run: no {LIBRARY}; skipped")
        sys.exit(77)
    start_sanitizer()
    folder = tempfile.mkdtemp()
    ENV["FRAGSIM_TORCH_CACHE"] = os.path.join(folder, "cache")
    try:
        for name, check in list(globals().items()):
            if name.startswith("check_"):
                os.mkdir(os.path.join(folder, name))
                os.chdir(os.path.join(folder, name))
                check()
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print("all runs are on the policy, or refused")


main()
