#!/usr/bin/env bash
# check_cli.sh [NAME...]: runs the scripts tests/cli/NAME.sh, each with sh in
# its own folder, which holds small.csv; `fragsim` is on the path. The files
# beside a script hold the expected result. Without them, the script must print
# nothing and return 0:
#   NAME.stdout.exact   every byte of stdout
#   NAME.stderr.glob    patterns of the shell, one for each line of stderr
#   NAME.exit           the exit code
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=${FRAGSIM:-$root/build/fragsim}
[ -x "$fragsim" ] || {
    echo "check_cli: no tool at $fragsim; skipped"
    exit 77
}
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$(realpath "$fragsim")" "$folder/bin/fragsim"
export PATH="$folder/bin:$PATH" LC_ALL=C.UTF-8 TERM=dumb
unset CI NO_COLOR SOURCE_DATE_EPOCH FRAG_PLOTS

# Succeeds if the lines of file $1 match the patterns of file $2, one by one.
matches() {
    local line pattern
    exec 3<"$1" 4<"$2"
    while IFS= read -r pattern <&4; do
        IFS= read -r line <&3 || return 1
        # The pattern is one on purpose.
        # shellcheck disable=SC2053
        [[ $line == $pattern ]] || return 1
    done
    ! IFS= read -r line <&3
}

# Prints the faults in the result of the script at $1, if there are any.
judge() {
    local base=${1%.sh} code=$2 wanted=0
    [ ! -f "$base.exit" ] || wanted=$(cat "$base.exit")
    [ "$code" -eq "$wanted" ] || echo "exit code $code, expected $wanted"
    if [ -f "$base.stdout.exact" ]; then
        diff "$base.stdout.exact" "$folder/stdout"
    elif [ -s "$folder/stdout" ]; then
        echo "stdout is not empty:" && head -5 "$folder/stdout"
    fi
    if [ -f "$base.stderr.glob" ]; then
        matches "$folder/stderr" "$base.stderr.glob" ||
            { echo "stderr differs:" && head -5 "$folder/stderr"; }
    elif [ -s "$folder/stderr" ]; then
        echo "stderr is not empty:" && head -5 "$folder/stderr"
    fi
}

failures=0 count=0
for script in "$root"/tests/cli/${1:-*}.sh; do
    rm -rf "$folder/work" && mkdir "$folder/work" && cd "$folder/work" || exit 2
    cp "$root/tests/cli/small.csv" .
    sh "$script" >"$folder/stdout" 2>"$folder/stderr" </dev/null
    fault=$(judge "$script" $?)
    count=$((count + 1))
    [ -z "$fault" ] && continue
    failures=$((failures + 1))
    echo "FAILED $(basename "$script" .sh)"
    printf '    %s\n' "${fault//$'\n'/$'\n'    }"
done
echo "$((count - failures)) of $count command lines passed"
[ "$failures" -eq 0 ]
