#!/usr/bin/env python3
"""sentences.py [FOLDER]: the page of claims, and the page of decisions.

pages/sentences.md has every sentence of the paper's abstract and introduction, each number
in it with the data file that it is computed from and the command that makes this file; and
the statements without a number that macros.py holds against the data. pages/decisions.md is
text/decisions.md with its numbers. Both go to pages/, or to FOLDER;
tests/structure/check_paper.py makes them again and compares.
"""
import json
import os
import re
import sys
import tempfile

import macros
from places import PAGES, PAPER

PARTS = ("abstract.tex", "question.tex")
HEAD = """# The paper's first two pages, sentence by sentence

Made by `paper/tables/sentences.py`; do not edit. Each sentence of the abstract and of the
introduction is here. A number is computed by `paper/tables/macros.py` from the file beside it
(`macros.py FOLDER --list` prints all), and this file is made by the command in the last
column. A sentence without a number is an argument, a definition or a pointer; where it states
a fact about data, macros.py checks it, and the list at the end has it.
"""
CHECKED = """
## Statements that are checked

macros.py stops if one of these does not hold. They are in the words of the check.

| statement | file |
|---|---|
"""
# The beginning of a sentence without a number, and the check of macros.py that holds it.
HELD = {
    "These runs were known": "a constant factor predicts survival as often as the replay",
    "We prove that an allocator": "no need is above the law by runs",
    "For practice, expandable segments": "on steps it did not see, a search saves no more than one switch",
    "The job that opens this paper": "the job lived with smaller pages and on expandable, as predicted",
    "We recorded that run: it dies": "with the switch the job died too",
    "The replay of an unlimited run": "the replay says so",
    "Under this limit on a GPU": "the job lived with smaller pages and on expandable, as predicted",
    "Where a prediction fails": "each wrong prediction has a reason",
    "*An anomaly*": "remap is monotone on each recording",
}
# Files whose first lines do not name the script that makes them.
MAKERS = {"paper/pages/explain.md": "paper/tables/explain_table.py"}
COMMAND = r"(?:paper/(?:tables|gpu|upstream)|oracle)/\w+\.(?:py|sh)"


def plain(text, numbers):
    """TeX as Markdown."""
    text = re.sub(r"\\N\{([^}]*)\}", lambda m: numbers[m[1]][0], text)
    for pattern, new in (
            (r"\\(?:emph|textbf)\{([^{}]*)\}", r"*\1*"), (r"\\p\{([^}]*)\}", r"`\1`"),
            (r"~?\\cite\{[^}]*\}", ""), (r"\(?Sections?~\\ref\{[^}]*\}\)?", "(a section)"),
            (r"Figure~\\ref\{[^}]*\}", "The figure"), (r"\\paragraph\{[^}]*\}|\\item\b", ""),
            (r"\\,\\%", " %"), (r"\\%", "%"), (r"\{,\}", ","), (r"~", " "), (r"\$-\$", "-"),
            (r"\$\+\$", "+"), (r"``|''", '"'), (r"\s+", " ")):
        text = re.sub(pattern, new, text)
    return text.strip()


def sentences(file):
    """The sentences of a part, without figures, headings and labels."""
    with open(os.path.join(PAPER, "text", file), encoding="utf-8") as source:
        text = re.sub(r"(?m)(?<!\\)%.*$", "", source.read())
    text = re.sub(r"(?s)\\begin\{figure\}.*?\\end\{figure\}", "", text)
    text = re.sub(r"\\(section|label|begin|end|setlength)\{[^}]*\}(\{[^}]*\})?|\\noindent", "", text)
    for part in re.split(r"\n\s*\n|\\item\b|\\paragraph\{[^}]*\}", text):
        yield from re.split(r"(?<=[.?!])(?:'')?\s+(?=[A-Z`\\]|fragsim)", part.strip())


def maker(file):
    """The command that makes a file."""
    if file in MAKERS:
        return MAKERS[file]
    if not file.startswith("data/"):
        return "a constant in the source"
    with open(os.path.join(PAPER, file), encoding="utf-8") as source:
        first = source.readline() if file.endswith(".jsonl") else \
            " ".join(l for l in source if l.startswith("#"))
    if file.endswith(".jsonl"):
        first = json.loads(first).get("command", first)
    found = list(dict.fromkeys(re.findall(COMMAND, first)))
    if not found:
        raise SystemExit(f"sentences: {file} does not say what makes it")
    return ", ".join(found)


def rows(file, n, used):
    """The cells of each sentence; adds the beginnings of HELD that occur to `used`."""
    said = dict(n.said)
    for sentence in sentences(file):
        names = list(dict.fromkeys(re.findall(r"\\N\{([^}]*)\}", sentence)))
        text = plain(sentence, n.held)
        if not re.search(r"\w", text):
            continue
        found = [n.held[name][1] for name in names]
        cells = [f"`{name}`" for name in names]
        for begin, check in HELD.items():
            if text.startswith(begin):
                used.append(begin)
                if check not in said:
                    raise SystemExit(f"sentences: macros.py does not check: {check}")
                found.append(said[check])
                cells.append(f"check: {check}")
        files = list(dict.fromkeys(f for one in found for f in one.split(", ")))
        makers = dict.fromkeys(f"`{maker(f)}`" if "/" in maker(f) else maker(f) for f in files)
        yield (text.replace("|", "\\|"), ", ".join(cells),
               ", ".join(f"`{f}`" for f in files), "; ".join(makers))


def claims_page(n):
    lines, used = [HEAD], []
    for file in PARTS:
        lines += [f"## {file.removesuffix('.tex')}\n", "| sentence | numbers | from | made by |",
                  "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in rows(file, n, used)]
        lines.append("")
    if sorted(used) != sorted(HELD):
        raise SystemExit(f"sentences: no sentence begins with {sorted(set(HELD) - set(used))}")
    checked = "\n".join(f"| {s} | `{f}` |" for s, f in n.said)
    return "\n".join(lines).rstrip("\n") + "\n" + CHECKED + checked + "\n"


def decisions_page(n):
    with open(os.path.join(PAPER, "text", "decisions.md"), encoding="utf-8") as source:
        text = source.read()
    return re.sub(r"\\N\{([^}]*)\}", lambda m: plain(n.held[m[1]][0], n.held), text)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else PAGES
    with tempfile.TemporaryDirectory() as out:
        n = macros.compute(out)
    for page, text in (("sentences.md", claims_page(n)), ("decisions.md", decisions_page(n))):
        with open(os.path.join(folder, page), "w", encoding="utf-8") as out:
            out.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
