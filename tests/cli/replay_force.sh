echo precious >r.h5
fragsim replay small.csv -q -p direct -f -o r.h5 --csv - | wc -l
h5dump -a /complete r.h5 2>/dev/null | grep -c '(0): 1' || test ! -x "$(command -v h5dump)"
