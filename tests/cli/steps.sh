# The worked examples of steps: a job that died after ten complete steps, under
# the recorded settings and at a capacity; other policies and JSON; bad use.
bundled=$(dirname "$0")/../../traces/bundled
fragsim steps "$bundled/lstm_varlen__cap_below.pickle.xz"
fragsim steps -q "$bundled/gpt2_train.pickle.xz" -p best_fit -c 9GiB
fragsim steps -q "$bundled/cudagraph.pickle.xz" | sed -n '1,5p;$p'
fragsim steps -q small.csv
fragsim steps -q "$bundled/gpt2_train.pickle.xz" --json - |
    grep -A3 '"results"' | cut -c1-400
for bad in '--step-mark nothing' '-p torch@nothing' '-c 12' '--device 7'; do
    # shellcheck disable=SC2086 # the options are words
    fragsim steps -q "$bundled/gpt2_train.pickle.xz" $bad 2>message
    echo "$? $(sed 's,[^ ]*/bundled,BUNDLED,' message)"
done
fragsim steps -q "$bundled/two_streams.pt" | tail -n 3
echo kept >out.json
fragsim steps -q small.csv --json out.json 2>message
echo "$? $(cat out.json)"
