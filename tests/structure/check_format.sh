#!/usr/bin/env bash
# check_format.sh [ROOT]: checks that every tracked C file has the format of
# clang-format 14. First it proves on a badly formatted file that it detects the
# fault.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2

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
    echo "check_format: it does not detect the badly formatted file" >&2
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
echo "check_format: run clang-format -i on these files" >&2
exit 1
