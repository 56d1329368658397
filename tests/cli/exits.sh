# What the exit codes of a command mean: one table, printed in three places.
fragsim help exits
fragsim help --man >all
fragsim help exits | while IFS= read -r line; do
    case $line in
    "       "*) ;;
    *)
        code=${line#  }
        code=${code%% *}
        continue
        ;;
    esac
    verb=$(echo "${line#       }" | cut -d ' ' -f 1)
    text=$(echo "$line" | sed 's/^ *[a-z]*  *//')
    fragsim $verb --help | tr -s ' \n' ' ' | grep -qF "Exit code $code: $text" ||
        echo "$verb --help lacks: $code, $text"
    sed 's/\\//g' all | grep -qxF "$text" || echo "the manual lacks: $verb: $text"
done
# A file without events is an input with a fault, and no wrong use.
echo op,id,bytes,stream >none.csv
for verb in triage explain top summary replay fit tune steps leaks; do
    fragsim $verb none.csv $([ $verb = triage ] && echo -c 1GiB -o page.html) 2>/dev/null
    echo "$verb: $?"
done
