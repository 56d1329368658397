# A policy without a gap takes more of a device that gives units of 2 MiB, and
# the table does not call it optimal.
fragsim replay small.csv -p direct
