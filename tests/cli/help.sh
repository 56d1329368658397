# Every command is in the overview, has help, and a part in the man page; an alias
# has the help of its command.
fragsim help --man >page
for verb in $(fragsim help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    fragsim help $verb >text || echo "no help for $verb"
    case $verb in words | formats | recipes | versions | edits | results | exits) continue ;; esac
    fragsim $verb --help | cmp -s - text || echo "$verb --help is otherwise"
    grep -q "^\.SS $(sed -n '1s/^Usage: fragsim \([a-z]*\).*/\1/p' text)\$" page || echo "$verb is not in the man page"
done
fragsim --version | head -1 | cut -d' ' -f1
