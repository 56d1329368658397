#!/bin/sh
# inside_device.sh [--quick] OUT [PART...]: runs PyTorch on fragsim's policies and
# under fragsim's recorder, on a machine with a GPU and PyTorch, unattended.
# Parts: losses, turns, work, recorder, allocators (default: all, less than eleven
# minutes on an H200; the last part uses the remaining time). A part that fails
# does not stop the others; the exit code tells whether one failed. Adds to
# OUT/inside_torch.jsonl and OUT/device_pytorch.csv. Copy these files to
# paper/data/ to make pages/inside_torch.md (inside_torch.py page) and
# pages/device.md (../tables/device_table.py).
#
# Environment: FRAGSIM; FRAG_BUILD_DIR; FRAG_SHARED_DIR with oracle/ and
# recorded/dev/; FRAG_EVENTS, a folder with the output of oracle/events.py for
# the recordings; FRAG_SECONDS for all parts, 640; FRAG_TURNS, a percentage of
# the time of turns, 100.
# shellcheck disable=SC2317  # parts are called by name
set -u
quick=
[ "${1-}" = --quick ] && quick=1 && shift
out=$1
shift
[ $# -gt 0 ] || set -- losses turns work recorder allocators
here=$(cd "$(dirname "$0")" && pwd)
until=$(($(date +%s) + ${FRAG_SECONDS:-640}))
percent=${FRAG_TURNS:-100} rounds=1000000 steps=0
recordings="llama_varlen rcnn_train generate gpt2_train"
[ -z "$quick" ] || { percent=10 rounds=8 steps=1 recordings=gpt2_train; }
export FRAG_WORKLOADS="${FRAG_WORKLOADS:-$FRAG_SHARED_DIR/oracle/record.py}"
export FRAG_ORACLE="$FRAG_SHARED_DIR/oracle/torch_oracle.py"
export PYTHONPATH="$here/../../real/torch${PYTHONPATH:+:$PYTHONPATH}"
export FRAGSIM_TORCH_LIBRARY="$FRAG_BUILD_DIR/libfragsim_torch.so"
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
mkdir -p "$out" || exit
status=0

# limited SECONDS COMMAND...: runs COMMAND with a time limit; a failure is printed
# and sets the exit status.
limited() {
    echo "== $(date +%T) $*"
    timeout -k 5 "$@" && return
    echo "FAILED ($?): $*"
    status=1
}

# inside LIMIT VERB ARGUMENT...
inside() {
    limit=$1 verb=$2
    shift 2
    FRAG_ROWS=$out/inside_torch.jsonl limited "$limit" python3 \
        "$here/inside_torch.py" "$verb" --rounds "$rounds" --steps "$steps" "$@"
}

losses() {
    inside 120 losses --at-once 4 llama_varlen
    inside 120 losses --at-once 10 generate rcnn_train
}

# turn SECONDS WORKLOAD [OPTION...]
turn() {
    seconds=$(($1 * percent / 100)) limit=$(($1 + 120))
    shift
    inside "$limit" turns --seconds "$seconds" "$@"
}

turns() {
    turn 85 llama_varlen
    turn 70 rcnn_train
    turn 50 generate
}

work() { inside 90 work --seconds 8; }

# New processes each time: two processes of the same kind differ for as long as
# they run.
recorder() {
    for _ in 1 2 3; do
        turn 30 llama_varlen --sides default,again,recorded
    done
}

# Compiling would disturb the measurements, so it runs beside `losses`, and the
# later parts wait for it.
build() { limited 240 python3 "$here/allocators.py" build >"$out/build.log" 2>&1; }

# A measurement that has begun is finished even if the time is up.
allocators() {
    left=$((until - $(date +%s) - 20))
    [ "$left" -ge 20 ] || left=20
    [ -z "$quick" ] || left=10
    paths=
    for name in $recordings; do
        paths="$paths $FRAG_SHARED_DIR/recorded/dev/$name.pickle.xz"
    done
    # shellcheck disable=SC2086
    FRAG_ROWS=$out/device_pytorch.csv limited $((left + 60)) python3 \
        "$here/allocators.py" run --seconds "$left" --rounds $rounds \
        --events "$FRAG_EVENTS" $paths
}

case " $* " in *" allocators "*) build & ;; esac
for part in "$@"; do
    case $part in
    losses) losses ;;
    turns | work | recorder | allocators)
        wait
        $part
        ;;
    *) echo "inside_device: there is no part $part" && status=1 ;;
    esac
done
echo "== $(date +%T) exit $status"
exit $status
