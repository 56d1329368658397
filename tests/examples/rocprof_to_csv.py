"""rocprof_to_csv.py: makes a CSV for fragsim of the CSV of rocprofv3
--memory-allocation-trace: python3 rocprof_to_csv.py [AGENT] <LOG >events.csv

AGENT is such as "Agent 8"; without it, the memory of all agents is one device.
Frees of blocks that are older than the log are left out."""
import csv
import sys

agents = sys.argv[1:]
live = set()
print("op,id,bytes,stream")
for row in sorted(csv.DictReader(sys.stdin),
                  key=lambda row: int(row["Start_Timestamp"])):
    # The address of a VMEM operation is a handle.
    address = int(row["Address"], 0)
    block = 2 * address + ("VMEM" in row["Operation"])
    if block in live:
        print(f"free,{block},,")
        live.remove(block)
    size = int(row["Allocation_Size"])
    if row["Operation"].endswith("_ALLOCATE") and address and size \
            and row["Agent_Id"] in (agents or [row["Agent_Id"]]):
        print(f"alloc,{block},{size},0")
        live.add(block)
