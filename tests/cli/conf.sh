# What each release of PyTorch makes of settings; the exit code says whether it
# accepts all of them.
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF PYTORCH_ALLOC_CONF
unset PYTORCH_NO_CUDA_MEMORY_CACHING
fragsim conf expandeable_segments:True,max_split_size_mb:64
echo "exit $?"
fragsim policies torch:expandable_segments:True,page_size:1g,padding:32,roundup_bypass_threshold_mb:1,=
echo "exit $?"
fragsim policies torch@2.10:max_split_size_mb,20,backend:cudaMallocAsync

# Exit codes of the release that is asked.
for text in '' max_split_size_mb:20 garbage_collection_threshold:0.8 backend:async \
    torch_version:2.9,max_split_size_mb:20 foo:1 roundup_power2_divisions:1; do
    fragsim conf "$text" >text
    echo "$? $(tail -n 1 text)"
done

# The environment: the first variable that is set counts.
export PYTORCH_ALLOC_CONF=max_split_size_mb:600
fragsim conf
fragsim policies torch@2.9:- | tail -n 1
export PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:64,release_lock_on_cudamalloc:7
fragsim conf -
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
fragsim conf torch_version:2.11,- | tail -n 3

# JSON.
fragsim conf max_split_size_mb:20,foo:1 -q --json - | sed '2,3d' | cut -c1-250

# A text is data: it cannot write to the terminal.
fragsim conf "$(printf 'a\033[1mb:1')" | sed -n 1p

# A release that fragsim does not know.
fragsim conf torch_version:3.0,expandable_segments:False
fragsim tune small.csv -c inf --torch-version 2.16 | sed -n '/settings tried/p'

# Wrong use.
fragsim conf torch_version:1.13,a:b
fragsim conf --test a:b
fragsim policies torch:"$(printf '%01001d' 0)"
echo "exit $?"
