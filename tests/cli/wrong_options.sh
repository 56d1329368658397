# An option that does not exist, or lacks its value, or has one too many.
try() {
    fragsim "$@"
    echo "$?"
}
try replay small.csv --capcity 4GiB
try replay small.csv --capcity=4GiB
try replay small.csv --policies torch
try replay small.csv --xyzzy
try replay small.csv -capacity 4GiB
try replay small.csv -z
try replay small.csv -c
try replay small.csv --capacity
try replay small.csv --capacity=
try replay small.csv -p ''
try replay small.csv --device=
try replay small.csv -c --check
try replay small.csv -o -q
try replay small.csv --check=yes
try replay small.csv --co x
ls
# These are right.
fragsim replay small.csv --cap 64MiB --pol direct -qp first_fit --json - \
    --out=-q -- | grep -c '"policy"'
fragsim info -- small.csv | head -1
