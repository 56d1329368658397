#!/usr/bin/env python3
"""check_adding.py: ARCHITECTURE.md says that a policy, a generator, an input
format, an output format, a figure or a command is one file and one line, and
names the five places of a measure. This check adds one of each to a copy of the
tree, in the places that ARCHITECTURE.md names, compiles the files that changed, links them before the libraries of the build folder, and uses what was
added. Then it forgets each part: either the linker or a rule below must say so.
The rules also judge the tree itself:
  - what a file defines has its line in the list;
  - a figure has its script in plots/;
  - the table of ARCHITECTURE.md names each place in which one is added;
  - a member of struct frag_summary has its row in sim/results/columns.c;
  - the names of the columns are those of the schema version below.
Skipped (77) without a build folder of ninja.
Environment: FRAG_BUILD_DIR (default: build).
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, ROOT

TRACE = os.path.join(ROOT, "traces", "bundled", "two_streams.pt")
# The schema version of result files and the CRC-32 of the columns' names. A
# column that is added, removed or renamed raises FRAG_RESULTS_SCHEMA
# (sim/results/results.h) and changes this line.
COLUMNS = ("3.1", 0x7fd514a4)

TOPS = ("sim", "policies", "traces", "real")

# What defines one of a kind, as a regular expression, and its list.
LISTS = {
    "policies/policy_list.h": r"^const struct frag_policy frag_policy_(\w+) = ",
    "traces/gen/gen_list.h":
        r"^const struct frag_generator frag_generator_(\w+) = ",
    "traces/import/import_list.h":
        r"^const struct frag_importer frag_importer_(\w+) = ",
    "sim/export/export_list.h":
        r"^enum frag_err export_(\w+)\(const struct export_job \*job,"
        r"\s+const char \*path,",
    "sim/cli/figures/figure_list.h": r"^const struct figure figure_(\w+) = ",
    "sim/cli/verbs.h": r"^const struct verb verb_(\w+) = ",
}


def edit(path, *changes):
    """A file with texts replaced; each of them must be there."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for old, new in changes:
        assert old in text, (path, old)
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def new_file(model, path, *changes):
    """A copy of a file of the tree, with texts replaced."""
    return ("file", path, model, changes)


def line(path, text):
    """A line at the end of a list."""
    return ("line", path, None, text)


def change(path, *changes):
    return ("change", path, None, changes)


# kind: the edits, the files to compile besides new ones, a command, and a text
# that it prints.
KINDS = {
    "policy": (
        [new_file("policies/first_fit.c", "policies/probe.c",
                  ("first_fit", "probe")),
         line("policies/policy_list.h", "POLICY(probe)")],
        ["policies/policy_list.c"],
        ["replay", TRACE, "-p", "probe"], "probe"),
    "generator": (
        [new_file("traces/gen/stationary.c", "traces/gen/probe.c",
                  ("stationary", "probe")),
         line("traces/gen/gen_list.h", "GENERATOR(probe)")],
        ["traces/gen/generator.c"],
        ["gen"], "\nprobe "),
    "input format": (
        [new_file("traces/import/import_static.c",
                  "traces/import/import_probe.c",
                  ("frag_importer_static", "frag_importer_probe"),
                  ('.name = "static"', '.name = "probe"'),
                  ('{"id", ', '{"probe", ')),
         line("traces/import/import_list.h", "IMPORTER(probe)")],
        ["traces/import/import_list.c"],
        ["info", "probe.csv"], "probe"),
    "output format": (
        [new_file("sim/export/minimalloc.c", "sim/export/probe.c",
                  ("export_minimalloc", "export_probe")),
         line("sim/export/export_list.h", 'FORMAT(probe, "a probe", 0, 0)')],
        ["sim/export/formats.c", "sim/cli/verbs/verb_export.c"],
        ["export", TRACE, "--to=probe"], "id,lower,upper,size\n"),
    "figure": (
        [new_file("sim/cli/figures/figure_pareto.c",
                  "sim/cli/figures/figure_probe.c", ("pareto", "probe")),
         new_file("plots/pareto.gp", "plots/probe.gp"),
         line("sim/cli/figures/figure_list.h", 'FIGURE(probe, "a probe")')],
        ["sim/cli/figures/figure_list.c", "sim/cli/verbs/verb_plot.c"],
        ["plot", "--help"], "probe"),
    "command": (
        [new_file("sim/cli/verbs/verb_gen.c", "sim/cli/verbs/verb_probe.c",
                  ("verb_gen", "verb_probe"),
                  ('.name = "gen"', '.name = "probe"')),
         line("sim/cli/verbs.h", "VERB(probe)")],
        ["sim/cli/main.c"],
        ["probe"], "stationary"),
}
MEASURE = [
    change("sim/measures.h", ("    uint64_t start;                 /* enum",
                              "    double probe;\n    uint64_t start; /* enum")),
    change("sim/replay/sum.c", ("    s->events = events;",
                                "    s->events = events;\n    s->probe = 0.5;")),
    change("sim/results/columns.c",
           ('    {"need_bytes",',
            '    {"probe", REAL, SUMMARY(probe), "1", "a probe", NULL, NULL},\n'
            '    {"need_bytes",')),
]
MEASURE_PLACES = [path for _, path, _, _ in MEASURE] + [
    "sim/results/results.h", "tests/structure/check_adding.py"]


# -- the rules ----------------------------------------------------------------


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def rows_of(root, path):
    """The words of a list, without its comments."""
    return set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", read(root, path),
                                         flags=re.S)))


def check_lists(root):
    for path, pattern in LISTS.items():
        listed, found = rows_of(root, path), 0
        for name in glob.glob(os.path.join(root, "*", "**", "*.c"),
                              recursive=True):
            if os.path.relpath(name, root).split("/")[0] not in TOPS:
                continue
            for defined in re.findall(pattern, read(root, name), re.M):
                found += 1
                if defined not in listed:
                    yield f"{os.path.relpath(name, root)}: {defined} is " \
                          f"not in {path}"
        if not found:
            yield f"{path}: no file defines one of it"


def check_scripts(root):
    for name in re.findall(r"^FIGURE\((\w+),",
                           read(root, "sim/cli/figures/figure_list.h"), re.M):
        if not os.path.exists(os.path.join(root, "plots", name + ".gp")):
            yield f"the figure {name} has no script plots/{name}.gp"


def members(root):
    """The members of struct frag_summary."""
    text = re.sub(r"/\*.*?\*/", "", read(root, "sim/measures.h"), flags=re.S)
    body = re.search(r"struct frag_summary \{(.*?)\n\};", text, re.S).group(1)
    for declaration in body.split(";"):
        for name in declaration.split(","):
            if name.strip():
                yield re.sub(r"\[.*", "", name).split()[-1]


def check_columns(root):
    text = read(root, "sim/results/columns.c")
    for name in members(root):
        macro = {"calls": "CALLS(", "at_peak": "AT_PEAK(",
                 "start": "ROW(start)"}.get(name, f"SUMMARY({name})")
        if macro not in text:
            yield f"the measure {name} of sim/measures.h is no column of " \
                  "sim/results/columns.c"
    table = text.split("frag_summary_columns[]")[1].split("{NULL, END")[0]
    names = re.findall(r'^    \{"(\w+)", ', table, re.M)
    schema = re.search(r'FRAG_RESULTS_SCHEMA "([^"]+)"',
                       read(root, "sim/results/results.h")).group(1)
    now = (schema, zlib.crc32(" ".join(names).encode()))
    if now != COLUMNS:
        yield f"the columns of results changed: expected {COLUMNS[0]}, " \
              f"{COLUMNS[1]:#x}, found {now[0]}, {now[1]:#x}; raise " \
              "FRAG_RESULTS_SCHEMA and change COLUMNS in check_adding.py"


def check_map():
    """Whether the row of each kind in ARCHITECTURE.md names its places."""
    text = read(ROOT, "ARCHITECTURE.md")
    places = {kind: [path for _, path, _, _ in edits]
              for kind, (edits, _, _, _) in KINDS.items()} | {"measure": MEASURE_PLACES}
    for kind, paths in places.items():
        row = re.search(rf"^\| {kind} \|.*", text, re.M).group()
        for path in paths:
            if path.replace("probe", "NAME") not in row:
                yield f"ARCHITECTURE.md: the row of {kind} lacks {path}"
    for kind, (edits, _, _, _) in KINDS.items():
        lines = [how for how, path, _, _ in edits if not path.startswith("plots")]
        if lines != ["file", "line"]:
            yield f"{kind} is not one file and one line: {lines}"


def judge(root):
    return [*check_lists(root), *check_scripts(root), *check_columns(root)]


# -- adding one of each -------------------------------------------------------


class Copy:
    """A copy of the tree, compiled with the commands of the build folder."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "tree")
        self.folder = folder
        for top in (*TOPS, "plots"):
            shutil.copytree(os.path.join(ROOT, top), os.path.join(self.root, top),
                            symlinks=True, ignore=shutil.ignore_patterns(
                                "bundled", "*.pickle*", "__pycache__"))
        with open(os.path.join(BUILD, "compile_commands.json"),
                  encoding="utf-8") as file:
            self.commands = {os.path.relpath(c["file"], ROOT):
                             shlex.split(c["command"]) for c in json.load(file)}
        text = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "fragsim"],
                              check=True, capture_output=True, text=True).stdout
        last = text.rstrip().split("\n")[-1]
        self.link = shlex.split(re.sub(r"^: && | && :$", "", last))

    def apply(self, edits):
        for how, path, model, what in edits:
            place = os.path.join(self.root, path)
            if how == "file":
                shutil.copy(os.path.join(self.root, model), place)
                edit(place, *what)
            elif how == "line":
                with open(place, "a", encoding="utf-8") as file:
                    file.write(what + "\n")
            else:
                edit(place, *what)

    def revert(self, edits):
        for how, path, _, _ in edits:
            if how == "file":
                os.remove(os.path.join(self.root, path))
            else:
                shutil.copy(os.path.join(ROOT, path),
                            os.path.join(self.root, path))

    def compile(self, path, model):
        """The object file of a source, compiled as `model` is."""
        out = os.path.join(self.folder, path.replace("/", "_") + ".o")
        words = [word.replace(ROOT, self.root) if word.startswith("-I") else word
                 for word in self.commands[model]]
        words[words.index("-o") + 1] = out
        words[words.index("-c") + 1] = os.path.join(self.root, path)
        subprocess.run([w for w in words if not re.fullmatch("-O.|-flto.*", w)],
                       check=True, cwd=BUILD)
        return out

    def make(self, sources):
        """Links the tool with {source: its model}; returns its path, or the
        linker's words."""
        tool = os.path.join(self.folder, "fragsim")
        objects = [self.compile(path, model) for path, model in sources.items()]
        words = list(self.link)
        at = words.index("-o")
        words[at + 1] = tool
        own_main = next(w for w in words if w.endswith("sim/cli/main.c.o"))
        if "sim/cli/main.c" in sources:
            words.remove(own_main)
            at -= 1
        words[at:at] = objects
        done = subprocess.run(words, cwd=BUILD, capture_output=True, text=True,
                              check=False)
        return (tool, "") if done.returncode == 0 else (None, done.stderr)

    def run(self, tool, command):
        with open(os.path.join(self.folder, "probe.csv"), "w",
                  encoding="ascii") as file:
            file.write("probe,lower,upper,size\n0,0,9,512\n")
        done = subprocess.run([tool, *command], capture_output=True, text=True,
                              cwd=self.folder, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout


def users(root, header):
    """The source files that include a header, also through others."""
    includes = {}
    for top in ("sim", "policies", "traces"):
        for path in glob.glob(os.path.join(root, top, "**", "*.[ch]"),
                              recursive=True):
            name = os.path.relpath(path, root)
            includes[name] = set(re.findall(r'#\s*include "([^"]+)"',
                                            read(root, name)))
    found, todo = {header}, [header]
    while todo:
        at = todo.pop()
        more = [n for n, i in includes.items() if at in i and n not in found]
        found.update(more)
        todo += more
    return sorted(n for n in found if n.endswith(".c"))


def add(copy, kind):
    edits, others, command, text = KINDS[kind]
    files = [e for e in edits if e[0] == "file"]
    sources = {path: model for _, path, model, _ in files
               if path.endswith(".c")}
    lists = {path: path for path in others}
    copy.apply(edits)
    tool, words = copy.make(sources | lists)
    assert tool, (kind, words)
    assert text in copy.run(tool, command), (kind, command)
    faults = judge(copy.root)
    assert not faults, (kind, faults)
    # the file without its line, and the line without its file
    row = [e for e in edits if e[0] == "line"]
    copy.revert(row)
    faults = judge(copy.root)
    assert len(faults) == 1 and "probe is not in" in faults[0], (kind, faults)
    copy.revert(edits)
    copy.apply(row + [e for e in edits if e[0] == "change"])
    tool, words = copy.make(lists)
    assert not tool and "_probe" in words, (kind, words)
    copy.revert([e for e in edits if e[0] != "file"])
    return [path for _, path, _, _ in edits]


def add_figure_without_script(copy):
    edits = [e for e in KINDS["figure"][0] if not e[1].endswith(".gp")]
    copy.apply(edits)
    faults = judge(copy.root)
    assert faults == ["the figure probe has no script plots/probe.gp"], faults
    copy.revert(edits)


def add_measure(copy):
    copy.apply(MEASURE)
    faults = judge(copy.root)
    assert len(faults) == 1 and "columns of results changed" in faults[0], faults
    sources = {p: p for p in users(copy.root, "sim/measures.h")
               if p in copy.commands}
    tool, words = copy.make(sources)
    assert tool, words
    text = copy.run(tool, ["replay", "-q", TRACE, "-p", "torch", "--json", "-"])
    rows = json.loads(text)["results"]
    assert rows and all(row["probe"] == 0.5 for row in rows), rows
    copy.revert(MEASURE[2:])
    faults = judge(copy.root)
    assert faults == ["the measure probe of sim/measures.h is no column of "
                      "sim/results/columns.c"], faults
    copy.revert(MEASURE)
    return MEASURE_PLACES


def main():
    faults = judge(ROOT) + list(check_map())
    for fault in faults:
        print(f"check_adding: {fault}")
    if faults:
        return 1
    if not os.path.exists(os.path.join(BUILD, "build.ninja")) or \
            not shutil.which("ninja"):
        print("check_adding: no build folder of ninja; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(folder)
        for kind in KINDS:
            print(f"{kind}: {', '.join(add(copy, kind))}")
        add_figure_without_script(copy)
        print(f"measure: {', '.join(add_measure(copy))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
