# A command that speaks of --backend has that option.
for verb in $(fragsim help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    fragsim help $verb >text
    grep -q -e --backend text || continue
    grep -q -e '^ *--backend=NAME' text || echo "$verb has no --backend"
done
