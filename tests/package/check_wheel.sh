#!/usr/bin/env bash
# check_wheel.sh [WHEEL]: checks that `pip install .`, or the wheel, in a fresh virtual
# environment installs the Python package, the command fragsim, the figures' scripts,
# the recorder and the libraries, and runs check_python.py on what it installed.
# The build does not optimize, which is faster. Skipped (77) if python3 has no
# venv or, without a wheel, no package index answers.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

skip() {
    echo "check_wheel: $*; skipped"
    exit 77
}
# The packages of the system are there, because pandas and h5py are not part of
# the package.
python=/usr/bin/python3
[ -x $python ] || python=python3
$python -m venv --system-site-packages "$folder/venv" >"$folder/log" 2>&1 ||
    skip "python3 cannot make a virtual environment: $(tail -n 1 "$folder/log")"
bin=$folder/venv/bin
if [ $# -gt 0 ]; then
    set -- "$(realpath "$1")" --no-index
else
    "$bin/pip" download -q --retries 0 --timeout 10 --no-deps -d "$folder/index" \
        scikit-build-core >"$folder/log" 2>&1 ||
        skip "no package index: $(tail -n 1 "$folder/log")"
    set -- "$root" --config-settings=build-dir="$folder/build" \
        --config-settings=cmake.build-type=None \
        --config-settings=cmake.define.CMAKE_C_FLAGS=-O0
fi
"$bin/pip" install --no-deps "$@" >"$folder/log" 2>&1 || {
    tail -n 60 "$folder/log"
    exit 1
}

cd "$folder" # away from the source tree
unset FRAGSIM PYTHONPATH
package=$("$bin/python" -c 'import fragsim, os; print(os.path.dirname(fragsim.__file__))')
case $package in
"$folder"/venv/*) ;;
*)
    echo "check_wheel: another package was imported: $package"
    exit 1
    ;;
esac
for file in bin/fragsim lib/libfragsim.so lib/fragsim/libfragsim_record.so \
    lib/fragsim/libfragsim_torch.so share/fragsim/plots/timeline.gp py.typed \
    pytorch_record.py fragsim_torch.py share/fragsim/allocator.cpp \
    fragsim_dry.py fragsim_draws.py fragsim_notes.py fragsim_values.py fragsim_dry_setup.py dry.py \
    lib/fragsim/dry/libcuda.so.1 \
    share/fragsim/service.h start/sitecustomize.py include/fragsim/policies/policy.h; do
    [ -e "$package/$file" ] || {
        echo "check_wheel: the package lacks $file"
        exit 1
    }
done
"$bin/fragsim" --version | grep -q '^fragsim '
"$bin/fragsim" record -o none.h5 -- true 2>words && exit 1
grep -q 'made no CUDA memory calls' words || {
    cat words
    exit 1
}
# The program runs on the policy: a stand-in without CUDA is refused.
for tool in "$bin/fragsim run" "$bin/python -m fragsim.run"; do
    code=0
    # shellcheck disable=SC2086
    STANDIN_CUDA='' PYTHONPATH=$root/tests/gpu/python $tool -p remap -- \
        "$bin/python" -c 'import torch' 2>words || code=$?
    { [ $code = 5 ] && grep -q 'was built without CUDA' words; } || {
        echo "check_wheel: $tool: exit code $code"
        cat words
        exit 1
    }
done
PYTHONPATH=$root/tests/gpu/dry "$bin/python" -m fragsim.dry -c \
    'import torch; torch.empty(1 << 30)' | grep -q '^needs 1 GiB of the GPU'
"$bin/python" - <<'EOF'
from importlib.metadata import entry_points
found = entry_points()
found = found.select(group="pytest11") if hasattr(found, "select") \
    else found["pytest11"]
assert [one.value for one in found if one.name == "fragsim"] == \
    ["fragsim.pytest_plugin"], found
EOF
"$bin/python" "$root/tests/package/check_python.py" --installed
"$bin/pip" uninstall -q -y fragsim
[ ! -e "$package" ] || {
    echo "check_wheel: files remain:" "$package"/*
    exit 1
}
echo "installed, used and removed"
