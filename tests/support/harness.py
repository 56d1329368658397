"""harness.py: what the scripts of tests/ share: where things are, and how they
run the tool. A script in a folder of tests/ begins with

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
    from harness import FRAGSIM, need, run

Environment: FRAGSIM (default build/fragsim), FRAG_BUILD_DIR (default build),
FRAG_SHARED_DIR (recordings that are not bundled; default ../shared), FRAG_SHORT (sample()
takes some cases only).
"""
import json
import lzma
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.realpath(os.environ.get("FRAG_BUILD_DIR",
                                        os.path.join(ROOT, "build")))
FRAGSIM = os.path.realpath(os.environ.get("FRAGSIM",
                                          os.path.join(BUILD, "fragsim")))
SHARED = os.path.abspath(os.environ.get("FRAG_SHARED_DIR",
                                        os.path.join(ROOT, "..", "shared")))
BUNDLED = os.path.join(ROOT, "traces", "bundled")
EARLIER = os.path.join(ROOT, "tests", "support", "earlier")
SMALL = os.path.join(ROOT, "tests", "cli", "small.csv")
# Bytes that a driver reports as free and keeps (FRAG_DRIVER_KEEPS of sim/arena/arena.h).
DRIVER_KEEPS = 3276800
# Whether each access of the tool is checked; it then runs several times slower.
SANITIZED = "sanitize" in os.environ.get("FRAG_INSTALL_CFLAGS", "")
# Whether long tests take a part of their cases: `./run test` without `all`.
SHORT = bool(os.environ.get("FRAG_SHORT"))


def skip(words):
    """Ends the script as skipped, and says why."""
    print(f"{os.path.basename(sys.argv[0])}: {words}; skipped")
    sys.exit(77)


def need(*paths):
    """Ends the script as skipped if one of the files or folders is absent."""
    for path in paths:
        if not os.path.exists(path):
            skip(f"{path} is absent")


def earlier(name, path=None):
    """The bytes of a file that an earlier fragsim wrote, which also go to `path`."""
    with lzma.open(os.path.join(EARLIER, name + ".h5.xz")) as packed:
        data = packed.read()
    if path:
        with open(path, "wb") as file:
            file.write(data)
    return data


def share(cases, part=4):
    """All cases; with sanitizers, which the build without them makes up for, one
    case in `part`, the first one always."""
    return cases[::part] if SANITIZED else cases


def sample(cases, part=4):
    """All cases; in `./run test`, which `./run test all` makes up for, one case in
    `part`, the first one always. For a test that takes more than a minute."""
    return cases[::part] if SHORT else cases


def attempt(*arguments, **options):
    """Runs the tool, whatever its exit code; stdin is empty."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    words = [str(a) if isinstance(a, (int, float)) else a for a in arguments]
    return subprocess.run([FRAGSIM, *words], capture_output=True, text=True,
                          check=False, **options)


def run(*arguments, code=0, **options):
    """Runs the tool, whose exit code must be `code` (or one of a tuple; None:
    any)."""
    done = attempt(*arguments, **options)
    codes = code if isinstance(code, tuple) else (code,)
    assert code is None or done.returncode in codes, \
        f"fragsim {arguments}: exit {done.returncode}, not {codes}: " \
        f"{done.stderr}{done.stdout}"
    return done


def output(*arguments, **options):
    """What the tool prints on stdout."""
    return run(*arguments, **options).stdout


def results(*arguments, **options):
    """The rows of the tool's JSON."""
    return json.loads(output(*arguments, "--json", "-", **options))["results"]
