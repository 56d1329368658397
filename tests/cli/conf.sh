# A text is explained and judged; the exit code says whether PyTorch refuses or
# ignores a part of it.
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF PYTORCH_ALLOC_CONF
unset PYTORCH_NO_CUDA_MEMORY_CACHING PYTORCH_NPU_ALLOC_CONF
fragsim conf expandeable_segments:True,max_split_size_mb:64
echo "exit $?"
fragsim conf expandable_segments:True >text
echo "exit $?"
sed -n 2p text

# Exit codes: 0 for what is dangerous, 1 for what is ignored or refused.
for text in '' max_split_size_mb:64 garbage_collection_threshold:0.8 backend:async; do
    fragsim conf "$text" >text
    echo "$? $(sed -n 2p text)"
done
fragsim conf expandable_segments:True --torch-version 2.0 | sed -n 2p

# The environment: the first variable that is set counts.
export PYTORCH_ALLOC_CONF=max_split_size_mb:600
fragsim conf | sed -n 1,2p
fragsim conf - --torch-version 2.9 | sed '/^in force/,$d'
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
fragsim conf | sed -n '1,2p; /^the environment/,/^$/p'

# JSON.
fragsim conf max_split_size_mb:64,foo:1 -q --json - | sed '2,3d' | cut -c1-130

# A text is data: it cannot write to the terminal.
fragsim conf "$(printf 'a\033[1mb:1')" | sed -n '1p; 5,6p'

# A release that fragsim does not know.
fragsim conf --torch-version 3.0 expandable_segments:False | sed -n '2,3p; /^the env/,/^$/p'
fragsim tune small.csv --no-hold-out --torch-version 2.16 | sed -n '/settings tried/p'

# Wrong use.
fragsim conf --keys -q | grep -c '^[a-z]'
fragsim conf --keys a:b
fragsim conf --torch-version 1.13 a:b
echo "exit $?"
