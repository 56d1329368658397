fragsim replay small.csv -c 24GiB,12xyz
