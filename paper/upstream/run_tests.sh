#!/bin/bash
# run_tests.sh PYTHON LIBRARY OUT tests TEST_CUDA [SIDE...]
# run_tests.sh PYTHON LIBRARY OUT need [PROGRAM...]
# The changed library against the release's own, on a GPU (CUDA_VISIBLE_DEVICES).
# PYTHON has PyTorch of the release that LIBRARY was built for, and stays as it is.
# A SIDE is release, off (LIBRARY, the key off) or on.
#   tests  PyTorch's tests of memory: OUT/tests_SIDE.txt. TEST_CUDA is test/test_cuda.py
#          of its sources; a folder site beside it may hold what PYTHON lacks for it
#   need   need.py for the programs on all sides: OUT/need_PROGRAM.csv
# Parts may run at once, each on a GPU of its own that nothing else uses: a side of
# the tests has SECONDS_OF_TESTS (default 130), so all sides end within 7 minutes;
# five programs need about as long.
set -u
here=$(dirname "$(readlink -f "$0")")
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
python=$1 library=$(readlink -f "$2") out=$(mkdir -p "$3" && readlink -f "$3") part=$4
shift 4
off=expandable_segments:True
declare -A settings=([release]=$off [off]=$off [on]=$off,expandable_segments_page_mb:2)
all="release off on"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/install.py" "$python" "$library" "$work/changed" || exit 1

python_of() { # SIDE
  if [ "$1" = release ]; then echo "$python"; else echo "$work/changed/python"; fi
}

tests() { # TEST_CUDA SIDE
  PYTHONPATH=$(dirname "$1")/site TORCH_EXTENSIONS_DIR=$work/extensions \
    PYTORCH_CUDA_ALLOC_CONF=${settings[$2]} \
    timeout "${SECONDS_OF_TESTS:-130}" "$(python_of "$2")" -W ignore \
    "$here/../../tests/gpu/torch/upstream.py" "$1" native \
    TestBlockStateAbsorption \
    TestCuda.test_memory_allocation TestCuda.test_out_of_memory \
    TestCuda.test_out_of_memory_retry \
    TestCuda.test_set_per_process_memory_fraction \
    TestCuda.test_caching_allocator_record_stream_oom \
    TestCuda.test_graph_capture_simple TestCuda.test_graph_capture_oom \
    TestCuda.test_graph_two_successive TestCuda.test_graph_concurrent_replay \
    TestCuda.test_graph_memory_stats_and_use_result_after_destroy_graph \
    TestCuda.test_graph_record_stream TestCudaMallocAsync TestMemPool \
    > "$out/tests_$2.txt" 2> "$out/tests_$2.err"
  local status=$?
  echo "$2: $(sed -n 's/^tests\t//p' "$out/tests_$2.txt") tests," \
    "$(grep -c '^pass' "$out/tests_$2.txt") passed," \
    "$(grep -c '^fail' "$out/tests_$2.txt") failed," \
    "$(grep -c '^skip' "$out/tests_$2.txt") skipped, exit status $status"
}

need() { # PROGRAM SIDE
  "$(python_of "$2")" -W ignore "$here/need.py" "$out/need_$1.csv" "$2" \
    "${settings[$2]}" "$1"
}

case $part in
tests)
  test_cuda=$(readlink -f "$1")
  shift
  for side in ${*:-$all}; do tests "$test_cuda" "$side"; done ;;
need)
  for program in ${*:-random_12 mlp varlen wide_varlen checkpointed}; do
    rm -f "$out/need_$program.csv"
    for side in $all; do need "$program" "$side" || exit 1; done
  done ;;
*)
  echo "$0: expected tests or need, found $part" >&2
  exit 2 ;;
esac
