# Exported events are read back, here from stdin.
fragsim export small.csv -q | fragsim replay - -q -p direct --csv - | cut -d, -f1,7-11
