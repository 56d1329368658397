# What an earlier version had ends with exit code 2 and names what takes its
# place.
gone() {
    fragsim "$@"
    [ $? = 2 ] || echo "expected exit code 2: fragsim $*"
}

gone batch 4=small.csv 8=small.csv
gone import small.csv -e pad:bytes=1 -o t.h5
gone edit small.csv -e round:unit=2MiB -o t.h5
gone sweep small.csv -p torch -e stream:from=7,into=0 -o t.h5
gone ranks small.csv small.csv
for parameter in pack=full chunks=4 lodge=early; do
    gone replay small.csv -p remap:$parameter
done
for policy in vma:block=64GiB half_fit slab worst_fit ggml_pool; do
    gone replay small.csv -p $policy
done
gone plot small.csv distributions -o x.svg
gone calibrate --from calls.csv
gone conf --torch-version 2.6 max_split_size_mb:64
gone policies --keys
gone tune small.csv --no-hold-out
gone tune small.csv --verify-with jobs
gone tune small.csv --max-calls-ratio 0.01
gone tune small.csv --max-seconds=1
gone steps small.csv --title a
gone sweep small.csv --plugin-seconds 3
gone check small.csv --rules file
gone fit small.csv --bound limit
gone report a.h5 --preface a.html
gone replay --stream -
gone plot a.h5 compare --size 800x600 -o x.svg
gone replay small.csv --limit 1GiB
gone replay small.csv --gpu=1
gone top small.csv --limit 3
gone plot small.csv map --color-by size -o x.html
gone explain small.csv --map x.html
