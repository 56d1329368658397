# Files that are no trace are named as what they are, with what to do instead.
try() { fragsim info "$1" || echo "$?"; }
: >empty.pickle
gzip -c empty.pickle >empty.gz
printf '\375\067z' >three
printf ' {"schemaVersion": 1, "deviceProperties": [],\n"traceEvents": [\n' >cut.json
echo ' {"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X"}]}' >p.json
echo '[[-1, 1, 37888, 7], [-1, 1, 512, 7]]' >timeline.raw.json
echo '[[1795325984911037], [[0, 0, 864]]]' >timeline.json
echo '<html> <head><title>GPU Memory Timeline HTML</title></head>' >timeline.html
gzip -c p.json >p.json.gz
echo '{"stats": {"active.all.allocated": 29439}}' >stats.json
printf '\200\2}(X\5\0\0\0modelccollections\nOrderedDict\n' >model.pickle
printf '\200\2}X\1\0\0\0aK\1s.' >dict.pickle
printf '\200\2K\1.' >number.pickle
{
    head -c 60000 /dev/zero | tr '\0' 'x'
    echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'
} | gzip -c >train.log.gz
printf '<!DOCTYPE html>\n<html><head>\n' >viz.html
echo '{"workload": "other"}' >other.json
fragsim replay small.csv -q --json results.json >results
fragsim replay small.csv -q --csv results.csv >results
for file in empty.pickle empty.gz three cut.json p.json p.json.gz stats.json \
    timeline.raw.json timeline.json timeline.html \
    model.pickle dict.pickle number.pickle train.log.gz viz.html other.json \
    results.json results.csv; do
    try "$file"
done
# The output of other tools.
echo '{"category":"operation","string_args":{"allocator_ref":"0x1"}}' >u.stats
printf 'v 10400 3\nX ./a\nI 1000 10\n' >heaptrack.data
echo '"Kind","Operation","Agent_Id","Allocation_Size","Address"' >rocprof.csv
echo '186: malloc 0xb6027400 1024' >android.txt
echo '@ ./a:(main+1c)[0x115c] + 0x56000010 0x20' >run.mtrace
echo '{"dhatFileVersion":2' >dhat.json
printf 'desc: --massif-out-file=m\ncmd: ls\ntime_unit: i\n' >massif.out
printf '==1== Memcheck, of Valgrind\n--1-- malloc(4) = 0x4D2E040\n' >valgrind.txt
echo '1 05:51:21.263077 a->malloc(48) = 0x562cf1d4d2c0' >ltrace.txt
echo 'heap_v2/524288' >jemalloc.heap
echo 'heap profile: 1: 2 [3: 4] @ heap_v2/1' >tcmalloc.heap
printf '\n\004\b\001\020\002\n\004\b\003\020\004' >pprof.pb
echo '{"$schema": "https://www.speedscope.app/file-format-schema.json"}' >s.json
printf '\004"M\030@@\300\000memray' >memray.bin
printf 'BufferAssignment:\nallocation 0: size 8\n' >assignment.txt
printf 'HloLiveRange (max 49):\n' >range.txt
printf '\nTotal bytes used: 8\n\nUsed values:\n' >values.txt
printf 'Memory Space: default\n  size; used_by_n_values;\n' >report.txt
echo 'I0000 00:00:1.2 3 bfc_allocator.cc:89] allocated_bytes' >bfc.log
printf 'SQLite format 3\0CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS' >memory.sqlite
printf '[ 41][12:00:00:1][info  ] ----- RMM LOG BEGIN [PTDS DISABLED]\n' >rmm_log.txt
printf '[ 41][12:00:00:1][trace ] [A][stream 0x0][8B]\n' >rmm_trace.log
# Archives: a header and an entry of four bytes, the end alone, and of tar.
{
    printf 'PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\6\0\0\0'
    printf 'a.jsonxxxxPK\5\6'
} >other.zip
printf 'PK\5\6\0\0\0\0' >empty.zip
tar -cf small.tar small.csv
gzip -c small.tar >small.tar.gz
for file in u.stats heaptrack.data rocprof.csv android.txt run.mtrace rmm_log.txt \
    rmm_trace.log other.zip empty.zip small.tar small.tar.gz; do
    try "$file"
done
for file in dhat.json massif.out valgrind.txt ltrace.txt jemalloc.heap \
    tcmalloc.heap pprof.pb s.json memray.bin assignment.txt range.txt \
    values.txt report.txt bfc.log memory.sqlite; do
    try "$file"
done
fragsim info - <small.csv | grep -c events
cat small.csv | fragsim info - | grep -c events
fragsim info /dev/null || echo "$?"
mkfifo pipe
cat small.csv >pipe &
fragsim info pipe | grep -c events
