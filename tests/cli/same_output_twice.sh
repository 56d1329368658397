fragsim replay small.csv --json - --csv -
