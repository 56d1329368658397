#!/bin/bash
# run_tests.sh PYTHON LIBRARY OUT [TEST_CUDA]: the changed library against the release's
# own, on a GPU. PYTHON has PyTorch of the release that LIBRARY was built for; TEST_CUDA is
# test/test_cuda.py of its sources, and its memory tests run three times: with the
# release's library, with LIBRARY and the key off, and with the key on. Then need.py
# measures programs. Results go to the folder OUT; the release's library is back at
# the end. Nothing else may use the GPU.
set -u
here=$(dirname "$(readlink -f "$0")")
python=$1 library=$(readlink -f "$2") out=$3 tests=${4:-}
off=expandable_segments:True
on=$off,expandable_segments_page_mb:2
programs=${PROGRAMS:-random_11 random_12 mlp varlen wide_varlen accumulate checkpointed cache}
mkdir -p "$out"
trap '"$python" "$here/install.py" back "$python"' EXIT

run() { # SIDE SETTINGS
  if [ -n "$tests" ]; then
    PYTORCH_CUDA_ALLOC_CONF=$2 timeout "${SECONDS_OF_TESTS:-400}" "$python" -W ignore \
      "$here/../../tests/gpu/torch/upstream.py" "$tests" native \
      TestCudaMallocAsync TestBlockStateAbsorption TestMemPool \
      TestCuda.test_memory_allocation TestCuda.test_out_of_memory \
      TestCuda.test_out_of_memory_retry \
      TestCuda.test_set_per_process_memory_fraction \
      TestCuda.test_caching_allocator_record_stream_oom \
      TestCuda.test_graph_capture_simple TestCuda.test_graph_capture_oom \
      TestCuda.test_graph_two_successive TestCuda.test_graph_concurrent_replay \
      TestCuda.test_graph_memory_stats_and_use_result_after_destroy_graph \
      TestCuda.test_graph_record_stream > "$out/tests_$1.txt" 2> "$out/tests_$1.err"
    echo "$1: $(grep -c '^pass' "$out/tests_$1.txt") tests passed," \
      "$(grep -c '^fail' "$out/tests_$1.txt") failed"
  fi
  "$python" -W ignore "$here/need.py" "$out/programs.csv" "$1" "$2" $programs
}

run release "$off"
"$python" "$here/install.py" put "$python" "$library"
run off "$off"
run on "$on"
