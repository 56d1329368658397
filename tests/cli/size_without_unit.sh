# A number below 1 MiB without a unit is refused, and the message names what may
# have been meant; with the unit B it is a size.
try() {
    fragsim "$@" -q >out 2>said
    echo "$? $*"
    head -n 1 said
}
for capacity in 24 0.9 0.4 81920 1048575 0 0B 24GiB,24; do
    try replay small.csv -c "$capacity"
done
for capacity in 1048576 24B 0.9x inf unlimited; do
    try replay small.csv -c "$capacity"
done
for option in --total --recorded-limit; do
    for size in 24 0.9 81920 0 24B; do
        try replay small.csv "$option" "$size"
    done
done
try fit small.csv --total 24
try tune small.csv --capacity 24
try info small.csv --recorded-limit 24
try export small.csv out.csv --recorded-limit 24
try import small.csv out.h5 --recorded-limit 24
try validate small.csv --total 24
try plot small.csv map -o map.html -c 24
try compare small.csv -c 24
printf 'trace small.csv\ncapacity 24\n' >grid
try sweep --grid grid --list
try sweep small.csv -c 0.9x,24 --list
try sweep small.csv -c 24B --total 24B -o sweep.h5
grep -ao "total [0-9]*B" sweep.h5 | sort -u
try gen stationary:allocs=64,mean=512 -o gen.h5 # a size that is no capacity
