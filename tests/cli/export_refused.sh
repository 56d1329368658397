# The viewer of snapshots adds up addresses, which remap maps twice; no file is
# left behind.
fragsim gen training:steps=20,jitter=0.5 -q -o made.h5 || exit
fragsim export made.h5 --to snapshot -p remap:slack=0 -o run.pickle
echo $?
fragsim export made.h5 --to csv -p torch
echo $?
fragsim export made.h5 --to chrome
echo $?
fragsim export made.h5 --to snapshot -c 1GiB
echo $?
ls
