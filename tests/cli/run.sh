# A program runs on a policy, with the settings in its environment; what cannot
# run is refused before it starts.
try() {
    fragsim run "$@"
    echo "$?"
}
try -q -p torch:expandable_segments:True -c 3GiB -- sh -c \
    'echo "$FRAGSIM_POLICY $FRAGSIM_CAPACITY ${FRAGSIM_OUTPUT-none}"; exit 7'
try -q -p remap -o folder-%p/out.h5 -- sh -c 'echo "${FRAGSIM_OUTPUT##*/folder-}"'
try -p compact -- echo ran
try -p best_fit:segment=x -- echo ran
try -p torch@recorded -- echo ran
try -p remap -c 3 -- echo ran
try -p remap -o small.csv -- echo ran
try -p remap -o - -- echo ran
try -p remap -o none/out.h5 -- echo ran
try -p remap -- ./no_such_program
try -p remap small.csv
try small.csv
