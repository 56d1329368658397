"""The commands of the tool as functions. VERBS has all that distinguishes them;
each is made from its row."""
from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from . import _inputs, _options, _progress, _tables, _tool

if TYPE_CHECKING:
    import pandas

ANSWER_IS_NO, NOT_KNOWN = 1, 6


class Verb(NamedTuple):
    """`tables` are the places of the tables in the JSON, the default first: the
    first that the answer has (_tables.rows explains them). `output` is the end
    of the name of an output that the command cannot do without."""
    text: str
    example: str
    tables: list[str]
    output: str = ""


VERBS = {
    "replay": Verb(
        "Replays traces against policies, each at every capacity: one row for each "
        "run. num_ooms counts the requests that failed: a result, not an error. "
        "With output=\"results.h5\" the runs are also written to a file.",
        'replay(["a.pickle", "b.pickle"], policies=["torch", "best_fit"],\n'
        '                   capacity=["24GiB", "inf"])',
        ["results"]),
    "fit": Verb(
        "Finds what each policy needs to survive each trace. need_bytes is the least "
        "bound from which on nothing fails, found to step_bytes, and NaN if there is "
        "none.",
        'fit("oom.pickle", policies=["torch", "best_fit"]).need_bytes',
        ["results", "results.frontier"]),
    "tune": Verb(
        "Finds the PYTORCH_CUDA_ALLOC_CONF that a job needs: one row for each setting "
        "that was tried. `chosen` has the one to export, and no row if none is known "
        "to be enough; `best` is then the one that may be.",
        'tune("oom.pickle", capacity="24GiB", table="chosen").settings',
        ["results.ladder", "results.chosen", "results.best", "results.cases", "results"]),
    "explain": Verb(
        "Explains why a request of a recorded job failed: one row for each device, "
        "with the cause in one word (\"none\" if no request failed), the evidence in "
        "a sentence and what to do as advice_text. `changes` has all that "
        "would have served it. The counters in NAME.json beside NAME.pickle, as "
        "record writes them, are read too.",
        'explain(torch.cuda.memory._snapshot()).evidence[0]',
        ["results", "results.changes", "results.spaces", "results.pins"]),
    "top": Verb("Finds what holds memory at one moment of a trace.",
                'top("oom.pickle", by="stack", at="oom")',
                ["results.groups", "results"]),
    "steps": Verb("Finds what each step of a trace needs.",
                  'steps("run.pickle").peak_reserved_bytes.max()',
                  ["results.parts", "results"]),
    "leaks": Verb(
        "Finds the places that keep more and more memory: one row for each. "
        "`results` has the verdict.",
        'leaks("run.pickle", capacity="80GiB", table="results").verdict[0]',
        ["results.leaks", "results"]),
    "summary": Verb(
        "Makes PyTorch's memory summary at any event: one row for each measure and "
        "pool. `results` has the fragmentation.",
        'summary("run.pickle", at="peak")',
        ["results.stats.{measure}.{pool}", "results"]),
    "diff": Verb("Finds what grew between two traces or two result files.",
                 'diff("before.pickle", "after.pickle")',
                 ["results.changes", "results"]),
    "validate": Verb(
        "Compares the simulated PyTorch allocator with the recorded one.",
        'validate("run.pickle").verdict',
        ["results", "results.stats"]),
    "info": Verb("Reads what traces contain: one row for each device.",
                 'info("run.pickle").T',
                 ["results.devices", "results.devices.by_pool", "results"]),
    "policies": Verb(
        "Lists the policies, or one policy; of \"torch:SETTINGS\", what each release "
        "of PyTorch makes of the settings.",
        'policies("torch:max_split_size_mb:64").status[0]',
        ["policies", "policies.params", "results.settings",
         "results.settings.releases", "results"]),
    "sweep": Verb(
        "Replays a grid of traces, edits, policies and capacities on all "
        "processors: one row for each cell.",
        'sweep("run.pickle", policies="best_fit",\n'
        '                  params="best_fit:segment=2MiB..64MiB*2")',
        ["results"], ".h5"),
    "compare": Verb("Compares replays on a GPU with replays on the simulated device.",
                    'compare("run.pickle", policies=["torch", "remap"])',
                    ["results", "results.calls"]),
}


def name_of(place: str) -> str:
    """The name of a table, by its place."""
    words = [word for word in place.split(".") if not word.startswith("{")]
    return words[-1]


def places_of(command: str, table: str | None) -> list[str]:
    """The places of a table, or of all tables of the command, without a name.
    ValueError if it has no such table."""
    places = VERBS[command].tables if command in VERBS else ["results"]
    found = [one for one in places if table in (None, name_of(one))]
    if not found:
        raise ValueError(f"fragsim.{command} has no table {table!r}; it has "
                         + ", ".join(map(name_of, places)))
    return found


class Answer(dict[str, Any]):
    """The JSON of a command: `schema_version`, `tool`, `command` and `results`.
    Sizes are bytes; units are in `fragsim help results`.

        fragsim.answer("tune", "oom.pickle").table("cases")
    """

    verb: str = ""

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """A table as a list of dicts; the first of the command by default."""
        places = places_of(self.verb, table)
        place = next((one for one in places if _tables.has(self, one)), places[0])
        return _tables.rows(self, place, places_of(self.verb, None))

    def table(self, table: str | None = None) -> pandas.DataFrame:
        """The same as a DataFrame."""
        return _tables.frame(self.rows(table))


def parsed(command: str, words: list[str],
           meter: _progress.Meter | None = None) -> Answer:
    """The JSON of a command with these arguments."""
    line = [command, "--json=-", *words]
    out, found = _tool.call(line, fine=(0, ANSWER_IS_NO, NOT_KNOWN), meter=meter)
    if not out:
        raise _tool.error_of(ANSWER_IS_NO, line, found)
    made = Answer(json.loads(out))
    made.verb = command
    return made


def answer(command: str, *inputs: _inputs.Input, progress: bool = True,
           **options: _options.Option) -> Answer:
    """Runs a command that has the option --json, and returns that JSON as a dict.
    Its tables are those of the function of the same name; no other package is
    needed. An answer that is "no" (exit code 1) is an answer. Error if the
    command fails; options as in `fragsim help COMMAND`, with _ for -.

        found = fragsim.answer("explain", "oom.pickle")
        found["results"][0]["cause"]
        found.rows("changes")
    """
    with _inputs.Files() as files:
        suffix = VERBS[command].output if command in VERBS else ""
        if suffix and options.get("output") is None:
            options = {**options, "output": files.output(suffix)}
        words = [*_options.words(command, options), "--", *files.paths(inputs)]
        meter = _progress.meter() if progress else None
        # A quiet tool draws no bar, and a terminal would get colours.
        return parsed(command, ["--color=never" if meter else "--quiet", *words], meter)


class Function(Protocol):
    """A command as a function."""

    def __call__(self, *inputs: _inputs.Input, table: str | None = None,
                 progress: bool = True,
                 **options: _options.Option) -> pandas.DataFrame: ...


def function(command: str) -> Function:
    """The function of a command: its table as a DataFrame, and the whole JSON in
    attrs["answer"]."""
    def made(*inputs: _inputs.Input, table: str | None = None, progress: bool = True,
             **options: _options.Option) -> pandas.DataFrame:
        _tables.package("pandas", f"fragsim.{command}",  # before the work
                        f"; fragsim.answer({command!r}, ...) needs no package")
        places_of(command, table)
        found = answer(command, *inputs, progress=progress, **options)
        frame = found.table(table)
        frame.attrs["answer"] = found
        return frame

    verb = VERBS[command]
    tables = ", ".join(map(name_of, verb.tables))
    made.__name__ = made.__qualname__ = command
    made.__module__ = "fragsim"
    made.__doc__ = (f"{textwrap.fill(verb.text, 76)}\n\n    fragsim.{verb.example}\n\n"
                    f"Tables: {tables}.\n"
                    f'Options: print(fragsim.run("help", "{command}"))')
    return made
