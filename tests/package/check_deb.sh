#!/usr/bin/env bash
# check_deb.sh: checks that cpack makes a Debian package that contains all
# installed files, lists its dependencies, and runs where it is unpacked, and that
# lintian has no error or warning (left out, and said, if it is missing). What is not built
# yet is built by cpack.
# Environment: FRAG_BUILD_DIR (default build).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for tool in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || exit 77
done

completion=$(find "$build" -maxdepth 2 -name fragsim.bash)
[ -n "$completion" ] && rm "$completion"
cd "$folder"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder" >log 2>&1 || {
    cat log
    exit 1
}
package=$(echo ./*.deb)
dpkg-deb --field "$package" Depends | grep -q libhdf5 || {
    echo "check_deb: the package does not depend on HDF5"
    exit 1
}
dpkg-deb -x "$package" tree
for file in bin/fragsim share/man/man1/fragsim.1.gz \
    share/man/man1/fragsim-replay.1.gz share/fragsim/plots/compare.gp \
    share/bash-completion/completions/fragsim \
    include/fragsim/policies/policy.h; do
    [ -e "tree/usr/$file" ] || [ -e "tree/usr/${file%.gz}" ] || {
        echo "check_deb: it lacks $file"
        exit 1
    }
done
for file in libfragsim.a libfragsim.so libfragsim.so.0; do
    find tree/usr/lib -name $file | grep -q . || {
        echo "check_deb: it lacks $file"
        exit 1
    }
done
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning "$package" || exit 1
else
    echo "check_deb: without lintian"
fi
dpkg-deb --info "$package" postinst | grep -q ldconfig || {
    echo "check_deb: the package does not run ldconfig for the shared library"
    exit 1
}
tree/usr/bin/fragsim replay -q "$root/traces/bundled/leak.pickle.xz" \
    -p best_fit | grep -q best_fit
