# The table is for people: IEC units, aligned, an OOM with its event.
fragsim replay small.csv -q -p direct -p first_fit:segment=2MiB -c 40MiB,inf
fragsim replay small.csv -q -p direct -c 0.5x --stop-at-oom
