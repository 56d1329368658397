# What is none is null; nothing but JSON is on stdout.
fragsim replay small.csv -q -p direct --json - | tr -d ' ' | tr ',' '\n' |
    grep -E '^"(capacity_bytes|first_oom_event|num_ooms|peak_reserved_bytes)"'
