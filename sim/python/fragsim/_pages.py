"""What a notebook shows: pages and figures."""
from __future__ import annotations

import html
import json
import os
import re
import shlex
import weakref
from collections.abc import Mapping
from typing import Any

from . import _inputs, _options, _progress, _tool, _verbs

# A command line on a page of triage.
COMMAND = re.compile(r'<pre class="rows"><span>fragsim (.*)')
DRAWN = ("-o",)  # what the command of a part draws


class Picture:
    """A figure as SVG, which Jupyter shows. `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


class Page:
    """A page, which Jupyter shows. `html` is its text, and `height` that of its
    frame in a notebook, in pixels. Of triage, `verdict` is its JSON: what happened,
    what to do, how sure that is; and each command on the page is an attribute: its
    JSON, as fragsim.answer returns it, computed when it is first read.

        page = fragsim.triage("oom.pickle")
        page.verdict["action"]["text"]
        page.explain["results"][0]["cause"]
        page.tune.rows()
    """

    def __init__(self, text: str, files: _inputs.Files) -> None:
        self.html = text
        self.height = 800
        self.verdict: dict[str, Any] = {}
        weakref.finalize(self, files.close)  # the inputs of the commands
        self._lines: dict[str, list[str]] = {}
        for line in COMMAND.findall(text):
            verb, *words = shlex.split(html.unescape(line))
            if verb in _verbs.VERBS:
                self._lines.setdefault(verb, words)

    def save(self, path: _options.Path) -> None:
        """Writes the page to a file; an existing one is overwritten."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" '
                f'height="{self.height}" style="border:0"></iframe>')

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._lines]

    def __getattr__(self, name: str) -> _verbs.Answer:
        lines = self.__dict__.get("_lines", {})
        if name not in lines:
            raise AttributeError(f"the page has no {name!r}; it has html" +
                                 "".join(f", {verb}" for verb in lines))
        words = lines[name]
        kept = [word for before, word in zip(["", *words], words)
                if word not in DRAWN and before not in DRAWN]
        found = _verbs.parsed(name, kept)
        setattr(self, name, found)
        return found


def _page(command: str, inputs: Any, progress: bool,
          options: Mapping[str, Any]) -> Page:
    files = _inputs.Files()
    try:
        path = os.fspath(options.get("output") or files.output(".html"))
        if not path.endswith(".html"):
            raise ValueError(f"output: expected a name that ends in .html, found {path!r}")
        answer = files.output(".json")
        meter = _progress.meter() if progress else None
        _tool.call([command, "--color=never" if meter else "--quiet",
                    *_options.words(command, {**options, "output": path}),
                    *(["--json", answer] if command == "triage" else []), "--",
                    *files.paths(inputs)], meter=meter)
        with open(path, encoding="utf-8") as file:
            page = Page(file.read(), files)
        if command == "triage":
            with open(answer, encoding="utf-8") as file:
                page.verdict = json.load(file)["results"][0]
        return page
    except BaseException:
        files.close()
        raise


def triage(snapshot: _inputs.Input, *, progress: bool = True,
           **options: _options.Option) -> Page:
    """All answers about a failed job, as a page that a notebook shows.

        page = fragsim.triage("oom.pickle")
        page                                     # in a notebook: the page
        page.verdict["action"]["text"]           # what to do
        page.tune["results"][0]["chosen"]        # the JSON of a command on it
        page.save("review.html")

    The commands on the page, such as explain, fit, top, steps and summary, are
    attributes. Options: print(fragsim.run("help", "triage")).
    """
    return _page("triage", snapshot, progress, options)


def report(*results: _inputs.Input, progress: bool = True,
           **options: _options.Option) -> Page:
    """A review of policies, from result files, as a page that a notebook shows.

        fragsim.report("results.h5").save("review.html")

    Options: print(fragsim.run("help", "report"))
    """
    return _page("report", results, progress, options)


def plot(source: _inputs.Input, figure: str, output: _options.Path | None = None,
         **options: _options.Option) -> Picture | Page | str:
    """Draws a figure of `fragsim help plot` of one or more result files, for which
    gnuplot must be installed, or `map`, the page of a trace.

        fragsim.plot("results.h5", "timeline")                  # in a notebook
        fragsim.plot("results.h5", "compare", "compare.pdf")

    With `output`, a path that ends in .svg, .png or .pdf (for `map` .html),
    writes the file and returns its path (force=True overwrites an existing one);
    without it, returns a Picture, or for `map` a Page. `capacity`, `policy` and
    `trace` choose runs. Error if the tool cannot draw it.
    """
    is_page = figure == "map"
    with _inputs.Files() as files:
        path = os.fspath(output or files.output(".html" if is_page else ".svg"))
        _tool.call(["plot", "--quiet",
                    *_options.words("plot", {**options, "output": path}), "--",
                    *files.paths(source), figure])
        if output:
            return path
        with open(path, encoding="utf-8") as file:
            return Page(file.read(), _inputs.Files()) if is_page else Picture(file.read())
