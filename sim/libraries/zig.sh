#!/bin/sh
# zig.sh FOLDER TARGET COMMAND...: runs a command with the environment that zig.cmake
# reads. FOLDER/tools is made once, by pip: zig, of one version so that all builds are
# alike, and what builds wheels. TARGET is a target of zig, as x86_64-linux-gnu.2.17.
# Programs of another processor are run by qemu (Debian: qemu-user-static and, for
# glibc, libc6-arm64-cross), because HDF5's H5detect asks the target for its types.
set -eu

folder=$1
target=$2
shift 2
tools=$folder/tools
[ -x "$tools/bin/zig" ] || {
    python3 -m venv "$tools"
    "$tools/bin/pip" install -q ziglang==0.17.1 scikit-build-core==1.1.2
    ln -s "$("$tools/bin/python" -c 'import os, ziglang
print(os.path.dirname(ziglang.__file__))')/zig" "$tools/bin/zig"
}

FRAG_ZIG=$folder/zig/$target
mkdir -p "$FRAG_ZIG"
for program in "cc cc -target $target" "ar ar" "ranlib ranlib"; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$tools/bin/zig" "${program#* }" \
        > "$FRAG_ZIG/${program%% *}"
    chmod +x "$FRAG_ZIG/${program%% *}"
done

machine=${target%%-*}
emulator="qemu-$machine-static;-L;/usr/$machine-linux-gnu"
[ "$machine" != "$(uname -m)" ] || emulator="env"
FRAG_TARGET=$target
FRAG_EMULATOR=$emulator
export FRAG_ZIG FRAG_TARGET FRAG_EMULATOR
exec "$@"
