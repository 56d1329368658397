"""android_to_csv.py: makes a CSV for fragsim of the malloc calls of an Android
process, in the text of memory_replay: python3 android_to_csv.py <LOG >events.csv

Frees of blocks that are older than the log, and failed calls, are left out."""
import sys

live = set()


def free(block):
    if block in live:
        print(f"free,{block},,")
        live.remove(block)


def alloc(block, size):
    free(block)
    if block:
        print(f"alloc,{block},{size or 1},0")
        live.add(block)


print("op,id,bytes,stream")
for line in sys.stdin:
    word, *fields = line.partition(":")[2].split() or [""]
    call = [int(field, 0) for field in fields]
    if word == "malloc":
        alloc(*call[:2])
    elif word == "calloc":
        alloc(call[0], call[1] * call[2])
    elif word == "memalign":
        alloc(call[0], call[2])
    elif word == "free":
        free(call[0])
    elif word == "realloc" and (call[0] or not call[2]):
        new, old, size = call[:3]
        alloc(new, size)  # both blocks are live for a moment
        if old != new:
            free(old)
