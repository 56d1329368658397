fragsim sweep -q small.csv -p first_fit -p best_fit --param segment=1MiB..4MiB*2 -c 1MiB,inf --list
