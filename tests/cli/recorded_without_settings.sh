fragsim replay small.csv -p torch@recorded
