"""Runs the fragsim tool as a child process and turns its failures into
exceptions. Everything that the package computes, the tool computes."""
from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from . import _progress

INTERRUPTED = 130
SECONDS_TO_CLEAN_UP = 10


class Error(Exception):
    """A command of the tool failed; the message is the tool's. Each kind is also
    the exception that Python programs expect: ValueError for wrong use and for
    a malformed input, FileNotFoundError and OSError for files, RuntimeError for
    a device.

    `code` is the exit code (`fragsim help exits`), `command` its arguments,
    `words` what the tool printed on stderr.

        try:
            fragsim.info("oom.pickle")
        except fragsim.Error as error:
            print(error.code, error)
    """

    def __init__(self, code: int, command: Sequence[str], words: str) -> None:
        super().__init__(words.strip() or
                         f"fragsim {' '.join(command)}: exit code {code}")
        self.code = code
        self.command = list(command)
        self.words = words

    def __reduce__(self) -> tuple[type[Error], tuple[int, list[str], str]]:
        return type(self), (self.code, self.command, self.words)


class UseError(Error, ValueError):
    """A value of an option, a policy or a parameter is wrong: exit code 2."""


class InputError(Error, ValueError):
    """An input is malformed: exit code 3."""


class FileError(Error, OSError):
    """A file could not be read or written: exit code 4."""


class MissingFile(FileError, FileNotFoundError):
    """An input does not exist: exit code 4."""


class ExistingFile(FileError, FileExistsError):
    """An output exists, and force=True was not given: exit code 4."""


class DeviceError(Error, RuntimeError):
    """There is no device, or the device failed: exit code 5."""


class MissingPackage(ImportError):
    """A function needs a Python package that is not installed. The message
    states which one, and how it is installed."""


# The exception of an exit code whose message contains the words.
KINDS = [(2, "", UseError), (3, "", InputError),
         (4, "No such file or directory", MissingFile),
         (4, "exists", ExistingFile), (4, "", FileError), (5, "", DeviceError)]


def error_of(code: int, command: Sequence[str], words: str) -> Error:
    """The exception that tells of this failure."""
    kind = next((kind for its_code, part, kind in KINDS
                 if its_code == code and part in words), Error)
    return kind(code, command, words)


def tool_path() -> str:
    """The path of the tool: $FRAGSIM, or the one that is installed inside this
    package. FileNotFoundError if there is none.

        subprocess.run([fragsim.tool_path(), "help"])
    """
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin",
                          "fragsim")
    chosen = os.environ.get("FRAGSIM") or inside
    if not os.access(chosen, os.X_OK):
        raise FileNotFoundError(
            f"{chosen}: expected the fragsim tool, found no program; install "
            "the package with pip, or set FRAGSIM to the path of the tool")
    return chosen


def finish(child: subprocess.Popen[bytes],
           meter: _progress.Meter | None) -> tuple[str, str]:
    """Reads both outputs of a child to their ends. On an exception, such as
    KeyboardInterrupt, the child is interrupted first, so that it removes its
    temporary files, and killed if it does not end in time."""
    with child:
        try:
            out, words = meter.follow(child) if meter else child.communicate()
        except BaseException:
            child.send_signal(signal.SIGINT)
            try:
                child.communicate(timeout=SECONDS_TO_CLEAN_UP)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
    return out.decode("utf-8", "replace"), words.decode("utf-8", "replace")


def call(command: Sequence[str], fine: Sequence[int] = (0,),
         meter: _progress.Meter | None = None) -> tuple[str, str]:
    """Runs a command and returns stdout and stderr; `meter` shows how far it is.
    Error if its exit code is not in `fine`; KeyboardInterrupt if the user
    interrupted the tool."""
    line = [tool_path(), *command]
    child = meter.start(line) if meter else subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    out, words = finish(child, meter)
    if child.returncode in (INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    if child.returncode not in fine:
        raise error_of(child.returncode, command, words)
    return out, words


def run(*command: object) -> str:
    """Runs any command and returns the text that it prints on stdout.

        print(fragsim.run("top", "run.pickle", "--by", "stack"))
    """
    return call([os.fspath(word) if isinstance(word, os.PathLike) else str(word)
                 for word in command])[0]


def version() -> str:
    """The version of the tool, such as "0.2.0"."""
    return run("--version").split()[1]
