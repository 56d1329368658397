#!/bin/sh
# fetch.sh FOLDER: unpacks there the sources of the libraries that the tool links, from
# Debian's archive, unless all of them are there. apt-get uses lists of its own, so that
# neither root nor a change of the system is needed.
set -eu

sources=$1 packages="zlib xz-utils libzstd yajl gsl nettle hdf5 gnulib"
[ "$(cat "$sources/packages" 2> /dev/null)" != "$packages" ] || exit 0
for program in apt-get dpkg-source; do
    command -v "$program" > /dev/null || {
        echo "fetch.sh: expected $program, found none (Debian: apt-get install" \
             "dpkg-dev)" >&2
        exit 2
    }
done
rm -rf "$sources.partial"
mkdir -p "$sources.partial/apt/lists/partial" "$sources.partial/apt/cache" \
         "$sources.partial/apt/parts"
cd "$sources.partial"
# The archives of the system, asked for sources.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
            /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] ||
        sed 's/^deb /deb-src /; s/^Types: deb$/Types: deb-src/' "$list" \
            > "apt/parts/${list##*/}"
done
cat > apt/apt.conf <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$PWD/apt/parts";
Dir::State::Lists "$PWD/apt/lists";
Dir::Cache "$PWD/apt/cache";
APT::Sandbox::User "";
END
export APT_CONFIG="$PWD/apt/apt.conf"
apt-get -qq update
# shellcheck disable=SC2086
apt-get -qq source $packages > apt/log
rm -rf apt
echo "$packages" > packages
rm -rf "$sources"
mv "$sources.partial" "$sources"
