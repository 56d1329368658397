fragsim sweep -q small.csv -p first_fit --edit none -e 'scale:factor=2;drop:min=30MiB' -o t.h5 --csv - | sed 's/[^,]*,\([^,]*,\)\{6\}\([0-9]*\),.*,\([^,]*\),[^,]*,[0-9]*,[0-9]*,[^,]*,[^,]*$/\2 \3/'
fragsim sweep -q small.csv -p first_fit --edit none -e 'drop:min=20MiB' --list
