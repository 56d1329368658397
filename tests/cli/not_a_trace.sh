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
    head -c 262110 /dev/zero | tr '\0' 'x'
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
fragsim info - <small.csv | grep -c events
cat small.csv | fragsim info - | grep -c events
fragsim info /dev/null || echo "$?"
mkfifo pipe
cat small.csv >pipe &
fragsim info pipe | grep -c events
