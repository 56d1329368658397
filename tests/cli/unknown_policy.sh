fragsim replay small.csv -p tourch
