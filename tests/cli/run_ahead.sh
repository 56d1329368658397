# What a row of cuda_async assumes: the note is in text and in JSON alike. Memory
# of a free is remapped once the work before it is done.
cat >ahead.csv <<'EOF'
op,id,bytes,stream
alloc,1,33554432,0
alloc,2,33554432,0
free,1,,
alloc,3,67108864,0
EOF
for policy in cuda_async cuda_async:run_ahead=1000000 cuda_async:sync=1; do
    fragsim replay ahead.csv -q -p "$policy" --json - |
        grep -o '"params": "[^"]*"\|"peak_reserved_bytes": [0-9]*\|"notes": .*]'
done
fragsim replay ahead.csv -p cuda_async -p direct 2>&1 >table |
    grep -c 'a trace shows neither'
# The note of several traces is printed once.
cp ahead.csv two.csv
fragsim replay ahead.csv two.csv -p cuda_async -c inf,1GiB 2>&1 >table |
    grep 'a trace shows neither' | cut -c1-70
fragsim replay ahead.csv -q -p cuda_async:run_ahead=-1
echo "exit $?"
