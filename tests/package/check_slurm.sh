#!/usr/bin/env bash
# check_slurm.sh [GRID]: runs tests/examples/slurm_array.sbatch under a real
# slurmctld and two slurmd on this machine. In the middle of the sweep (that of
# GRID, or one of some seconds), one slurmd is killed with its jobs. Nothing may
# be lost, and the merged file must equal the file of a sweep without Slurm.
# Skipped (77) if Slurm is missing or cannot be started.
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=$(realpath "${FRAGSIM:-$root/build/fragsim}")
grid=${1:+$(realpath "$1")}
parts=3
PATH=$PATH:/usr/sbin # where the daemons are

skip() {
    echo "check_slurm: $*; skipped"
    exit 77
}
fail() {
    echo "check_slurm: $*" >&2
    tail -n 20 "$folder"/*.log >&2
    exit 1
}

[ -x "$fragsim" ] || skip "no tool at $fragsim"
for program in slurmctld slurmd sbatch squeue scontrol; do
    command -v "$program" >/dev/null || skip "$program is missing"
done

folder=$(mktemp -d) || exit 2
# A node is a daemon and a job is its child: each writes its id to a file.
stop() {
    local file
    for file in "$folder"/*.pid; do
        # One file may hold the ids of a job and of the daemon above it.
        # shellcheck disable=SC2046
        [ ! -f "$file" ] || kill -9 $(cat "$file") 2>/dev/null
    done
    rm -rf "$folder"
}
trap stop EXIT
mkdir "$folder/bin"
cat >"$folder/bin/fragsim" <<TOOL
#!/bin/sh
[ -z "\${SLURMD_NODENAME:-}" ] ||
    echo "\$PPID \$\$" >"$folder/\$SLURMD_NODENAME-job.pid"
exec "$fragsim" "\$@"
TOOL
chmod +x "$folder/bin/fragsim"
export PATH="$folder/bin:$PATH"

port=$((20000 + $$ % 20000))
cat >"$folder/slurm.conf" <<CONF
ClusterName=frag
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=5
SchedulerParameters=sched_interval=2,batch_sched_delay=1
KillWait=2
MessageTimeout=5
BatchStartTimeout=5
JobRequeue=1
SlurmctldPidFile=$folder/ctld.pid
SlurmdPidFile=$folder/%n.pid
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldLogFile=$folder/ctld.log
SlurmdLogFile=$folder/%n.log
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=1
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
# Nothing is limited; autodetection would ask for a file system of cgroups.
echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
mkdir "$folder"/state "$folder"/spool.n1 "$folder"/spool.n2 "$folder"/out

export SLURM_CONF=$folder/slurm.conf
slurmctld -f "$SLURM_CONF" 2>"$folder/start.log" || skip "slurmctld does not start: $(cat "$folder/start.log")"
for node in n1 n2; do
    env -u SLURM_CONF slurmd -N "$node" -f "$folder/slurm.conf" \
        2>>"$folder/start.log" || skip "slurmd does not start: $(cat "$folder/start.log")"
done

# wait_for SECONDS COMMAND...: waits until COMMAND succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}
both_idle() { [ "$(sinfo -h -N -o %T | sort -u)" = idle ]; }
wait_for 30 both_idle || {
    sinfo -N
    tail -n 5 "$folder"/*.log
    skip "the nodes do not come up"
}

# The sweep takes some seconds, so that it can be interrupted in the middle.
values=16
while :; do
    {
        for trace in gpt2_train cudagraph multistream leak; do
            echo "trace $root/traces/bundled/$trace.pickle.xz"
        done
        echo "policy torch"
        for value in $(seq 21 $((20 + values))); do
            echo "policy torch:max_split_size_mb:$value"
        done
        echo "capacity inf,1.2x,1.05x"
    } >"$folder/grid"
    [ -z "$grid" ] || cp "$grid" "$folder/grid"
    start=$SECONDS
    fragsim sweep -q -f -j1 --grid "$folder/grid" -o "$folder/alone.h5" ||
        fail "the sweep fails without Slurm"
    [ -z "$grid" ] && [ $((SECONDS - start)) -lt 4 ] || break
    values=$((2 * values))
done

cd "$folder/out" || exit 2
sbatch -Q --export=ALL --array=1-$parts \
    "$root/tests/examples/slurm_array.sbatch" "$folder/grid" "$folder/out" \
    $parts >"$folder/sbatch.log" 2>&1 || fail "sbatch fails"

# The second node is killed with all its processes when it has done some work.
at_work() {
    part=$(squeue -h -t running -w n2 -o %K)
    [ -n "$part" ] && [ -f "$folder/n2-job.pid" ] &&
        [ -e "part-$part.h5.part/lock" ]
}
wait_for 60 at_work || fail "nothing runs on the second node"
# shellcheck disable=SC2046
kill -9 $(cat "$folder/n2.pid" "$folder/n2-job.pid")
rm "$folder/n2.pid" "$folder/n2-job.pid"
[ -d "part-$part.h5.part" ] || fail "part $part was done too early"

array_is_over() { [ "$(squeue -h | wc -l)" -eq 0 ]; }
wait_for 150 array_is_over || fail "the array does not end: $(squeue)"
[ "$(ls part-*.h5 | wc -l)" -eq $parts ] || fail "parts are missing: $(ls)"
[ -z "$(ls -d ./*.part 2>/dev/null)" ] || fail "unfinished work: $(ls)"
grep -q "requeue\|Requeue" "$folder/ctld.log" || fail "no job was requeued"
fragsim merge -q sweep.h5 part-*.h5 || fail "the parts do not merge"
cmp sweep.h5 "$folder/alone.h5" || fail "the merged file differs"
echo "node n2 was killed with part $part; the merged file is equal"
