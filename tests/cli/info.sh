fragsim info small.csv
