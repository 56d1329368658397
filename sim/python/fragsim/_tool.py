"""Runs the fragsim tool as a child process and turns its failures into
exceptions. Everything that the package computes, the tool computes."""
from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any, Union

Path = Union[str, "os.PathLike[str]"]
Value = Union[str, int, float, "os.PathLike[str]"]
Option = Union[Value, Sequence[Value], None]

INTERRUPTED = 130
ANSWER_IS_NO = 1
SECONDS_TO_CLEAN_UP = 10


class Error(Exception):
    """A command of the tool failed.

    `code` is its exit code (`fragsim help exits`), `command` its arguments,
    `words` what it printed on stderr.
    """

    def __init__(self, code: int, command: Sequence[str], words: str) -> None:
        super().__init__(words.strip() or
                         f"fragsim {' '.join(command)}: exit code {code}")
        self.code = code
        self.command = list(command)
        self.words = words

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.command, self.words)


class MissingPackage(ImportError):
    """A function needs a Python package that is not installed. The message
    states which one, and how it is installed."""


def tool_path() -> str:
    """The path of the tool: $FRAGSIM, or the one that is installed inside this
    package. FileNotFoundError if there is none."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin",
                          "fragsim")
    chosen = os.environ.get("FRAGSIM") or inside
    if not os.access(chosen, os.X_OK):
        raise FileNotFoundError(
            f"{chosen}: expected the fragsim tool, found no program; install "
            "the package with pip, or set FRAGSIM to the path of the tool")
    return chosen


def finish(child: subprocess.Popen[str]) -> tuple[str, str]:
    """Reads both outputs of a child to their ends. On an exception, such as
    KeyboardInterrupt, the child is interrupted first, so that it removes its
    temporary files, and killed if it does not end in time."""
    with child:
        try:
            return child.communicate()
        except BaseException:
            child.send_signal(signal.SIGINT)
            try:
                child.communicate(timeout=SECONDS_TO_CLEAN_UP)
            except subprocess.TimeoutExpired:
                child.kill()
            raise


def call(command: Sequence[str], fine: Sequence[int] = (0,)) -> tuple[str, str]:
    """Runs a command and returns stdout and stderr. Error if its exit code is
    not in `fine`; KeyboardInterrupt if the user interrupted the tool."""
    child = subprocess.Popen([tool_path(), *command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             encoding="utf-8", errors="replace")
    out, words = finish(child)
    if child.returncode in (INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    if child.returncode not in fine:
        raise Error(child.returncode, command, words)
    return out, words


def text(value: Value) -> str:
    """A value as the command line writes it; an infinite number is `inf`."""
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def texts(values: Option) -> list[str]:
    """One value or several, as texts; None is no value."""
    if values is None:
        return []
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [text(value) for value in values]
    return [text(values)]


def arguments(inputs: Sequence[Path], options: dict[str, Option]) -> list[str]:
    """A command's arguments. An option is named as in `fragsim help COMMAND`,
    with _ for -. True is an option without a value; None and False are none;
    several values repeat the option."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not False:
            words += [f"{option}={one}" for one in texts(value)]
    return [*words, "--", *(os.fspath(path) for path in inputs)]


def answer(command: str, *inputs: Path, **options: Option) -> dict[str, Any]:
    """Runs a command that has the option --json, and returns that JSON:
    `schema_version`, `tool`, `command` and `results`, a list. Sizes are bytes;
    units are in `fragsim help results`. An answer that is "no" (exit code 1)
    is an answer. Error if the command fails; options as in `fragsim help
    COMMAND`, with _ for -.

        fragsim.answer("validate", "run.pickle")["results"][0]
    """
    line = [command, "--quiet", "--json=-", *arguments(inputs, options)]
    out, words = call(line, fine=(0, ANSWER_IS_NO))
    if not out:
        raise Error(ANSWER_IS_NO, line, words)
    found: dict[str, Any] = json.loads(out)
    return found


def run(*command: Value) -> str:
    """Runs any command and returns the text that it prints on stdout.

        print(fragsim.run("top", "run.pickle", "--by", "stack"))
    """
    return call([text(word) for word in command])[0]
