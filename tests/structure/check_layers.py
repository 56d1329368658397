#!/usr/bin/env python3
"""check_layers.py [ROOT]: checks the rooms (folders) of the source tree and the
arrows between them.

Each room is a folder (or a few named files) with the list of rooms that it may
use. The check reads every #include, and, if FRAG_BUILD_DIR holds object files,
every symbol that one source file uses from another. It fails if
  - an include or a call goes to a room that is not in the list;
  - the rooms, or the source files of one room, form a circle;
  - a header guard is not the path of its header (so no two are the same);
  - a header with "Private to" in its comment is included outside its folder,
    or the comment of a parts.h or state.h lacks these words;
  - HDF5 or CUDA is named outside the files that may know it;
  - a source file does not begin with a comment;
  - a file includes headers of more rooms than WIDEST allows;
  - two files have the same name.
The table below lists the rooms. Before the check reads the tree, it proves on a
small tree with one violation of each kind that it detects them.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

# room: (files, rooms it may use). A room with a file list takes these files out
# of their folder. "+" adds everything that the named room may use.
ROOMS = {
    "traces": ([], ""),
    "traces/bytes": ([], "traces"),
    "traces/pickle": ([], "traces/bytes +"),
    "traces/build": ([], "traces"),
    "traces/steps": ([], "traces traces/build"),
    "traces/edit": ([], "traces/steps traces/build +"),
    "traces/json": ([], "traces/bytes +"),
    "traces/file": ([], "traces/bytes +"),
    "traces/export": ([], "traces/bytes +"),
    "traces/import/torch": ([], "traces/build traces/pickle +"),
    "traces/import/record": ([], "traces/build traces/bytes +"),
    "traces/import": ([], "traces/import/torch traces/import/record "
                          "traces/json traces/file +"),
    "traces/gen": ([], "traces/import +"),
    "policies/device": ([], "traces/base.h traces/bytes/input.h"),
    "policies/policy.h": (["policies/policy.h", "policies/policies.h",
                           "policies/policy_list.h",
                           "policies/heap.c", "policies/params.c",
                           "policies/params.h"],
                          "policies/device traces/base.h traces/grow.h "
                          "traces/nearest.h "
                          "traces/text.h +"),
    "policies/mechanism": ([], "policies/policy.h +"),
    "policies/torch": ([], "policies/mechanism traces/torch_platforms.h "
                       "traces/torch_sizes.h +"),
    "policies/remap": ([], "policies/mechanism +"),
    "policies/cuda_async": ([], "policies/mechanism +"),
    "policies/rmm": ([], "policies/mechanism +"),
    "policies": ([], "policies/mechanism +"),
    "policies/plan": ([], "policies policies/remap +"), # they fall back to these
    "policies/policy_list.c": (["policies/policy_list.c"],
                        "policies policies/torch policies/plan policies/remap "
                        "policies/cuda_async policies/rmm +"),
    "sim": ([], "policies/mechanism traces +"),
    "sim/arena": ([], "sim +"),
    "sim/meter": ([], "sim +"),
    "sim/replay": ([], "sim/meter +"),
    "sim/results": ([], "sim/replay traces/file +"),
    "sim/validate": ([], "sim/replay sim/arena policies/torch +"),
    "sim/experiments": ([], "sim/results sim/validate traces/bytes traces/edit "
                            "traces/import policies/policy_list.c +"),
    "sim/experiments/capacity": ([], "sim/experiments +"),
    "sim/experiments/contract": ([], "sim/experiments traces/gen +"),
    "sim/experiments/tune": ([], "sim/experiments/capacity +"),
    "sim/experiments/sweep": ([], "sim/experiments/capacity +"),
    "sim/answers": ([], "traces/steps sim/experiments/capacity "
                        "sim/experiments/tune +"),
    "sim/answers/conf": ([], "sim/answers +"),
    "sim/answers/explain": ([], "sim/answers sim/answers/steps +"),
    "sim/answers/verdict": ([], "sim/answers/explain +"),
    "sim/answers/steps": ([], "sim/answers +"),
    "sim/answers/summary": ([], "sim/answers +"),
    "sim/answers/held": ([], "sim/answers +"),
    "sim/export": ([], "sim/answers sim/answers/held traces/export +"),
    "real/device": ([], "policies/policy.h traces +"),
    "real/recorder": ([], "traces"),
    "real/dry": ([], "real/device"),
    "real/dry/driver": ([], "real/dry sim/arena +"),
    "real/dry/runtime": ([], "real/dry/driver +"),
    "real/dry/libraries": ([], "real/dry/runtime +"),
    "real/dry/cudnn": ([], "real/dry/driver +"),
    "real/torch": ([], "real/device sim/arena sim/replay sim/results "
                      "policies/policy_list.c +"),
    "sim/cli": ([], "sim/answers sim/answers/conf sim/answers/explain "
                    "sim/answers/steps sim/answers/summary "
                    "sim/answers/held sim/answers/verdict "
                    "sim/export sim/experiments/capacity sim/experiments/contract "
                    "sim/experiments/tune sim/experiments/sweep "
                    "real/device traces/gen traces/export sim/cli/texts +"),
    "sim/cli/texts": ([], ""),
    "sim/cli/output": ([], "sim/cli +"),
    "sim/cli/gnuplot": ([], "sim/cli +"),
    "sim/cli/figures": ([], "sim/cli/output sim/cli/gnuplot +"),
    "sim/cli/page": ([], "sim/cli +"),
    "sim/cli/review": ([], "sim/cli/figures sim/cli/page +"),
    "sim/cli/verbs/dry": ([], "sim/cli/output +"),
    "sim/cli/verbs": ([], "sim/cli/verbs/dry sim/cli/review +"),
    "sim/cli/answers/held": ([], "sim/cli/output +"),
    "sim/cli/answers/text": ([], "sim/cli/review +"),
    "sim/cli/answers/figures": ([], "sim/cli/answers/text +"),
    # the commands of sim/answers
    "sim/cli/answers": ([], "sim/cli/answers/held "
                            "sim/cli/answers/figures +"),
    # in place of other files, in a page
    "sim/browser": ([], "sim/cli traces/file +"),
    "sim/browser/libc/sys": ([], ""),
    "sim/cli/main.c": (["sim/cli/main.c"], "sim/cli/verbs sim/cli/answers +"),
}
# Loaded at run time: nobody else takes their symbols.
MODULES = ("real/dry", "real/dry/driver", "real/dry/runtime", "real/dry/libraries",
           "real/dry/cudnn", "real/recorder", "real/torch")
# External headers: (what is included, files that may).
ONLY = [
    (r"hdf5", r"traces/file/.*|sim/results/.*"),
    (r"cuda|cupti|nccl", r"real/.*"),
]
# files: the most folders, other than its own, whose headers one file includes:
# the rooms that one must know to change it. A command joins what others do.
WIDEST = [
    (r"sim/cli/(verbs|answers)/verb_\w+\.c|sim/cli/manual\.c", 9),
    (r".*", 5),
]
SAME_NAME = {"CMakeLists.txt", "README.md", "__init__.py"}  # a tool asks for them
TOPS = ("traces", "policies", "sim", "real")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(root):
    found = []
    for top in TOPS:
        for path in glob.glob(os.path.join(root, top, "**", "*.[ch]"),
                              recursive=True):
            found.append(os.path.relpath(path, root))
    return sorted(found)


OWN_FILE = {file: room for room, (files, _) in ROOMS.items() for file in files}


def room_of(path):
    return OWN_FILE.get(path, os.path.dirname(path))


def allowed(room):
    """The rooms that a room may use, including itself."""
    files, text = ROOMS[room]
    words = text.split()
    deep = bool(words) and words[-1] == "+"
    rooms = {room}
    for word in words[:-1] if deep else words:
        rooms.add(word)
        if deep and word in ROOMS:
            rooms |= allowed(word)
    return rooms


def includes(root, path):
    """(line number, bracketed?, name) of each #include."""
    for number, line in enumerate(read(os.path.join(root, path)).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1) == "<", match.group(2)


def calls(build, files):
    """{file: {file: a symbol}} of the object files in a build folder; empty
    where there are none."""
    known = set(files)
    defined, inside, wanted = {}, {}, {}
    objects = {}
    for path in glob.glob(os.path.join(build, "CMakeFiles", "*.dir", "**",
                                       "*.c.o"), recursive=True):
        source = re.sub(r"^[^/]*\.dir/", "",
                        os.path.relpath(path, os.path.join(build, "CMakeFiles")))
        source = source[:-2]
        if source in known and source not in wanted:
            wanted[source] = set()
            objects[path] = source
    text = subprocess.run(["nm", "-gA", *objects], capture_output=True,
                          text=True).stdout if objects else ""
    for line in text.split("\n"):
        path, _, symbol = line.partition(":")
        source, words = objects.get(path), symbol.split()
        if len(words) == 2 and words[0] == "U":
            wanted[source].add(words[1])
        elif len(words) == 3 and words[1] in "TDBRCVW":
            room = room_of(source)
            owner = inside.setdefault(room, {}) if room in MODULES else defined
            owner.setdefault(words[2], source)
    graph = {}
    for source, symbols in wanted.items():
        for symbol in symbols:
            other = inside.get(room_of(source), {}).get(symbol) or \
                defined.get(symbol)
            if other and other != source:
                graph.setdefault(source, {}).setdefault(other, symbol)
    return graph


def circle(graph):
    """One circle of {node: {node: reason}} as a list of nodes, or None."""
    state, way = {}, []

    def visit(node):
        state[node] = 1
        way.append(node)
        for other in sorted(graph.get(node, {})):
            if state.get(other) == 1:
                return way[way.index(other):] + [other]
            if other not in state:
                found = visit(other)
                if found:
                    return found
        state[node] = 2
        way.pop()
        return None

    for node in sorted(graph):
        if node not in state:
            found = visit(node)
            if found:
                return found
    return None


def guard_of(path):
    return "FRAG_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper()


def judge_file(root, path, graph):
    text = read(os.path.join(root, path))
    room = room_of(path)
    if room not in ROOMS:
        yield f"{path}: its folder is no room; add it to the table"
        return
    if not text.startswith("/*"):
        yield f"{path}: it does not begin with a comment that says its purpose"
    if path.endswith(".h"):
        has_guard = re.search(r"^#ifndef (\w+)\n#define \1\n", text, re.M)
        if has_guard and has_guard.group(1) != guard_of(path):
            yield f"{path}: its guard is {has_guard.group(1)}, " \
                  f"expected {guard_of(path)}"
        if not has_guard and "#include" in text:
            yield f"{path}: it has no guard"
        if re.search(r"(^|[/_])(parts|state)\.h$", path) and \
                "Private to" not in text.split("*/")[0]:
            yield f"{path}: its comment does not say \"Private to\""
    may = allowed(room)
    for line, bracketed, name in includes(root, path):
        where = f"{path}:{line}: {name}"
        for word, files in ONLY:
            if re.match(word, name) and not re.fullmatch(files, path):
                yield f"{where}: only {files} may include this"
        if bracketed or name == "commit.h":
            continue
        if not os.path.isfile(os.path.join(root, name)):
            yield f"{where}: there is no such file"
            continue
        other = room_of(name)
        if other not in may and name not in may:
            yield f"{where}: {room} may not use {other}"
        graph.setdefault(room, {})
        if other != room:
            graph[room].setdefault(other, where)
        head = read(os.path.join(root, name)).split("*/")[0]
        if "Private to" in head and \
                os.path.dirname(name) != os.path.dirname(path):
            yield f"{where}: it is private to {os.path.dirname(name)}"


def judge_width(root, path):
    rooms = {os.path.dirname(name) for _, bracketed, name in includes(root, path)
             if not bracketed and "/" in name} - {os.path.dirname(path)}
    most = next(most for files, most in WIDEST if re.fullmatch(files, path))
    if len(rooms) > most:
        yield f"{path}: it includes headers of {len(rooms)} other folders, at " \
              f"most {most}: {' '.join(sorted(rooms))}"


def judge_names(root):
    """Two files of one name. tests/night/kept has the same files in each case."""
    places = {}
    for top in (*TOPS, "tests"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            if "/night/kept" in folder or "__pycache__" in folder:
                continue
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    places.setdefault(name, []).append(
                        os.path.relpath(os.path.join(folder, name), root))
    for name, paths in sorted(places.items()):
        if len(paths) > 1 and name not in SAME_NAME:
            yield f"{' '.join(sorted(paths))}: one name for {len(paths)} files"


def judge_calls(build, files, graph):
    between = calls(build, files)
    for source, others in sorted(between.items()):
        room = room_of(source)
        for other, symbol in sorted(others.items()):
            may = allowed(room) if room in ROOMS else set()
            if room_of(other) not in may and other[:-1] + "h" not in may:
                yield f"{source}: {room} may not call {symbol} of {other}"
            if room_of(other) != room:
                graph.setdefault(room, {}).setdefault(
                    room_of(other), f"{source} calls {symbol} of {other}")
    while True:
        found = circle(between)
        if not found:
            return
        steps = [f"{a} takes {between[a][b]} of {b}"
                 for a, b in zip(found, found[1:])]
        yield "these files call in a circle: " + "; ".join(steps)
        del between[found[-2]][found[-1]]


def judge(root, build):
    """Returns all violations, the graph of rooms, and the number of files in
    each folder."""
    files = sources(root)
    graph, found, sizes = {}, [], {}
    for path in files:
        found += judge_file(root, path, graph)
        found += judge_width(root, path)
        folder = os.path.dirname(path)
        sizes[folder] = sizes.get(folder, 0) + 1
    if build:
        found += judge_calls(build, files, graph)
    ring = circle(graph)
    if ring:
        found.append("these rooms form a circle: " + "; ".join(
            f"{a} uses {b} ({graph[a][b]})" for a, b in zip(ring, ring[1:])))
    found += judge_names(root)
    return found, graph, sizes


def plant(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def prove():
    """Proves that the check detects each kind of violation and reports no
    other."""
    with tempfile.TemporaryDirectory() as root:
        header = "/* {0} */\n#ifndef {1}\n#define {1}\n{2}#endif\n"
        for path, body in [
                ("traces/base.h", ""), ("policies/policy.h", ""),
                ("sim/cli/cli.h", ""), ("sim/arena/arena.h", ""),
                ("real/device/cuda.h", "")]:
            plant(root, path, header.format("x", guard_of(path), body))
        plant(root, "sim/arena/arena_parts.h",
              header.format("Private to arena*.c.", "FRAG_SIM_ARENA_ARENA_PARTS_H", ""))
        plant(root, "policies/good.c",
              '/* x */\n#include "traces/base.h"\n#include <stdio.h>\n')
        none, _, _ = judge(root, None)
        bad = [
            ("traces/up.c", '/* x */\n#include "policies/policy.h"\n'),
            ("sim/meter/up.c", '/* x */\n#  include "sim/cli/cli.h"\n'),
            ("real/device/side.c", '/* x */\n#include "sim/arena/arena.h"\n'),
            ("sim/replay/private.c", '/* x */\n#include "sim/arena/arena_parts.h"\n'),
            ("sim/replay/none.c", '/* x */\n#include "sim/none.h"\n'),
            ("sim/cli/hdf5.c", "/* x */\n#include <hdf5.h>\n"),
            ("traces/cuda.c", "/* x */\n#include <cuda.h>\n"),
            ("traces/mute.c", "int nothing;\n"),
            ("traces/attic/x.c", "/* x */\n"),
            ("traces/guard.h", header.format("x", "FRAG_BASE_H", "")),
            ("sim/meter/state.h", header.format("x", "FRAG_SIM_METER_STATE_H",
                                                "")),
            ("traces/twice.c", "/* x */\n"),
            ("traces/gen/twice.c", "/* x */\n"),
            ("sim/arena/wide.c", "/* x */\n" + "".join(
                f'#include "{at}/wide.h"\n' for at in (
                    "sim", "traces", "policies", "policies/device",
                    "policies/mechanism", "policies/torch"))),
        ]
        for path, text in bad:
            plant(root, path, text)
        found, _, _ = judge(root, None)
        missed = [path for path, _ in bad
                  if not any(path in line.split(":")[0] for line in found)]
        if not any("one name for 2" in line for line in found) or \
                not any("of 6 other folders" in line for line in found):
            missed.append("a name used twice, a file that includes all")
        plain = circle({"a": {"b": "", "d": ""}, "b": {"c": ""}, "c": {"a": ""}})
        if none or missed or plain != ["a", "b", "c", "a"]:
            print(f"check_layers: it misses the planted faults {missed}, "
                  f"reports {none} for a correct tree, and finds the circle "
                  f"{plain}",
                  file=sys.stderr)
            sys.exit(1)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    prove()
    found, graph, sizes = judge(root, os.environ.get("FRAG_BUILD_DIR"))
    for line in found:
        print(line)
    if found:
        print(f"check_layers: {len(found)} violations", file=sys.stderr)
        sys.exit(1)
    for room in ROOMS:
        print(f"{room:24} {sizes.get(room, 0):3} files  -> "
              + " ".join(sorted(graph.get(room, {}))))
    print(f"{len(sizes)} folders, {sum(sizes.values())} files; no circle")


if __name__ == "__main__":
    main()
