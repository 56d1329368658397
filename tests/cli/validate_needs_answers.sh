fragsim validate small.csv
