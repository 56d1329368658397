#!/usr/bin/env bash
# check_plugin.sh: checks that the policy in tests/package/plugin, built with the files
# of `cmake --install`, is replayed and tested by the installed tool, that one
# which breaks its contract is found, and that a file which is not a policy is
# refused with its reason.
# Environment: FRAG_BUILD_DIR (default build), FRAG_INSTALL_CFLAGS.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" >"$folder/log"
cp -r "$root/tests/package/plugin" "$folder/plugin"
cp "$root/tests/cli/small.csv" "$folder"
cd "$folder"
fragsim=$folder/prefix/bin/fragsim
flags=${FRAG_INSTALL_CFLAGS:-}

[ "$(wc -l <plugin/bump.c)" -le 60 ] || {
    echo "the example has grown to more than 60 lines"
    exit 1
}
{
    cmake -G Ninja -S plugin -B plugin/build -DCMAKE_PREFIX_PATH="$folder/prefix" \
        -DCMAKE_C_FLAGS="$flags -Wall -Wextra -Werror" &&
        cmake --build plugin/build
} >>log 2>&1 || {
    cat log
    exit 1
}
cp plugin/build/libbump.so bump.so

# same WHAT FOUND WANTED
same() {
    [ "$2" = "$3" ] || {
        printf '%s\n  found:  %s\n  wanted: %s\n' "$1" "$2" "$3"
        exit 1
    }
}

# columns NAMES: prints these columns of the CSV on stdin.
columns() {
    awk -F, -v names="$1" 'NR == 1 {
            for (i = 1; i <= NF; i++) at[$i] = i
            n = split(names, name)
        }
        {
            line = $at[name[1]]
            for (i = 2; i <= n; i++) line = line "," $at[name[i]]
            print line
        }'
}

# The first four blocks need 29,001,216 bytes in whole quanta, and no memory is
# reused while a block lives. So 40 MiB have no room for the last block, event
# 6.
same "rows of the policy" \
    "$("$fragsim" replay small.csv -q --check -p ./bump.so \
        -p bump.so:region=40MiB -p "$folder/bump.so:region=40MiB" --csv - |
        columns params,peak_reserved_bytes,num_ooms,first_oom_event)" \
    "params,peak_reserved_bytes,num_ooms,first_oom_event
region=64MiB,67108864,0,
region=40MiB,41943040,1,6
region=40MiB,41943040,1,6"
same "its parameters" \
    "$("$fragsim" policies ./bump.so | sed -n '1p;3,4p')" \
    "bump         one region, emptied as a whole
    quantum: 512 bytes
    region=64MiB"

"$fragsim" sweep small.csv -q -f -p ./bump.so:region=40MiB -p ./bump.so -p best_fit \
    -o sweep.h5 --csv sweep.csv
same "rows of a sweep" "$(columns policy,num_ooms <sweep.csv | grep -v best_fit)" \
    "policy,num_ooms
./bump.so,0
./bump.so:region=40MiB,1"

# Every property of the example holds, with parameters too.
for policy in ./bump.so ./bump.so:region=1MiB; do
    "$fragsim" policies --test "$policy" >properties
    same "the tested policy" "$(head -1 properties)" "$policy"
    same "properties of $policy" \
        "$(tail -n +2 properties | grep -Evc ' (pass|has none)$')" 0
    [ "$(tail -n +2 properties | wc -l)" -ge 10 ]
done

# Each fault of broken.c is found by a property and, if it is one of a block, by
# the ledger of a run that does not ask for it.
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim plugin/broken.c -o broken.so

# lacks POLICY PROPERTY: the test of the policy fails, and names the property.
lacks() {
    local code=0
    "$fragsim" policies --test "$1" >properties 2>words || code=$?
    same "exit code of the test of $1" "$code" 1
    grep -q "^    $2.* FAIL$" properties || {
        echo "$1: found no failure of: $2"
        cat properties
        exit 1
    }
    same "words of the test of $1" "$(cat words)" \
        "fragsim policies: $1 lacks $(grep -c ' FAIL$' properties) of these properties"
}

"$fragsim" policies --test ./broken.so >properties
same "faults without a fault" "$(grep -c FAIL properties)" 0
blocks="blocks are aligned, inside held memory, and do not overlap"
for fault in overlap misaligned outside short; do
    lacks ./broken.so:fault=$fault "$blocks"
    lacks ./broken.so:fault=$fault "the ledger accepts replays"
done
lacks ./broken.so:fault=eager "an empty trace is served"
lacks ./broken.so:fault=fine "blocks take whole quanta of held memory"
lacks ./broken.so:fault=keep "trim returns all memory"
lacks ./broken.so:fault=state "its own check finds nothing"
lacks ./broken.so:fault=lose "closing returns all memory"
lacks ./broken.so:fault=change "the same calls have the same answers"
lacks ./broken.so:fault=owner "the owners of blocks do not matter"
lacks ./broken.so:fault=give_up "a request that the device cannot meet"
lacks ./broken.so:fault=invent "a refused device call harms"

# caught FAULT WORDS: replay, fit and a sweep end with the words of the ledger.
caught() {
    local policy=./broken.so:fault=$1 code said verb
    for verb in replay fit "sweep -o broken.h5 -f"; do
        code=0
        # shellcheck disable=SC2086
        said=$("$fragsim" $verb small.csv -q -p "$policy" 2>&1) || code=$?
        same "exit code of $verb with $policy" "$code" 1
        case $said in
        *"broken: event "*"$2"*) ;;
        *) same "words of $verb with $policy" "$said" "$2" ;;
        esac
    done
}
caught overlap "overlaps a live block"
caught misaligned "is not aligned to 256 bytes"
caught outside "is not inside memory that is held"
caught short "is smaller than the request"

# A run that ends by the error of its device takes no other one with it.
printf 'op,id,bytes,stream\nalloc,0,50000000,0\nalloc,1,50000000,0\n' >two.csv
code=0
"$fragsim" replay two.csv -q -f -p ./broken.so:fault=fail \
    -p direct -o run.h5 --points 0 --json run.json --csv run.csv \
    >table 2>words || code=$?
same "exit code beside a failed run" "$code" 5
same "rows beside a failed run" \
    "$(columns policy,num_ooms,peak_requested_bytes,start <run.csv)" \
    "policy,num_ooms,peak_requested_bytes,start
./broken.so:fault=fail,,,
direct,0,100000000,empty"
same "words about a failed run" "$(cat words)" \
    "two.csv, ./broken.so:fault=fail at unlimited: broken: event 1: the device reported an error
fragsim replay: 1 of 2 runs failed; the table has the others"
same "its row in the table" \
    "$(grep -c '^./broken.*unlimited  *failed  *-  *-' table)" 1
grep -q '"notes": \["broken: event 1: the device reported an error"\]' run.json
same "what the result file lacks" \
    "$(h5dump -a missing run.h5 | grep -c 'two.csv, ./broken.so')" 1

# checked OPTIONS...: whether the run in a result file was checked.
checked() {
    "$fragsim" replay small.csv -q -f -o run.h5 "$@" >table
    "$python" -c 'import h5py
print(h5py.File("run.h5")["/runs/0"].attrs["checked"])'
}
python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import h5py' 2>/dev/null && python=$one && break
done
if [ "$python" ]; then
    same "a plugin is checked" "$(checked -p ./bump.so)" 1
    same "a policy of the tool" "$(checked -p best_fit)" 0
    same "a policy of the tool with --check" "$(checked -p best_fit --check)" 1
else
    echo "h5py is missing; the attribute of result files is not read"
fi

# refused POLICY WORDS...: fragsim exits for wrong use, and prints only WORDS.
refused() {
    local policy=$1 said code=0
    shift
    said=$("$fragsim" replay small.csv -p "$policy" 2>&1) || code=$?
    same "exit code of -p $policy" "$code" 2
    same "words of -p $policy" "$said" "fragsim replay: $*"
}

refused ./bump.so:region=1B \
    "bump: region=1B is out of range; expected 512 to 1TiB"
refused ./bump.so:regoin=1GiB \
    "bump: unknown parameter regoin; did you mean \"region\"? The parameters are region"
refused ./none.so "the policy cannot be loaded: ./none.so: cannot open" \
    "shared object file: No such file or directory"
refused none.so "the policy cannot be loaded: ./none.so: cannot open" \
    "shared object file: No such file or directory"
refused ./small.csv "the policy cannot be loaded: ./small.csv: invalid ELF header"

code=0
said=$("$fragsim" run -p ./bump.so -- echo ran 2>&1) || code=$?
same "exit code of a program on a plugin" "$code" 2
same "words of it" "$said" "fragsim run: ./bump.so: expected a policy of\
 fragsim; a policy in a shared library cannot serve a program"

echo 'int nothing;' >empty.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC empty.c -o empty.so
refused ./empty.so "./empty.so is not a policy: expected the symbol" \
    "frag_policy_plugin, found none"

sed 's/\(FRAG_POLICY_ABI = \)[0-9]*,/\1999,/' \
    prefix/include/fragsim/policies/policy.h >policy.h
{
    cat policy.h
    sed '/#include/d' plugin/bump.c
} >other.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim other.c -o other.so
refused ./other.so "./other.so was built for version 999 of the policy" \
    "interface, but this fragsim has version 9: build the plugin again"

echo '#include <policies/policy.h>
static const struct frag_policy half = {.name = "half"};
FRAG_POLICY_PLUGIN(half);' >half.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim half.c -o half.so
refused ./half.so "./half.so: expected a policy with a name, summary, source," \
    "alloc and free, found no summary: set it"

# A policy must state its quantum: none is assumed for it.
for quantum in "" ".quantum = 0," ".quantum = 384," ".quantum = 1024,"; do
    sed "s/\.quantum = FRAG_QUANTUM,/$quantum/" plugin/bump.c >units.c
    # shellcheck disable=SC2086
    cc $flags -shared -fPIC -Iprefix/include/fragsim units.c -o units.so
    found=${quantum//[!0-9]/}
    refused ./units.so "./units.so: expected a policy whose \`quantum' is a" \
        "power of two up to 512 bytes, the unit to which it rounds requests," \
        "found ${found:-0}"
done

# What it hears and the function that hears it belong together.
sed "s/    \.quantum = FRAG_QUANTUM,/&\n    .needs = FRAG_HEARS_FREES,/" plugin/bump.c >deaf.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim deaf.c -o deaf.so
refused ./deaf.so "./deaf.so: expected \`hear' together with FRAG_HEARS_POOLS or" \
    "FRAG_HEARS_FREES in \`needs', found only a bit"

# altered NAME SED: bump.c, changed by the script, is built as NAME.so.
altered() {
    {
        echo '#include <stdlib.h>
#include <unistd.h>'
        sed "$2" plugin/bump.c
    } >"$1.c"
    if cmp -s <(tail -n +3 "$1.c") plugin/bump.c; then
        echo "$1: the script changes nothing"
        exit 1
    fi
    # shellcheck disable=SC2086
    cc $flags -w -shared -fPIC -Iprefix/include/fragsim "$1.c" -o "$1.so"
}

# ends NAME CODE WORDS ARGS...: the command ends with this code, and a line on
# stderr has words that match the extended pattern.
ends() {
    local name=$1 wanted=$2 words=$3 code=0
    shift 3
    timeout 60 "$fragsim" "$@" >properties 2>words </dev/null || code=$?
    same "exit code of $1 with $name" "$code" "$wanted"
    grep -Eq "^(fragsim $1|small\.csv, .*): $words" words ||
        same "words of $1 with $name" "$(cat words)" "$words"
}

# A table that is wrong is refused when the policy is loaded, with the member
# that is wrong: NAME|SED|WORDS.
while IFS='|' read -r name script words; do
    altered "$name" "$script"
    words="\./$name\.so: $words"
    ends "$name" 2 "$words" replay small.csv -p "./$name.so"
    ends "$name" 2 "$words" policies --test "./$name.so"
    ends "$name" 2 "$words" policies "./$name.so"
done <<'END'
kind|s/FRAG_PARAM_SIZE/(enum frag_param_kind)77/|parameter region: expected a kind .*found 77: set
negative|s/FRAG_PARAM_SIZE/(enum frag_param_kind)-1/|parameter region: expected a kind .*found -1: set
choice|s/FRAG_PARAM_SIZE/FRAG_PARAM_CHOICE/|parameter region .*expected choices for FRAG_PARAM_CHOICE
choices|s/FRAG_PARAM_SIZE/FRAG_PARAM_CHOICE/; s/"64MiB", NULL/"a", "a\x7c\x7cb"/|parameter region .*an empty word: remove it
offset|s/offsetof(struct bump, region)/1ull << 50/|parameter region .*expected an offset inside of the state
behind|s/offsetof(struct bump, region)/sizeof(struct bump) - 4/|parameter region .*expected an offset inside of the state
wraps|s/offsetof(struct bump, region)/-4/|parameter region .*expected an offset inside of the state
stateless|s/sizeof(struct bump)/0/|parameter region .*expected an offset inside of the state
default|s/"64MiB"/NULL/|parameter region .*expected a default, found none
outside|s/"64MiB"/"1B"/|bump: region=1B is out of range; expected 512 to 1TiB
range|s/512, 0x1p40/9e9, 1/|parameter region .*expected a range with min <= max
helpless|s/"bytes of the region"/NULL/|parameter region .*expected a help text, found none
partner|s/region", NULL},/region", "limit"},/|parameter region .*expected in .at_most. another
twice|s/^    {.name = NULL},/    params_row, params_row, &/; s/^static const struct frag_param params/#define params_row {"x", FRAG_PARAM_SWITCH, 8, "no", NULL, 0, 0, "x", NULL}\n&/|parameter 3: expected a name of its own
state|s/sizeof(struct bump)/1ull << 60/|expected a policy whose .state_size. is at most
needs|s/.fini = fini,/&.needs = 1u << 30,/|expected a policy whose .needs. are
describe|s/.fini = fini,/&.describe = (void (*)(const void *, FILE *))fini,/|expected both configure and describe .*found only describe
END

# A policy that crashes, ends the process, never returns or breaks a rule is
# named with the event: NAME|SED|WORDS|WORDS OF --test. A sanitizer of the
# plugin ends the process where a signal would.
crash='the policy (crashed: signal [0-9]+ \(|ended the process with exit code)'
blocks_test='blocks are aligned, inside held memory, and do not overlap: '
while IFS='|' read -r name script words test; do
    altered "$name" "$script"
    words=${words//BUMP/bump \\(\\./$name\\.so\\)}
    test=${test//BUMP/bump \\(\\./$name\\.so\\)}
    export FRAGSIM_PLUGIN_SECONDS=60 FRAGSIM_PLUGIN_MEMORY=600MiB
    [ "$name" != loop ] || FRAGSIM_PLUGIN_SECONDS=1
    for verb in replay sweep; do
        rm -rf out.h5 out.h5.part
        ends "$name" 1 "${words//CRASH/$crash}" $verb small.csv -q \
            -p "./$name.so" -o out.h5 -f
        if [ -e out.h5 ]; then
            echo "$verb with $name has left a result"
            exit 1
        fi
        same "partial files of $verb with $name" "$(compgen -G 'out.*partial*')" ""
    done
    ends "$name" 1 "${test//CRASH/$crash}" policies --test "./$name.so"
done <<END
segv|s/p->live++/*(volatile int *)0 = 1/|BUMP: event 0: CRASH|${blocks_test}BUMP: event [0-9]+: CRASH
segv_free|s/p->used = --p/*(volatile int *)0 = 1; &/|BUMP: event 3: CRASH|${blocks_test}BUMP: event [0-9]+: CRASH
segv_fini|s/    if (p->base)/    *(volatile int *)0 = 1;\n&/|BUMP: in fini: CRASH|an empty trace is served: BUMP: in fini: CRASH
exit0|s/p->live++/exit(0)/|BUMP: event 0: the policy ended the process with exit code|${blocks_test}BUMP: event [0-9]+: the policy ended
exit_at_once|s/p->live++/_exit(0)/|BUMP: event 0: the policy ended the process with exit code 0|${blocks_test}BUMP: event [0-9]+: the policy ended
load|s/^FRAG_POLICY_PLUGIN/__attribute__((constructor)) static void c(void) { _exit(0); }\n&/|\./load\.so: while it was loaded: the policy ended the process with exit code 0|\./load\.so: while it was loaded: the policy ended
loop|s/p->live++/for (;;) __asm__ volatile("")/|BUMP: event 0: no answer of the policy for 1 s: .*FRAGSIM_PLUGIN_SECONDS allows more|${blocks_test}BUMP: event [0-9]+: no answer of the policy for 1 s
leak|s/p->live++/volatile char *q = malloc(1 << 28); for (size_t i = 0; i < 1 << 28; i += 4096) q[i] = 1; &/|BUMP: event [0-9]+: CRASH.*FRAGSIM_PLUGIN_MEMORY allows more|${blocks_test}BUMP: event [0-9]+: CRASH
END

altered closes 's/p->live++/for (int i = 0; i < 64; i++) close(i); &/'
closed="after a run of bump \\(\./closes\.so\\): the policy closed stderr"
ends closes 1 "$closed" replay small.csv -p ./closes.so
ends closes 1 "$closed" policies --test ./closes.so

# ... and one that breaks a rule of its calls fails like any other cell.
while IFS='|' read -r name script words; do
    altered "$name" "$script"
    ends "$name" 1 "bump: event 0: $words" replay small.csv -p "./$name.so"
    ends "$name" 1 "\./$name\.so lacks [0-9]+ of these" policies --test "./$name.so"
done <<'END'
unknown|s/p->live++/return (enum frag_err)12345/|alloc returns 12345: expected FRAG_OK, FRAG_OOM, FRAG_NOMEM or FRAG_DEVICE
minus|s/p->live++/return (enum frag_err)-1/|alloc returns -1: expected FRAG_OK
cancelled|s/p->live++/return FRAG_CANCELLED/|alloc returns 9: expected FRAG_OK
foreign|s/p->live++/heap->mem->ops->segment_free(heap->mem, 12345, 512); &/|the policy calls segment_free with address 0x3039 and 512 bytes: expected a segment that the policy holds, with the address
nothing|s/p->live++/heap->mem->ops->segment_alloc(heap->mem, 0, \&p->base); &/|the policy calls segment_alloc with address 0x0 and 0 bytes: expected a size above 0
END
altered init 's/.fini = fini,/&.init = wrong,/; s/^static const struct frag_policy/static enum frag_err wrong(struct frag_heap *h) { return (enum frag_err)77; }\n&/'
ends init 1 "bump: init returns 77: expected a code of enum frag_err" \
    replay small.csv -p ./init.so

# A slow policy is not a stuck one; a signal for the command reaches the run,
# which does not outlive the command.
altered slow 's/p->live++/usleep(800000); &/'
export FRAGSIM_PLUGIN_SECONDS=3
unset FRAGSIM_PLUGIN_MEMORY
"$fragsim" replay small.csv -q -p ./slow.so >numbers
altered endless 's/p->live++/for (;;) usleep(100000)/'
for signal in TERM KILL; do
    mkfifo "fifo.$signal"
    FRAGSIM_PLUGIN_SECONDS=0 "$fragsim" replay small.csv -q -p ./endless.so \
        >"fifo.$signal" 2>words &
    run=$!
    (sleep 0.5 && kill -$signal $run) &
    timeout 20 cat "fifo.$signal" >/dev/null ||
        same "the run after SIG$signal" "it goes on" "its end"
    code=0
    wait $run 2>/dev/null || code=$?
    same "exit code after SIG$signal" "$code" \
        "$([ $signal = TERM ] && echo 130 || echo 137)"
done

# Only the part before the colon is the name of a file.
code=0
said=$("$fragsim" replay small.csv -p torch:a/b.so 2>&1) || code=$?
same "exit code of torch:a/b.so" "$code" 2
case $said in
*dlopen* | *"shared object"*) same "torch:a/b.so" "$said" "PyTorch's words" ;;
esac
echo "built by the installed package, replayed and tested; faults, crashes and impostors found"
