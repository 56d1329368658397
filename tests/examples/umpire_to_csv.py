"""umpire_to_csv.py: makes a CSV for fragsim of a replay log of Umpire:
python3 umpire_to_csv.py [RESOURCE] <umpire.stats >events.csv
RESOURCE is such as DEVICE; without it, all memory is one device."""
import json
import sys
wanted = {}  # an allocator's name, and its reference: whether the CSV has it
live, begun = set(), None  # begun: a reallocate whose result is to come


def put(block, allocator=None, size=0):
    if block in live:
        print(f"free,{int(block, 0)},,")
        live.remove(block)
    if size and wanted[allocator]:
        print(f"alloc,{int(block, 0)},{size},0")
        live.add(block)


print("op,id,bytes,stream")
for line in (line for line in sys.stdin if line[0] == "{" and "}\n" in line):
    v = json.loads(line.replace('"result": "', '"allocator_ref": "'))
    for part in [part for part in v.values() if isinstance(part, dict)]:
        v = part | v  # logs of before 2022 have other words
    word = v.get("event", v.get("name")).replace("_", "").lower()
    name, block = v.get("allocator_name"), v.get("pointer", v.get("memory_ptr"))
    name, ref = name or v.get("name"), v.get("allocator_ref", name)
    if word in ("makememoryresource", "makeallocator"):
        parent = v.get("arg0", v.get("args", [name])[0])
        wanted[ref] = wanted[name] = wanted.get(
            parent, parent in (sys.argv[1:] or [parent]))
    elif word == "deallocate" or word.endswith("allocate") and block:
        begun = None  # the calls that a reallocate makes count instead of it
        put(block, ref, v.get("size", 0) if word != "deallocate" else 0)
    elif word == "reallocate" and "current_ptr" in v:
        begun = v
    elif word == "reallocate" and begun:
        put(begun["current_ptr"])
        put(v["new_ptr"], ref, begun["size"])
    elif word in ("release", "coalesce") and wanted[ref]:
        print("empty_cache,,,")
