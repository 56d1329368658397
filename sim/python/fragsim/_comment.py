"""The comment of fragsim.gate: what a comparison found, as Markdown. Every text
that comes from an input stands in a code span or a fence, where it is neither
markup nor a mention."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
SITES_MOST = 5
FRAMES_MOST = 40
TEXT_MOST = 200
NO_STACK = "unknown"  # the tool's word for a block without frames


class Measure(NamedTuple):
    """A number of both runs, in bytes; None: not known."""
    name: str
    before: int | None
    after: int | None
    fails: bool


class Bound(NamedTuple):
    """A memory: whether the run of the baseline fits it, and this one."""
    name: str
    fits_before: bool
    fits_now: bool


class Found(NamedTuple):
    """All that the gate found. `changes` are those of `fragsim diff`, `frames`
    those of the largest, `leaks` the rows of `fragsim leaks`."""
    measures: list[Measure]
    fail_over: str
    bounds: list[Bound]
    asked: list[str]  # names of bounds that must be met
    by: str
    changes: list[dict[str, Any]]
    frames: list[dict[str, Any]]
    leaks: list[dict[str, Any]]
    leak_fails: bool
    leaked_before: bool  # as fast, in the baseline
    notes: list[str]
    update: str  # the command that accepts the change

    def reasons(self) -> list[str]:
        """Why the gate says no; none if it does not."""
        made = [f"{one.name}: {change(one)}, more than {self.fail_over}"
                for one in self.measures if one.fails]
        made += [f"no longer fits {code(one.name)}" if one.fits_before else
                 f"does not fit {code(one.name)}, nor did the baseline"
                 for one in self.bounds
                 if one.name in self.asked and not one.fits_now]
        return made + ["memory grows from step to step"] * self.leak_fails


def size(count: float) -> str:
    """Bytes as the tool prints them, such as "1.279 GiB"."""
    unit = 0
    while abs(count) >= 1024 and unit + 1 < len(UNITS):
        count /= 1024
        unit += 1
    return f"{count:.3f}".rstrip("0").rstrip(".") + " " + UNITS[unit]


def signed(count: int) -> str:
    """A change in bytes."""
    return ("+" if count > 0 else "") + size(count)


def change(one: Measure) -> str:
    """The change of a measure, in bytes and in percent."""
    if one.before is None or one.after is None:
        return "not known"
    share = f" ({100 * (one.after / one.before - 1):+.2f} %)" if one.before else ""
    return signed(one.after - one.before) + share


def shown(text: str) -> str:
    """The text on one line, without characters that cannot be seen."""
    plain = "".join(one if one.isprintable() else "?" for one in text)
    return plain if len(plain) <= TEXT_MOST else plain[:TEXT_MOST] + "..."


def code(text: str) -> str:
    """The text as a code span that may stand in a cell of a table."""
    plain = shown(text).replace("`", "'").replace("|", "\\|")
    return "`" + (plain.strip() or "?") + "`"


def fence(lines: Sequence[str]) -> list[str]:
    """The lines as a block of code; each has other characters than backticks."""
    return ["```text", *map(shown, lines), "```"]


def table(head: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; the first column is text, the others are numbers."""
    cells = head.split("|")
    return ["| " + " | ".join(row) + " |" for row in
            [cells, ["---", *["---:"] * (len(cells) - 1)], *rows]]


def marker(name: str) -> str:
    """The first line of a comment, by which the next run finds it."""
    return f"<!-- fragsim gate: {re.sub(r'[^A-Za-z0-9./_]', '_', name)} -->"


def grown(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups that grew, the largest growth first."""
    def by(one: dict[str, Any]) -> int:
        return int(one["held_bytes_after"] - one["held_bytes_before"])

    return sorted((one for one in changes if by(one) > 0), key=by, reverse=True)


def _sites(found: Found) -> list[str]:
    rows = grown(found.changes)[:SITES_MOST]
    if not rows:
        return ["No call site holds more than in the baseline: the same blocks come "
                "in another order, or with other lifetimes."]
    lines = [f"What grew most is {code(rows[0]['name'])}.", ""]
    lines += table(found.by + "|before|now|change|blocks", [
        [code(one["name"]), size(one["held_bytes_before"]),
         size(one["held_bytes_after"]),
         signed(one["held_bytes_after"] - one["held_bytes_before"]),
         f"{one['blocks_after'] - one['blocks_before']:+d}"] for one in rows])
    if any(one["name"] == NO_STACK for one in rows):
        lines += ["", "Blocks without a stack were allocated by the backward pass, "
                  "which PyTorch runs in a thread of its own."]
    return lines


def _stack(found: Found) -> list[str]:
    if not found.frames:
        return []
    lines = [f"{one['function']} ({one['file']}:{one['line']})"
             for one in found.frames[:FRAMES_MOST]]
    return ["", "<details><summary>The stack of the largest, innermost first"
            "</summary>", "", *fence(lines), "", "</details>"]


def _leaks(found: Found) -> list[str]:
    if not found.leaks:
        return []
    head = "Memory that grows from step to step" + (
        "" if found.leak_fails else ", as in the baseline" if found.leaked_before
        else ", too little to fail")
    return ["", head + ":", "", *table("site|a step|blocks kept", [
        [code(f"{one['function']} ({one['file'].rpartition('/')[2]}:{one['line']})"),
         signed(int(one["growth_bytes_per_step"])), str(one["num_blocks"])]
        for one in found.leaks[:SITES_MOST]])]


def _bounds(found: Found) -> list[str]:
    lost = [code(one.name) for one in found.bounds
            if one.fits_before and not one.fits_now and one.name not in found.asked]
    return ["", "GPUs that it no longer fits: " + ", ".join(lost) + "."] if lost else []


def comment(name: str, found: Found) -> str:
    """The whole comment about a comparison."""
    reasons = found.reasons()
    lines = [marker(name),
             "### GPU memory: " + ("this change needs more" if reasons
                                   else "within the limits"), "",
             *table("|baseline|now|change", [
                 [one.name, *("not known" if n is None else size(n)
                              for n in (one.before, one.after)),
                  f"**{change(one)}**" if one.fails else change(one)]
                 for one in found.measures])]
    lines += ["", *(f"- {reason}" for reason in reasons)] if reasons else []
    lines += _bounds(found)
    if reasons:
        lines += ["", *_sites(found), *_stack(found)]
    lines += _leaks(found)
    lines += ["", *(f"- {note}" for note in found.notes)] if found.notes else []
    if reasons:
        lines += ["", "If the change is meant, store the new baseline:", "",
                  *fence([found.update])]
    return "\n".join(lines) + "\n"


def first(name: str, why: str, measures: list[Measure], update: str) -> str:
    """The comment of a run that has no baseline."""
    return "\n".join([
        marker(name), "### GPU memory: there is no baseline", "",
        f"{why}, so nothing was compared. This run:", "",
        *table("|now", [[one.name, "not known" if one.after is None
                         else size(one.after)] for one in measures]), "",
        "Store it as the baseline, and commit the file:", "",
        *fence([update])]) + "\n"
