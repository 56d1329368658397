#!/usr/bin/env bash
# check_bad_input.sh: checks fragsim's reaction to faults of an input, an output
# or a command line. It must print one line on stderr that names the faulty
# thing (a second line may name the help), return the exit code of that kind of
# fault, print nothing on stdout, and leave no file.
# Environment: FRAGSIM (the tool; default build/fragsim).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fragsim=${FRAGSIM:-$root/build/fragsim}
bundled=$root/traces/bundled/gpt2_train.pickle.xz
[ -x "$fragsim" ] || {
    echo "check_bad_input: no tool at $fragsim; skipped"
    exit 77
}
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/work" "$folder/mutants" && cd "$folder/work" || exit 2
out=$folder/out err=$folder/err
failures=0 checks=0

# Lists the current folder, to detect files that a command adds to it.
listing() { find . | sort; }

wrong() {
    echo "FAILED $*"
    sed 's/^/    stderr: /' "$err" | head -5
    failures=$((failures + 1))
}

# judge CODES FOUND NAME WORD: checks that the exit code is one of CODES, that
# the error is one line with WORD in it, and that the folder is unchanged.
judge() {
    local codes=$1 found=$2 name=$3 word=$4 lines
    checks=$((checks + 1))
    case " $codes " in
    *" $found "*) ;;
    *)
        wrong "$name: exit $found, not $codes"
        return
        ;;
    esac
    if [ "$found" -ne 0 ]; then
        lines=$(grep -Evc '^Try |^fragsim sweep: 1 trace or cell failed' "$err")
        [ "$lines" -eq 1 ] || wrong "$name: $lines lines on stderr, not 1"
        grep -qF -- "$word" "$err" || wrong "$name: stderr lacks '$word'"
        [ ! -s "$out" ] || wrong "$name: something on stdout"
    fi
    [ "$(listing)" = "$before" ] ||
        wrong "$name: left $(listing | diff - <(echo "$before") | tr '\n' ' ')"
    rm -f result.h5*
}

# refuse CODES WORD ARGUMENTS...: runs fragsim ARGUMENTS, which must fail.
refuse() {
    local codes=$1 word=$2
    shift 2
    "$fragsim" "$@" >"$out" 2>"$err" </dev/null
    judge "$codes" $? "fragsim $*" "$word"
}

# refuse_input CODES NAME: replays the file NAME, which must fail with its name.
refuse_input() {
    refuse "$1" "$2" replay "$2" -p direct -o result.h5
}

csv() { printf 'op,id,bytes,stream\n%s\n' "$2" >"$1"; }

csv good.csv 'alloc,1,512,0'
csv twice.csv $'alloc,1,512,0\nfree,1,0,0\nfree,1,0,0'
csv unknown_id.csv 'free,7,0,0'
csv live_id.csv $'alloc,1,512,0\nalloc,1,512,0'
csv zero.csv 'alloc,1,0,0'
csv huge.csv 'alloc,1,9223372036854775808,0'
csv beyond.csv 'alloc,1,99999999999999999999,0'
csv negative.csv 'alloc,1,-512,0'
csv word.csv 'alloc,1,many,0'
csv op.csv 'realloc,1,512,0'
csv short.csv 'alloc,1'
printf 'op,id\nalloc,1\n' >header.csv
head -c 100000 /dev/zero | tr '\0' 'a' >long_line.csv
: >empty
printf 'a shopping list\nmilk\n' >prose.txt
head -c 4096 /dev/zero >zeros
printf '\x80\x02cposix\nsystem\nX\x0b\x00\x00\x00touch owned\x85R.' >call.pickle
printf '\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch owned\x85R.' \
    >call4.pickle
printf '\x80\x02}' >cut.pickle
printf '\x80\x02]q\x00.' >list.pickle
printf '\x1f\x8b\x08' >cut.gz
printf '\xfd7zXZ\x00\x00' >cut.xz
printf '\x28\xb5\x2f\xfd' >cut.zst
printf 'PK\x03\x04' >cut.pt
printf '\x89HDF\r\n\x1a\n' >cut.h5
mkdir directory
before=$(listing)

for file in twice.csv unknown_id.csv live_id.csv zero.csv huge.csv beyond.csv \
    negative.csv word.csv op.csv short.csv header.csv long_line.csv empty \
    prose.txt zeros call.pickle call4.pickle cut.pickle cut.gz cut.xz cut.zst \
    cut.pt cut.h5; do
    refuse_input 3 $file
done
# An empty list of segments is a snapshot without events; success and an error
# are both acceptable.
"$fragsim" info list.pickle >"$out" 2>"$err" </dev/null
judge '0 3' $? 'info list.pickle' list.pickle
# The message must have the place in the file, not only its name.
for place in twice.csv:4 unknown_id.csv:2 word.csv:2 short.csv:2; do
    refuse 3 "$place" info "${place%:*}"
done

refuse_input 4 missing.pickle
refuse_input '3 4' directory
refuse 4 nowhere/result.h5 replay good.csv -p direct -o nowhere/result.h5
refuse 4 directory replay good.csv -p direct -f -o directory
refuse 2 "found the input" replay good.csv -p direct -o good.csv
cp good.csv again.csv
before=$(listing)
refuse 2 "found the input" import again.csv -f -o ./again.csv
refuse 2 "found the input" replay again.csv -f -p direct --csv again.csv
cmp -s again.csv good.csv || wrong 'an input was replaced'
cmp -s good.csv <(printf 'op,id,bytes,stream\nalloc,1,512,0\n') ||
    wrong 'an existing output was not kept'

refuse 2 no_such_verb no_such_verb
refuse 2 no-such-option replay good.csv --no-such-option
refuse 2 no_such_policy replay good.csv -p no_such_policy
refuse 2 no_such_key replay good.csv -p first_fit:no_such_key=1
refuse 2 expandeable replay good.csv -p torch:expandeable_segments:True
refuse 2 12xyz replay good.csv -p direct -c 12xyz
refuse '2 4' nothere.csv import nothere.csv -o result.h5

refuse 2 "for which this host has memory, found 99999999999999 times 1" \
    edit good.csv -e repeat:times=99999999999999 -o result.h5
refuse 2 "expected a whole number from 1" gen stationary:allocs=1e18 -o result.h5
refuse 2 "expected a size" replay good.csv -c 0

# A snapshot and a trace file without a device.
printf '\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces]u.' >bare.pickle
"$fragsim" import good.csv -q -o devices.h5
python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import h5py' 2>/dev/null && python=$one && break
done
[ ! "$python" ] || "$python" -c 'import h5py
with h5py.File("devices.h5", "r+") as f:
    del f["devices"]["0"]'
before=$(listing)
for verb in info top replay "triage -c 1GiB -o result.html" "sweep -o result.h5"; do
    # shellcheck disable=SC2086
    [ ! "$python" ] || refuse 3 "expected 1 to 1024 devices" $verb devices.h5
done
refuse 3 "the snapshot has no history" replay -q bare.pickle
refuse 3 "the snapshot has no history" sweep bare.pickle -o result.h5
"$fragsim" info bare.pickle >"$out" 2>"$err"
judge 0 $? 'info bare.pickle' ''

# Calls of the system fail for the files whose name has FAULTY in it. A
# sanitizer must be the first library, so it is not preloaded here.
cat >fault.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(const char *call, int fd)
{
    const char *name = getenv("FAULTY"), *which = getenv("FAULT");
    char link[64], path[4096] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return name && which && !strcmp(which, call) &&
           readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, name);
}

#define READ(name, offset, ...) \
    ssize_t name(int fd, void *to, size_t size offset) \
    { \
        if (fails("read", fd)) { \
            errno = EIO; \
            return -1; \
        } \
        return ((ssize_t (*)())dlsym(RTLD_NEXT, #name))(__VA_ARGS__); \
    }
#define COMMA_AT , long at
READ(read, , fd, to, size)
READ(pread, COMMA_AT, fd, to, size, at)
READ(pread64, COMMA_AT, fd, to, size, at)

void *mmap(void *at, size_t size, int rights, int how, int fd, off_t from)
{
    if (fd >= 0 && fails("read", fd)) {
        errno = EIO;
        return (void *)-1;
    }
    return ((void *(*)())dlsym(RTLD_NEXT, "mmap"))(at, size, rights, how, fd,
                                                   from);
}

int flock(int fd, int how)
{
    if (fails("lock", fd)) {
        errno = ENOLCK;
        return -1;
    }
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, how);
}
END
case ${FRAG_INSTALL_CFLAGS:-} in *sanitize*) ;; *)
    cc -w -shared -fPIC fault.c -o fault.so -ldl ;;
esac
"$fragsim" import good.csv -q -o whole.h5
# An unfinished sweep has a chunk, which must stay as it is.
"$fragsim" sweep good.csv missing.csv -q -p direct -o grid.h5 2>/dev/null
cp grid.h5.part/00000000.h5 chunk.copy
before=$(listing)

# faulty CALL NAME WORD ARGUMENTS...: as refuse 4, with this fault.
faulty() {
    local call=$1 name=$2 word=$3
    shift 3
    # shellcheck disable=SC2097,SC2098
    FAULT=$call FAULTY=$name LD_PRELOAD=$PWD/fault.so \
        "$fragsim" "$@" >"$out" 2>"$err" </dev/null
    judge 4 $? "$call of $name fails: fragsim $*" "$word"
}
if [ -e fault.so ]; then
    for file in good.csv whole.h5 bare.pickle; do
        faulty read $file "Input/output error" info $file
        faulty read $file "Input/output error" replay $file
    done
    sweep="sweep good.csv missing.csv -q -p direct -o grid.h5 --resume"
    # shellcheck disable=SC2086
    faulty lock grid.h5.part/lock "cannot lock it" $sweep
    # shellcheck disable=SC2086
    faulty read grid.h5.part/0 "Input/output error" $sweep
    cmp grid.h5.part/00000000.h5 chunk.copy || wrong 'the chunk was changed'
    for verb in info replay top; do
        faulty lock whole.h5 "set HDF5_USE_FILE_LOCKING=FALSE" $verb whole.h5
    done
fi

# The disk is full: at once, and after some blocks.
checks=$((checks + 1))
: >"$out"
"$fragsim" replay good.csv -p direct --json - >/dev/full 2>"$err" </dev/null
[ $? -eq 4 ] || wrong '--json - to a full device: not exit 4'
for blocks in 0 1 2 8; do
    # stderr goes through a pipe: the limit would hold for a file too.
    (
        ulimit -f $blocks
        exec "$fragsim" replay good.csv -p direct -o result.h5 2>&1 >/dev/null
    ) </dev/null | cat >"$err"
    judge 4 "${PIPESTATUS[0]}" "replay on a disk of $blocks KiB" result.h5
done

if [ -f "$bundled" ] && command -v xz >/dev/null; then
    cd "$folder/mutants" || exit 2
    xz -dc "$bundled" >whole.pickle
    size=$(stat -c %s whole.pickle)
    : >mutant.pickle
    before=$(listing)
    for i in $(seq 1 16); do
        head -c $((size * i / 17)) whole.pickle >mutant.pickle
        refuse_input 3 mutant.pickle
    done
    # One bit of one byte turned over; many such files are still snapshots.
    for i in $(seq 1 32); do
        at=$(((i * 7919 * 7919) % size))
        byte=$(od -An -tu1 -j $at -N 1 whole.pickle | tr -d ' ')
        cp whole.pickle mutant.pickle
        printf '%b' "\\x$(printf %x $((byte ^ (1 << (i % 8)))))" |
            dd of=mutant.pickle bs=1 seek=$at conv=notrunc status=none
        "$fragsim" info mutant.pickle >"$out" 2>"$err" </dev/null
        judge '0 3' $? "bit $((i % 8)) of byte $at" mutant.pickle
    done
fi

echo "$((checks - failures)) of $checks checks of bad input passed"
[ "$failures" -eq 0 ]
