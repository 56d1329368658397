#!/usr/bin/env bash
# check_record_device.sh: checks the recorder on a real GPU, in three ways: the
# programs of check_record.sh with the real driver, call by call; a program of
# the CUDA runtime, shared and static, if nvcc is installed; and PyTorch, if
# python3 has it, whose own counts of device allocations the trace must hold.
# Skipped without a GPU.
# Environment: FRAGSIM (the tool), FRAG_BUILD_DIR (default build).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
export FRAG_BUILD_DIR=$build FRAGSIM=${FRAGSIM:-$build/fragsim}
driver=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
    sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -1)
[ -n "$driver" ] && [ -e /dev/nvidiactl ] || {
    echo "check_record_device: no CUDA device; skipped"
    exit 77
}
export LD_LIBRARY_PATH=${driver%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failures=0
"$root/tests/gpu/check_record.sh" calls || failures=1
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2

# same WHAT FOUND WANTED
same() {
    echo "$1: $2"
    [ "$2" = "$3" ] && return
    failures=1
    printf 'FAILED %s\n  found:  %s\n  wanted: %s\n' "$1" "$2" "$3"
}

# counts TRACE: counts its allocs and frees.
counts() { "$FRAGSIM" info "$1" | sed -n 's/^  requests *//p'; }

cat >runtime.cu <<'END'
#include <cuda_runtime.h>
int main()
{
    void *a, *b, *c, *d, *e, *host[2];
    static char own[8192];
    size_t pitch;
    cudaStream_t s;
    cudaMemPool_t pool;
    cudaMalloc(&a, 1 << 20);
    cudaMallocPitch(&b, &pitch, 1000, 10);
    cudaMallocManaged(&c, 4096);
    cudaStreamCreate(&s);
    cudaMallocAsync(&d, 5000, s);
    cudaFreeAsync(d, s);
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMallocFromPoolAsync(&e, 12345, pool, s);
    cudaFreeAsync(e, s);
    cudaMallocHost(&host[0], 5000);
    cudaHostAlloc(&host[1], 7000, cudaHostAllocPortable);
    cudaHostRegister(own, sizeof(own), 0);
    cudaFreeHost(host[0]);
    cudaHostUnregister(own);
    if (cudaMalloc(&d, 1ull << 50) != cudaErrorMemoryAllocation)
        return 1;
    return cudaFree(a) | cudaFree(b) | cudaFree(c);
}
END
for runtime in shared static; do
    command -v nvcc >/dev/null || break
    nvcc -w -cudart $runtime runtime.cu -o runtime || break
    "$FRAGSIM" record -q -f -o t.h5 -- ./runtime
    same "exit code with the $runtime runtime" $? 0
    same "requests of the $runtime runtime" \
        "$("$FRAGSIM" export t.h5 -o - | cut -d, -f1,3 | tr '\n' ' ')" \
        "op,bytes alloc,1048576 alloc,10240 alloc,4096 alloc,5000 free,\
 alloc,12345 free, alloc,1125899906842624 free, free, free, free, "
    same "host memory of the $runtime runtime" \
        "$("$FRAGSIM" export t.h5 --device host -o - | cut -d, -f1,3 |
            tr '\n' ' ')" \
        "op,bytes alloc,5000 alloc,7000 alloc,8192 free, free, "
done

cat >segments.py <<'END'
import torch
held = [torch.empty((i + 1) * 11 << 20, dtype=torch.uint8, device="cuda")
        for i in range(40)]
del held[::2]
torch.cuda.empty_cache()
small = [torch.empty(300, device="cuda") for _ in range(3000)]
stats = torch.cuda.memory_stats()
print(f"alloc {stats['num_device_alloc']}, free {stats['num_device_free']}")
END
if python3 -c 'import torch' 2>/dev/null; then
    "$FRAGSIM" record -q -o torch.h5 -- python3 segments.py >wanted
    same "PyTorch's device allocations" "$(counts torch.h5)" "$(cat wanted)"
fi
for round in 1 2 3; do
    echo "round $round, without and with the recorder:" \
        "$("$build/tests/record/record_loader" entry speed)," \
        "$("$FRAGSIM" record -q -f -o t.h5 -- \
            "$build/tests/record/record_loader" entry speed)"
done
[ "$failures" -eq 0 ]
