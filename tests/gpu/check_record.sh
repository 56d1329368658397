#!/usr/bin/env bash
# check_record.sh [calls]: checks that a trace holds exactly the program's
# requests to the driver, call by call, for each way in which the program finds
# the driver; with threads, forks and several devices; with a killed program, no
# device memory, and a full disk. tests/gpu/record/record_program.c prints its own calls.
# tests/gpu/record/record_driver.c stands for the driver, unless the environment has
# another one (check_record_device.sh, which passes `calls', does so).
# Environment: FRAGSIM (the tool), FRAG_BUILD_DIR (default build).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${FRAG_BUILD_DIR:-$root/build}")
fragsim=${FRAGSIM:-$build/fragsim}
parts=$build/tests/record
for part in "$fragsim" "$parts/record_program" "$build/libfragsim_record.so"; do
    [ -e "$part" ] || {
        echo "check_record: no $part; skipped"
        exit 77
    }
done
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
failures=0 checks=0

# same WHAT FOUND WANTED
same() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    failures=$((failures + 1))
    printf 'FAILED %s\n  found:  %s\n  wanted: %s\n' "$1" "${2:0:300}" \
        "${3:0:300}"
}

# record PROGRAM WAY SCENARIO: records into t.h5; the messages go to `said'.
record() {
    rm -rf t.*
    "$fragsim" record -o t.h5 -- "$parts/$1" "$2" "$3" >wanted 2>said
}

# wants WHAT: checks that the program has printed the events of its trace.
wants() { [ -s wanted ] || same "$1" "the program prints nothing" "its requests"; }

# events TRACE: prints the events in the program's format, with one number for
# each block.
events() {
    "$fragsim" export "$@" -o - | awk -F, '
        $1 == "alloc" { n[$2] = ++k; print "alloc", k, $3, $4 }
        $1 == "free" { print "free", n[$2] }'
}

# fact NAME TRACE: prints a line of its info. counts TRACE: counts its requests.
fact() { "$fragsim" info "$2" | sed -n "s/^  $1 *//p"; }
counts() { fact requests "$1"; }

# ---- call by call ----

for way in linked dlsym entry; do
    program=record_program
    [ $way = linked ] || program=record_loader
    for expected in blocks:0 streams:0 virtual:0 reset:0 contexts:0 arrays:0 \
        graphs:0 launches:0 green:0 kill:137 out:134; do
        scenario=${expected%:*}
        record $program $way "$scenario"
        same "exit code of $way $scenario" $? "${expected#*:}"
        wants "$way $scenario"
        same "requests of $way $scenario" "$(events t.h5)" "$(cat wanted)"
    done
done
record record_program dlsym blocks
wants "a program that is linked and uses dlsym too"
same "a program that is linked and uses dlsym too" "$(events t.h5)" \
    "$(cat wanted)"
same "notes of blocks" "$(sed 's/^t.h5: //; s/and [0-9]* bytes/and N bytes/' said)" \
    "device 0, 25 events
3 calls failed for a reason other than lack of memory
3 managed blocks count as device memory
the first request that failed was for 1125899906842624 bytes of device 0, and N\
 bytes were free"
same "the trace replays" \
    "$("$fragsim" replay t.h5 -q -p direct -c inf --csv - | wc -l)" 2
same "validate" "$("$fragsim" validate t.h5 2>&1 | grep -o 'without the answers')" \
    "without the answers"

record record_program linked graphs
same "notes of graphs" "$(grep -c '2 requests of CUDA graphs are missing' said)" 1
record record_program linked launches
same "notes of launches" "$(grep -o '[0-9]* [a-z]* .* CUDA graphs' said)" \
    "2 requests of CUDA graphs
4 blocks are memory that the driver holds for CUDA graphs"
record record_loader entry green
same "notes of green" "$(grep -o '[0-9]* blocks were freed .*' said)" \
    "3 blocks were freed because their context was destroyed"

# ---- pinned memory of the host ----

for way in linked dlsym entry; do
    program=record_program
    [ $way = linked ] || program=record_loader
    record $program $way host
    same "exit code of $way host" $? 0
    wants "$way host"
    same "host memory of $way host" "$(events t.h5 --device host)" \
        "$(cat wanted)"
    same "device memory of $way host" "$(events t.h5)" "alloc 1 4096 0"
done
same "notes of host" "$(sed 's/^t.h5: //' said)" \
    "device 0, 1 events
host memory, 14 events
5 calls failed for a reason other than lack of memory
2 blocks were freed because their context was destroyed
host memory: 3 ranges, 24 KiB in all, are the program's own: it registered them\
 (cudaHostRegister); they count as pinned, in pool 0:1"
same "info of host" "$("$fragsim" info t.h5 | sed -n '/^host/,$p' |
    grep -E 'pool|peak requested|failed requests|live blocks at')" \
    "  pools                      2
    default pool             peak requested 1.005 MiB, live at the end 300 B
    pool 0:1                 peak requested 12 KiB, live at the end 8 KiB
  peak requested             1.016 MiB
  failed requests            1
  live blocks at the end     2"
for command in summary explain; do
    same "$command of host" \
        "$("$fragsim" $command t.h5 -q --device host | tail -n +2)" \
        "pinned host memory, not memory of a GPU: the program pins 1.016 MiB at\
 most, 8.293 KiB at the end
requests that failed: 1"
done

for program in record_program record_loader; do
    record $program dlsym ways
    wants "other ways of $program"
    same "other ways of $program" "$(cat wanted; events t.h5)" \
        "$(cat wanted wanted)"
    same "requests of other ways" "$(counts t.h5)" "alloc 3"
done
record record_loader entry contexts
same "notes of contexts" "$(grep -o '[0-9]* blocks were freed .*' said)" \
    "5 blocks were freed because their context was destroyed"

record record_loader entry streams
same "pools: the device's own and another" "$(fact pools t.h5)" 2
if [ "${1:-}" = calls ]; then # all that a real driver can be asked
    echo "$((checks - failures)) of $checks checks of the recorder passed"
    exit "$((failures != 0))"
fi

# ---- imported memory, and all calls in random order ----

for way in linked dlsym entry; do
    program=record_program
    [ $way = linked ] || program=record_loader
    record $program $way others
    same "exit code of $way others" $? 0
    wants "$way others"
    same "requests of $way others" "$(events t.h5)" "$(cat wanted)"
    same "notes of $way others" "$(sed 's/^t.h5: //' said)" \
        "device 0, 4 events
1 arrays are missing because the size of their format is unknown
4 blocks and handles are not requests because they refer to memory that was\
 allocated elsewhere
calls of cuMemAlloc are not recorded: 1 calls or look-ups
calls of cuMemMapArrayAsync are not recorded: 2 calls or look-ups"
done
record record_loader dlsym old_host
same "old calls for host memory" "$(events t.h5)" "$(cat wanted)"
same "notes of old calls" "$(sed 's/^t.h5: //' said)" \
    "host memory, 3 events
1 blocks and handles are not requests because they refer to memory that was\
 allocated elsewhere
host memory: 1 ranges, 4 KiB in all, are the program's own: it registered them\
 (cudaHostRegister); they count as pinned, in pool 0:1"
# fields COMMAND...: prints need_bytes or the peak of a run on host memory.
fields() {
    "$fragsim" "$@" -q -p direct --device host --json - |
        grep -oE '"(need|peak_requested|peak_reserved)_bytes": [0-9]+'
}
same "fit of host" "$(fields fit t.h5)" \
    '"peak_reserved_bytes": 5120
"need_bytes": 5120'
same "replay of host" "$(fields replay t.h5 -c inf)" \
    '"peak_requested_bytes": 4796
"peak_reserved_bytes": 5120'
same "the pool that is set" "$(fact pools t.h5)" 2
record record_loader dlsym unread
same "exit code where nothing is a request" $? 5
same "words where nothing is a request" "$(head -1 said)" "no trace: calls\
 of cuMemMapArrayAsync are not recorded: 1 calls or look-ups"
for seed in 1 2 3; do
    SEED=$seed record record_loader dlsym mixed
    same "exit code of order $seed" $? 0
    wants "order $seed"
    same "requests in order $seed" "$(events t.h5)" "$(cat wanted)"
    same "notes of order $seed" \
        "$(grep -cE 'without a free|no recorded call|reason' said)" 0
done

# ---- threads, processes, devices, streams ----

record record_loader entry threads
same "requests of 8 threads" "$(counts t.h5)" "alloc 32000, free 32000"
same "notes of 8 threads" "$(cat said)" "t.h5: device 0, 64000 events"
record record_loader dlsym stress
same "requests of a million calls" "$(counts t.h5)" "alloc 500000, free 500000"
same "notes of a million calls" "$(cat said)" "t.h5: device 0, 1000000 events
t.h5: 125000 arrays count with the bytes of their elements only"
record record_loader dlsym fork
same "traces of a program and 5 forks" \
    "$(for t in t.*.h5; do counts "$t"; done | sort | uniq -c | tr -s ' ')" \
    " 5 alloc 100, free 100
 1 alloc 300, free 300"
same "names of their traces" \
    "$(for t in t.*.h5; do echo "$t"; done | tr -d 0-9 | uniq -c)" \
    "$(printf '%7d t..h' 6)"
same "notes of a program and 5 forks" \
    "$(grep -c ': device 0, ' said), $(grep -vc ': device 0, ' said) others" \
    "6, 0 others"
record record_loader dlsym exec
same "traces of a program and what it became" \
    "$(for t in t.*-1.h5 t.*[0-9].h5; do counts "$t"; done | sort -u)" \
    "alloc 1
alloc 13, free 12"
record record_program linked devices
same "requests of device 0" "$(events t.h5 --device 0)" "alloc 1 1000 0
free 1"
same "requests of device 1" \
    "$(events t.h5 --device 1 | sed 's/4000 .*/4000 stream/')" "alloc 1 2000 0
alloc 2 3000 0
alloc 3 4000 stream
free 1
free 2
alloc 4 1125899906842624 0
free 4"
same "what is free of another device than the thread's is not known" \
    "$(grep -c 'bytes were free' said)" 0
record record_loader entry own_streams
same "default streams of two threads" \
    "$(events t.h5 | awk '{ print $4 }' | sort -u | wc -l)" 2

# ---- the trace of a killed program ----

# Waits until the program has printed something, at most ten seconds.
await_words() {
    for _ in $(seq 200); do
        [ -s wanted ] && return
        sleep 0.05
    done
    same "the words of a program" "none: $(cat said)" "some"
}

rm wanted
"$fragsim" record -o t2.h5 -- "$parts/record_loader" dlsym wait >wanted 2>said &
tool=$!
disown
await_words
kill -9 $tool
same "the log of a recorder that was killed" \
    "$(counts t2.h5.logs-*/*.fragrec)" "alloc 1"
kill -9 "$(basename t2.h5.logs-*/*.fragrec | cut -d- -f1)"

# terminated WHAT: the recorder is terminated as soon as its program runs.
terminated() {
    rm -f wanted t3.h5
    "$fragsim" record -q -o t3.h5 -- "$parts/record_loader" dlsym wait \
        >wanted 2>said &
    tool=$!
    await_words
    kill -TERM $tool
    wait $tool
    same "exit code where both are terminated, $1" $? 143
    wants "what was terminated, $1"
    same "the trace of what was terminated, $1" "$(events t3.h5)" "$(cat wanted)"
}

terminated "at any time"
cat >slow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
pid_t fork(void)
{
    pid_t (*next)(void), child;
    *(void **)&next = dlsym(RTLD_NEXT, "fork");
    child = next();
    if (child > 0)
        usleep(300000);
    return child;
}
END
# The tool may be built with a sanitizer, which must be the first library.
cc -shared -fPIC slow.c -o slow.so
same "the compiler's exit code for slow.c" $? 0
LD_PRELOAD=$PWD/slow.so ASAN_OPTIONS=verify_asan_link_order=0 \
    terminated "before its fork returns"

# A limit on the size of files simulates a full disk. 1 MiB (bash counts in KiB)
# has room for 16384 calls, less 64 for the header.
rm -rf t.*
"$fragsim" record -o t.h5 -- bash -c 'ulimit -f 1024; exec "$@"' - \
    "$parts/record_loader" dlsym threads 2>said
same "exit code on a full disk" $? 0
same "calls missing on a full disk" \
    "$(grep -o '[0-9]* calls are missing' said)" "47680 calls are missing"
FRAGSIM_RECORD_FOLDER=$folder/none LD_PRELOAD=$build/libfragsim_record.so \
    "$parts/record_loader" dlsym blocks >/dev/null 2>said
same "exit code without a folder" $? 0
same "words without a folder" "$(sed 's/process [0-9]*/process N/' said)" \
    "fragsim record: nothing of process N is recorded: $folder/none: No such\
 file or directory"

# ---- the command ----

# ended WHAT CODE WORDS ARGUMENTS...: checks the exit code and the message of
# `fragsim record ARGUMENTS`.
ended() {
    local what=$1 code=$2 words=$3
    shift 3
    "$fragsim" record "$@" >out 2>said </dev/null
    same "exit code of $what" $? "$code"
    same "words of $what" "$(grep -cF -- "$words" said)" 1
}

rm -rf t.*
same "signals that the program ignores" \
    "$("$fragsim" record -o t.h5 -- bash -c 'trap -p' 2>/dev/null)" \
    "$(bash -c 'trap -p')"
ended "no CUDA" 5 "made no CUDA memory calls" -o t.h5 -- true
ended "no CUDA, and a failure" 3 "made no CUDA memory calls" -o t.h5 -- sh -c 'exit 3'
ended "no program" 4 "no_such_program cannot be run: No such file" \
    -o t.h5 -- no_such_program
ended "no output" 2 "expected -o FILE" -- true
ended "no folder" 4 "nowhere/t.h5" -o nowhere/t.h5 -- true
same "files after all that" "$(ls -d t.* 2>/dev/null)" ""
echo mine >t.h5
ended "an output that exists" 4 "t.h5 exists; -f overwrites it" \
    -o t.h5 -- sh -c 'echo ran >ran'
same "the program of an output that exists" "$(cat t.h5 ran 2>/dev/null)" mine
"$fragsim" record -q -f -k -o t.h5 -- "$parts/record_loader" dlsym blocks \
    >wanted 2>said
same "words of -q -k" "$(sed 's/-[A-Za-z0-9]*;/-X;/' said)" \
    "fragsim record: the logs are in $folder/t.h5.logs-X; every command can read\
 them"
same "the log that -k keeps" "$(events t.h5.logs-*/*.fragrec)" "$(cat wanted)"
"$fragsim" record -o late.h5 -- \
    sh -c "(sleep 0.3; '$parts/record_loader' dlsym threads) & exit 7" 2>said
same "exit code of a program that leaves another behind" $? 7
same "requests of what was left behind" "$(counts late.h5)" \
    "alloc 32000, free 32000"
cat >puts.c <<'END'
#include <stdio.h>
int main(void) { puts("text"); puts("text"); return 0; }
END
# The tool itself also runs with that library, and may be built with a
# sanitizer.
cc -fno-builtin puts.c -o puts
same "another library that is loaded first" \
    "$(LD_PRELOAD=$parts/librecord_next.so \
        ASAN_OPTIONS=verify_asan_link_order=0 \
        "$fragsim" record -o next.h5 -- ./puts 2>/dev/null)" "next: text
next: text"

echo "$((checks - failures)) of $checks checks of the recorder passed"
[ "$failures" -eq 0 ]
