# What was done is said on stderr, in one line.
fragsim replay small.csv -p torch -o r.h5 >table && test -s r.h5
