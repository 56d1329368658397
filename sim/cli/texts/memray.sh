cat >memray_to_csv.py <<'END'
import sys
from memray import AllocatorType, FileReader
frees = {AllocatorType.FREE, AllocatorType.MUNMAP, AllocatorType.PYMALLOC_FREE}
live = set()
print('op,id,bytes,stream')
for call in FileReader(sys.argv[1]).get_allocation_records():
    if call.address in live:
        print(f'free,{call.address},,')
    live.discard(call.address)
    if call.size and AllocatorType(call.allocator) not in frees:
        print(f'alloc,{call.address},{call.size},0')
        live.add(call.address)
END
python3 memray_to_csv.py run.bin >events.csv
