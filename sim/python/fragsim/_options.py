"""The options of a command as keyword arguments. The tool itself says which
options a command has, so no list of them is kept here."""
from __future__ import annotations

import difflib
import functools
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from . import _tool

Path = Union[str, "os.PathLike[str]"]
Value = Union[str, int, float, "os.PathLike[str]"]
Option = Union[Value, Iterable[Value], None]

# An option in the help: its name, and its value, if it has one.
ROW = re.compile(r"^ {2,6}(?:-\w, )?--([\w-]+)(?:=(\S+))?", re.M)
# What the package chooses itself.
TAKEN = {"json", "quiet", "color", "help", "usage"}
# Several values read better in the plural.
PLURALS = {"policies": "policy", "capacities": "capacity", "edits": "edit",
           "process_limits": "process_limit", "params": "param"}


class Kind(NamedTuple):
    """What an option takes: `value` as the help names it, or None of a switch;
    whether several values are joined by commas or repeat the option."""
    value: str | None
    joined: bool


@functools.lru_cache(maxsize=None)
def _known(tool: str, command: str) -> dict[str, Kind]:
    rows = ROW.findall(_tool.run(command, "--help"))
    return {name.replace("-", "_"):
            Kind(value.split(",")[0] or None,
                 re.fullmatch(r"[A-Z]+,\.\.\.", value) is not None)
            for name, value in rows if name not in TAKEN}


def known(command: str) -> dict[str, Kind]:
    """The keyword arguments of a command."""
    return _known(_tool.tool_path(), command)


def text(value: Any, kind: Kind) -> str:
    """A value as the command line writes it: a whole number of a size is one of
    bytes, and an infinite number is `inf`."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return value
    number = float(value)
    if math.isinf(number):
        return "inf"
    if kind.value == "SIZE":
        if number != int(number):
            raise ValueError(f"expected a whole number of bytes, found {value!r}; "
                             "a share of the peak is written as \"0.9x\"")
        return f"{int(value)}B"
    return str(value)


def _words(name: str, value: Any, kind: Kind) -> list[str]:
    option = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if kind.value is None or value is True:
        if kind.value is not None or value is not True:
            raise TypeError(f"{name}: expected " + (
                f"a value ({kind.value})" if kind.value else "True or False") +
                f", found {value!r}")
        return [option]
    several = [value] if isinstance(value, (str, os.PathLike)) or \
        not isinstance(value, Iterable) else list(value)
    texts = [text(one, kind) for one in several]
    if kind.joined and texts:
        texts = [",".join(texts)]
    return [f"{option}={one}" for one in texts]


def words(command: str, options: Mapping[str, Any]) -> list[str]:
    """The options as arguments of the command, named as in `fragsim help
    COMMAND` with _ for -. True is a switch; None and False are no option; a list
    is several values. TypeError if the command has no such option."""
    of = known(command)
    made: list[str] = []
    given: set[str] = set()
    for name, value in options.items():
        one = PLURALS.get(name, name) if name not in of else name
        if one not in of:
            near = difflib.get_close_matches(
                name, [*of, *(p for p in PLURALS if PLURALS[p] in of)], n=1)
            raise TypeError(
                f"fragsim.{command}() has no option {name!r}" +
                (f"; did you mean {near[0]!r}?" if near else ";") +
                " the options are " + ", ".join(sorted(of)))
        if one in given:
            raise TypeError(f"fragsim.{command}() got {one!r} twice: as {name!r} too")
        given.add(one)
        made += _words(one, value, of[one])
    return made
