# What an earlier version had ends with exit code 2 and names what takes its
# place.
gone() {
    fragsim "$@"
    [ $? = 2 ] || echo "expected exit code 2: fragsim $*"
}

gone batch 4=small.csv 8=small.csv
