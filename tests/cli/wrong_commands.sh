# Names that users guess for a command are answered with the right one.
for name in execute simulate analyze draw view show stats verify leak optimize \
    relpay xyzzy small.csv -p; do
    fragsim "$name" || echo "$?"
done
fragsim help relpay || echo "$?"
fragsim help exit || echo "$?"
fragsim help xyzzy || echo "$?"
fragsim help --man execute || echo "$?"
