"""heaptrack_to_csv.py: makes a CSV for fragsim of the data of heaptrack:
zstd -dc LOG | python3 heaptrack_to_csv.py >events.csv

Without --raw, a free names a size and a stack instead of a block. The newest of
equal blocks is freed: bytes are exact, lifetimes of equal blocks are a guess."""
import sys

raw = in_command = False
sizes, counts = [], []  # of each kind of block, and how many are live
live = set()


def free(block):
    if block in live:
        print(f"free,{block},,")
        live.remove(block)


print("op,id,bytes,stream")
for line in open(0, encoding="utf-8", errors="replace"):
    letter, fields = line[0], line[2:].split()
    in_command = (in_command or letter == "X") and letter != "I"
    raw = raw or letter in "xm"
    if letter == "a":
        sizes.append(int(fields[0], 16))
        counts.append(0)
    if letter not in "+-" or in_command:
        continue
    kind = block = int(fields[-1], 16)
    if not raw:
        counts[kind] -= letter == "-"
        block = (kind << 32) + counts[kind] + 1
        counts[kind] += letter == "+"
    free(block)
    if letter == "+" and block:
        size = int(fields[0], 16) if raw else sizes[kind]
        print(f"alloc,{block},{size or 1},0")
        live.add(block)
