fragsim compare small.csv --repeat 0
