fragsim sweep -q small.csv -p first_fit -p best_fit:segment=1MiB -p best_fit -c 1MiB,inf --list
