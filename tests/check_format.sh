#!/usr/bin/env bash
# check_format.sh [ROOT]: every tracked C file is as clang-format 14 writes it.
# First the check is shown a badly formatted file, to prove that it sees it.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

format=$(command -v clang-format-14 || command -v clang-format) || {
    echo "check_format: clang-format is missing; skipped"
    exit 77
}
case $("$format" --version) in
*"version 14."*) ;;
*)
    echo "check_format: $("$format" --version) is not version 14; skipped"
    exit 77
    ;;
esac

tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
cp .clang-format "$tree/"
printf 'int main( void ) {return 0;}\n' >"$tree/bad.c"
if "$format" --dry-run -Werror "$tree/bad.c" 2>/dev/null; then
    echo "check_format: does not see the planted file" >&2
    exit 1
fi

git ls-files -z --cached --others --exclude-standard '*.[ch]' 2>/dev/null \
    >"$tree/list"
[ -s "$tree/list" ] || find traces policies sim real tests -name '*.[ch]' \
    -print0 >"$tree/list" 2>/dev/null
[ -s "$tree/list" ] || {
    echo "check_format: there are no C files here" >&2
    exit 1
}
xargs -0 -r "$format" --dry-run -Werror <"$tree/list" && exit 0
echo "check_format: clang-format -i FILE mends these" >&2
exit 1
