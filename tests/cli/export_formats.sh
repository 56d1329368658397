# Each format once; what it lacks is on stderr. Perfetto, memory_viz and planners
# read them.
fragsim export small.csv --to minimalloc
fragsim export small.csv --to chrome -p torch -c 32MiB -o run.json && ls
fragsim export small.csv --to snapshot -p best_fit -c 22MiB -o run.pickle
fragsim export -q run.pickle | head -3
fragsim export small.csv --to snapshot
echo $?
