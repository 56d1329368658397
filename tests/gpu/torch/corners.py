"""Corners of the class over PyTorch's allocator. usage: corners.py POLICY;
FRAGSIM_DRY_LAZY=1 is set, so that work ends only when the program waits for it.

PyTorch's own allocator has served blocks before use() is called.
"""
import ctypes
import os
import sys
import threading
import time
import unittest

import torch
from torch.cuda import memory

import fragsim_torch

MIB = 1 << 20
DRIVER = ctypes.CDLL("libcuda.so.1")
RUNTIME = ctypes.CDLL("libcudart.so.13")


def filled(size, value):
    return torch.full((size,), value, dtype=torch.uint8).cuda()


def holds(tensor, value):
    return bool((tensor.cpu() == value).all())


def forked(work):
    """The exit code of a child that runs work()."""
    child = os.fork()
    if not child:
        code = 9
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Stream:
    """A stream whose work ends when the test says so."""

    def __init__(self):
        out = ctypes.c_void_p()
        assert RUNTIME.cudaStreamCreate(ctypes.byref(out)) == 0
        self.raw = out.value
        self.torch = torch.cuda.ExternalStream(self.raw)

    def call(self, function):
        getattr(DRIVER, function)(ctypes.c_void_p(self.raw))

    def destroy(self):
        assert RUNTIME.cudaStreamDestroy(ctypes.c_void_p(self.raw)) == 0


class Corners(unittest.TestCase):
    def test_blocks_from_before_use(self):
        self.assertTrue(all(holds(t, i) for i, t in enumerate(EARLY)))
        stats = torch.cuda.memory_stats()
        self.assertEqual(stats["allocated_bytes.all.current"], 8 * MIB)
        later = filled(5 * MIB, 77)
        self.assertEqual(torch.cuda.memory_allocated(), 13 * MIB)
        addresses = {b["address"] for row in memory._snapshot()["segments"]
                     for b in row["blocks"] if b["state"] != "inactive"}
        self.assertLessEqual({t.data_ptr() for t in [*EARLY, later]},
                             addresses)
        EARLY[0].record_stream(torch.cuda.Stream())
        self.assertTrue(holds(EARLY[1].clone(), 1))
        EARLY.clear()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.memory_allocated(), 5 * MIB)
        self.assertEqual(torch.cuda.memory_reserved(),
                         fragsim_torch.reserved())
        self.assertTrue(holds(later, 77))

    def test_the_pluggable_way_comes_too_late(self):
        with self.assertRaisesRegex(RuntimeError, "comes too late: this program "
                                    "has used the GPU already"):
            fragsim_torch._use_pluggable()

    def test_a_stream_is_destroyed_while_a_block_waits(self):
        stream, block = Stream(), filled(4 * MIB, 5)
        waits = DRIVER.frag_dry_synchronizes()
        at = block.data_ptr()
        stream.call("frag_dry_queue")
        block.record_stream(stream.torch)
        del block
        others = [filled(4 * MIB, 6) for _ in range(3)]
        stream.destroy()
        others += [filled(4 * MIB, 6) for _ in range(3)]
        self.assertTrue(all(holds(t, 6) for t in others))
        # remap waits for the device before it moves pages.
        if DRIVER.frag_dry_synchronizes() == waits:
            self.assertNotIn(at, [t.data_ptr() for t in others])
            stream.call("frag_dry_finish")
            before = torch.cuda.memory_stats()["active.all.current"]
            filled(MIB, 1)
            self.assertEqual(torch.cuda.memory_stats()["active.all.current"],
                             before - 1)

    def test_empty_cache_of_another_thread(self):
        stop, faults, emptied = threading.Event(), [], []

        def work():
            try:
                while not stop.is_set():
                    torch.cuda.empty_cache()
                    emptied.append(1)
                    time.sleep(0.002)  # or the others starve
            except RuntimeError as error:
                faults.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        live = []
        for i in range(100):
            live.append((filled((i * 7919) % (3 * MIB) + 1, i % 251), i % 251))
            if i % 4 == 3:
                self.assertTrue(holds(*live.pop(0)))
        stop.set()
        thread.join(60)
        self.assertEqual(faults, [])
        self.assertGreater(len(emptied), 3)
        self.assertTrue(all(holds(*pair) for pair in live))

    def test_checkpoint_of_a_pool(self):
        """As the graph trees of torch.compile do."""
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=pool):
            kept = torch.zeros(3 * MIB, dtype=torch.uint8, device="cuda")
        state = torch._C._cuda_getCheckpointState(0, pool)
        before = torch.cuda.memory_allocated()
        at = kept.data_ptr()
        later = torch.cuda.CUDAGraph()
        with torch.cuda.graph(later, pool=pool):
            stale = torch.zeros(5 * MIB, dtype=torch.uint8, device="cuda")
        alive = filled(2 * MIB, 9)
        storages = [stale.untyped_storage()._cdata]
        torch._C._cuda_setCheckpointPoolState(0, state, storages, [])
        self.assertEqual(torch.cuda.memory_allocated(), before + 2 * MIB)
        self.assertTrue(torch._C._cuda_checkPoolLiveAllocations(0, pool, {at}))
        del stale, kept
        torch._C._cuda_setCheckpointPoolState(0, state, [], [])
        # The block lives again, and only a tensor with its deleter frees it.
        self.assertEqual(torch.cuda.memory_allocated(), before + 2 * MIB)
        again = torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata(
            {"nbytes": 3 * MIB, "data_ptr": at, "size": (3 * MIB,),
             "stride": (1,), "dtype": torch.uint8, "device": "cuda",
             "storage_offset": 0},
            torch._C._construct_storage_from_data_pointer(
                at, torch.device("cuda:0"), 3 * MIB))
        torch._C._cuda_setCheckpointPoolState(
            0, state, [], [again.untyped_storage()._cdata])
        del again
        self.assertEqual(torch.cuda.memory_allocated(), before - 3 * MIB
                         + 2 * MIB)
        self.assertTrue(holds(alive, 9))

    def test_forks(self):
        self.assertEqual(CHILD, 0)

        def allocates():
            try:
                torch.empty(MIB, device="cuda")
            except RuntimeError as error:
                return 0 if "fork" in str(error) else 2
            return 1

        self.assertEqual(forked(allocates), 0)
        self.assertTrue(holds(filled(MIB, 3), 3))


def early_child():
    """A child that is forked before PyTorch uses the device has a device."""
    fragsim_torch.use(POLICY)
    if not forked(lambda: not holds(filled(MIB, 4), 4)):
        return 0
    return 1


if __name__ == "__main__":
    POLICY = sys.argv[1]
    torch.set_num_threads(1)  # a fork loses other threads
    CHILD = forked(early_child)
    EARLY = [filled(4 * MIB, i) for i in range(2)]
    if fragsim_torch.use(POLICY) != "class":
        sys.exit("no class")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
