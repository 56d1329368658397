#!/usr/bin/python3
"""check_session.py [--update]: runs tests/examples/session.ipynb cell by cell, as
Jupyter does, and compares what it prints and shows with the outputs in the file;
--update writes them. Blanks are not compared: releases of pandas align columns
differently. Skipped (77) without pandas or numpy.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import ast
import contextlib
import html
import io
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need, skip

NOTEBOOK = os.path.join(ROOT, "tests", "examples", "session.ipynb")
PAGE = "<iframe of {} headings>"


def shown(value):
    """What a notebook shows of the last value of a cell, as text. A page is too
    long for the file of a notebook: only its headings are counted."""
    page = getattr(value, "_repr_html_", lambda: "")() or ""
    if page.startswith("<iframe srcdoc="):
        return PAGE.format(html.unescape(page).count("<h2"))
    return repr(value)


def run_cell(source, names):
    """What the cell prints and shows."""
    lines = ast.parse(source).body
    last = lines.pop() if isinstance(lines[-1], ast.Expr) else None
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        # pylint: disable-next=exec-used
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        if last:
            # pylint: disable-next=eval-used
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                print(shown(value))
    return text.getvalue()


def stored(cell):
    return "".join(line for output in cell["outputs"] for line in output["text"])


def main():
    need(FRAGSIM)
    os.environ["FRAGSIM"] = FRAGSIM
    sys.path.insert(0, os.path.join(ROOT, "sim", "python"))
    sys.dont_write_bytecode = True
    for name in "pandas", "numpy":
        try:
            __import__(name)
        except ImportError:
            skip(f"{name} is missing")
    with open(NOTEBOOK, encoding="utf-8") as file:
        notebook = json.load(file)
    os.chdir(os.path.dirname(NOTEBOOK))
    names = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        text = run_cell("".join(cell["source"]), names)
        if "--update" in sys.argv:
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream",
                                "text": text.splitlines(True)}] if text else []
        assert stored(cell).split() == text.split(), \
            f"cell {number} shows\n{text}and not\n{stored(cell)}"
    if "--update" in sys.argv:
        with open(NOTEBOOK, "w", encoding="utf-8") as file:
            json.dump(notebook, file, indent=1)
            file.write("\n")
    print(f"{len(cells)} cells show what the notebook says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
