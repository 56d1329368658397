fragsim replay small.csv -p rmm_binning:smallest=1GiB -o r.h5
code=$?
ls
exit $code
