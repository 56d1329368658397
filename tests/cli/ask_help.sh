# Every way to ask for the help of a command prints the same.
fragsim help replay >expected
for way in 'replay --help' 'replay -h' 'replay help' '--help replay' \
    '-h replay' 'replay small.csv -qh'; do
    # The words of the way are separate arguments.
    # shellcheck disable=SC2086
    fragsim $way >found && cmp expected found
done
fragsim help >expected
for way in --help -h; do
    fragsim $way >found && cmp expected found
done
fragsim version >found && fragsim --version | cmp - found
fragsim validate help | head -1
# A file of that name is a trace.
cp small.csv help
fragsim info help | head -1
