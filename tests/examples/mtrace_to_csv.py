"""mtrace_to_csv.py: makes a CSV for fragsim of the malloc calls that glibc's
mtrace() logged: python3 mtrace_to_csv.py <LOG >events.csv

Frees of blocks that are older than the log, and failed calls, are left out. The
log shows a realloc as a free, then an allocation."""
import re
import sys

CALL = re.compile(r"(?:@ .* )?([-+<>!]) (0x\w+|\(nil\))(?: (0x\w+|0))?\n")
live = set()


def free(block):
    if block in live:
        print(f"free,{block},,")
        live.remove(block)


print("op,id,bytes,stream")
for line in sys.stdin:
    call = CALL.fullmatch(line)
    op, block, size = call.groups() if call else "!00"
    if op == "!" or block == "(nil)":
        continue
    block = int(block, 0)
    free(block)
    if op in "+>":
        print(f"alloc,{block},{int(size, 0) or 1},0")
        live.add(block)
