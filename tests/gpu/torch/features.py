"""Every function of torch.cuda.memory, under a policy. usage: features.py
native|POLICY [CASE...]; needs a device of 8 GiB, or the stand-in.

`native` runs the same cases with PyTorch's own allocator, which shows that the
cases expect what PyTorch does. Cases that only concern the policy are skipped
then.
"""
import contextlib
import gc
import os
import re
import subprocess
import sys
import threading
import unittest

import torch
from torch.cuda import memory

POLICY = sys.argv[1]
MIB = 1 << 20
if POLICY != "native":
    import fragsim_torch
    assert fragsim_torch.use(POLICY) == "class"


def take(size, device="cuda"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def policy_reserved(device=0):
    return fragsim_torch.reserved(device)


@contextlib.contextmanager
def limit(size):
    """Lets this process have that many bytes of the device."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(size / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def policy_only(case):
    return unittest.skipIf(POLICY == "native", "of the policy")(case)


class Case(unittest.TestCase):
    def setUp(self):
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.memory_allocated(), 0)
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()


class Counters(Case):
    def test_a_naive_model(self):
        model, peak = {}, 0
        for i in range(300):
            size = (i * 7919) % (5 * MIB) + 1
            model[i] = (take(size), size)
            if i % 3:
                del model[next(iter(model))]
            peak = max(peak, sum(s for _, s in model.values()))
            stats = torch.cuda.memory_stats()
            self.assertEqual(stats["allocation.all.current"], len(model))
            self.assertEqual(stats["active.all.current"], len(model))
            self.assertEqual(stats["requested_bytes.all.current"],
                             sum(s for _, s in model.values()))
            self.assertGreaterEqual(stats["allocated_bytes.all.current"],
                                    stats["requested_bytes.all.current"])
            self.assertGreaterEqual(stats["reserved_bytes.all.current"],
                                    stats["active_bytes.all.current"])
            for name in ("allocation", "active", "segment", "reserved_bytes",
                         "allocated_bytes", "inactive_split_bytes"):
                for when in ("current", "peak", "allocated", "freed"):
                    parts = [stats[f"{name}.{pool}.{when}"] for pool in
                             ("all", "small_pool", "large_pool")]
                    if when != "peak":
                        self.assertEqual(parts[0], parts[1] + parts[2], name)
                current, freed = (stats[f"{name}.all.{when}"]
                                  for when in ("current", "freed"))
                self.assertEqual(current + freed,
                                 stats[f"{name}.all.allocated"])
        self.assertEqual(stats["allocation.all.allocated"], 300)
        self.assertGreaterEqual(stats["requested_bytes.all.peak"], peak)

    def test_snapshot_agrees_with_counters(self):
        live = [take((i * 7919) % (5 * MIB) + 1) for i in range(60)]
        del live[::3]
        stats = torch.cuda.memory_stats()
        rows = memory._snapshot()["segments"]
        self.assertEqual(sum(r["total_size"] for r in rows),
                         stats["reserved_bytes.all.current"])
        for name in ("allocated", "active"):
            self.assertEqual(sum(r[f"{name}_size"] for r in rows),
                             stats[f"{name}_bytes.all.current"])
        gaps = 0
        for row in rows:
            at = row["address"]
            for block in row["blocks"]:
                self.assertEqual(block["address"], at)
                at += block["size"]
                split = not row["is_expandable"] and len(row["blocks"]) > 1
                gaps += split and block["state"] == "inactive"
            self.assertEqual(at, row["address"] + row["total_size"])
        self.assertEqual(gaps, stats["inactive_split.all.current"])

    def test_peaks_and_resets(self):
        a = take(8 * MIB)
        del a
        self.assertEqual(torch.cuda.max_memory_allocated(), 8 * MIB)
        torch.cuda.reset_peak_memory_stats()
        self.assertEqual(torch.cuda.max_memory_allocated(), 0)
        self.assertEqual(torch.cuda.max_memory_reserved(),
                         torch.cuda.memory_reserved())
        torch.cuda.reset_accumulated_memory_stats()
        self.assertEqual(torch.cuda.memory_stats()
                         ["allocation.all.allocated"], 0)
        self.assertIn("PyTorch CUDA memory summary",
                      torch.cuda.memory_summary())
        self.assertIn("Allocated", torch.cuda.memory_summary(abbreviated=True))
        self.assertEqual(len(torch.cuda.memory_snapshot()),
                         len(memory._snapshot()["segments"]))

    def test_large_and_small_pool(self):
        a, b = take(1000), take(30 * MIB)
        stats = torch.cuda.memory_stats()
        self.assertEqual(stats["allocation.small_pool.current"], 1)
        self.assertEqual(stats["allocation.large_pool.current"], 1)
        del a, b


class Requests(Case):
    def test_contents(self):
        data = torch.arange(MIB, dtype=torch.int32)
        copies = [(data + i).cuda() for i in range(5)]
        del copies[1::2]
        copies += [(data + 1).cuda(), (data + 3).cuda()]
        for copy, i in zip(copies, (0, 2, 4, 1, 3)):
            self.assertTrue(torch.equal(copy.cpu(), data + i))

    def test_out_of_memory(self):
        before = take(4 * MIB)
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(
            lambda *numbers: seen.append(numbers))
        free, total = torch.cuda.mem_get_info()
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            take(1 << 44)
        found = re.search(
            r"Tried to allocate ([\d.]+) (\w+)\. GPU 0 has a total capacity "
            r"of ([\d.]+) GiB of which ([\d.]+) (\w+) is free\.",
            str(caught.exception))
        self.assertEqual(found.group(1, 2), ("16384.00", "GiB"))
        self.assertEqual(float(found.group(3)), round(total / (1 << 30), 2))
        self.assertEqual(len(seen), 1)
        self.assertEqual(seen[0][:3], (0, 1 << 44, total))
        self.assertEqual(torch.cuda.memory_stats()["num_ooms"], 1)
        self.assertGreaterEqual(torch.cuda.memory_stats()
                                ["num_alloc_retries"], 1)
        take(MIB)
        self.assertEqual(before.numel(), 4 * MIB)

    def test_one_exabyte(self):
        with self.assertRaisesRegex(RuntimeError, "1EB"):
            torch.empty(1 << 61, dtype=torch.uint8, device="cuda")

    def test_fraction(self):
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(0.1)
        try:
            self.assertAlmostEqual(
                torch.cuda.get_per_process_memory_fraction(), 0.1)
            with self.assertRaisesRegex(torch.OutOfMemoryError,
                                        r"[\d.]+ [MG]iB allowed"):
                take(total // 5)
            take(total // 20)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        take(total // 5)
        with self.assertRaises(ValueError):
            torch.cuda.set_per_process_memory_fraction(2.0)

    def test_fraction_of_the_environment(self):
        program = """if 1:
            import sys, torch
            if sys.argv[1] != "native":
                import fragsim_torch
                fragsim_torch.use(sys.argv[1])
            total = torch.cuda.get_device_properties(0).total_memory
            print(torch.cuda.get_per_process_memory_fraction())
            torch.empty(total // 5, dtype=torch.uint8, device="cuda")
            try:
                torch.empty(total // 3, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError as e:
                print("allowed" in str(e))
        """
        done = subprocess.run(
            [sys.executable, "-c", program, POLICY], text=True,
            capture_output=True, check=False,
            env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=
                     "per_process_memory_fraction:0.25"))
        self.assertEqual(done.stdout, "0.25\nTrue\n", done.stderr[-500:])

    @policy_only
    def test_start_with_cuda_malloc_async(self):
        """The start of PyTorch opens no device, which that backend would need to
        report its limit. The stand-in refuses to open one for it."""
        done = subprocess.run(
            [sys.executable, "-c", "import sys, torch, fragsim_torch\n"
             "fragsim_torch.use(sys.argv[1]); torch.cuda.init()\n"
             "print(torch.cuda.get_allocator_backend())", POLICY], text=True,
            capture_output=True, check=False,
            env=dict(os.environ,
                     PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync"))
        self.assertEqual(done.stdout, "fragsim\n", done.stderr[-500:])

    def test_caching_allocator_alloc(self):
        ptr = torch.cuda.caching_allocator_alloc(3 * MIB)
        self.assertEqual(torch.cuda.memory_allocated(), 3 * MIB)
        torch.cuda.caching_allocator_delete(ptr)
        self.assertEqual(torch.cuda.memory_allocated(), 0)

    def test_no_caching(self):
        """Requests and their frees go to the driver; so do their frees after
        the caching is on again. Other blocks are freed as before."""
        room = torch.cuda.mem_get_info()[0]
        kept = take(3 * MIB)
        torch.cuda.caching_allocator_enable(False)
        try:
            late, early = take(4 * MIB), take(8 * MIB)
            ptr = torch.cuda.caching_allocator_alloc(6 * MIB)
            self.assertEqual(torch.cuda.memory_allocated(), 3 * MIB)
            late.record_stream(torch.cuda.Stream())
            before = torch.cuda.mem_get_info()[0]
            torch.cuda.caching_allocator_delete(ptr)
            del early, kept
            self.assertEqual(torch.cuda.mem_get_info()[0], before + 14 * MIB)
            self.assertEqual(torch.cuda.memory_allocated(), 0)
        finally:
            torch.cuda.caching_allocator_enable(True)
        del late
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.mem_get_info()[0], room)
        kept = take(3 * MIB)
        self.assertEqual(torch.cuda.memory_allocated(), 3 * MIB)

    def test_resize_and_base(self):
        a = take(MIB)
        a.untyped_storage().resize_(5 * MIB)
        self.assertEqual(a.untyped_storage().nbytes(), 5 * MIB)
        a.untyped_storage().resize_(0)
        self.assertEqual(torch.cuda.memory_allocated(), 0)

    def test_wrong_pointer(self):
        with self.assertRaisesRegex(RuntimeError, "invalid device pointer"):
            torch.cuda.caching_allocator_delete(512)

    def test_empty(self):
        self.assertEqual(take(0).data_ptr(), 0)


class Streams(Case):
    def test_late_free(self):
        other = torch.cuda.Stream()
        a = take(4 * MIB)
        at = a.data_ptr()
        a.record_stream(other)
        del a
        stats = torch.cuda.memory_stats()
        self.assertEqual(stats["allocation.all.current"], 0)
        torch.cuda.synchronize()
        b = take(4 * MIB)
        self.assertEqual(b.data_ptr(), at)
        self.assertEqual(torch.cuda.memory_stats()["active.all.current"], 1)

    @policy_only  # PyTorch's own allocator ends the process
    def test_destroyed_stream(self):
        raw = torch.cuda.Stream()
        gone = torch.cuda.ExternalStream(make_stream())
        a = take(4 * MIB)
        a.record_stream(gone)
        with torch.cuda.stream(gone):
            b = take(4 * MIB)
        destroy_stream(gone.cuda_stream)
        del a, b
        with torch.cuda.stream(raw):
            c = take(4 * MIB)
        self.assertEqual(c.numel(), 4 * MIB)

    def test_threads(self):
        faults = []

        def work(seed):
            try:
                live = []
                with torch.cuda.stream(torch.cuda.Stream()):
                    for i in range(300):
                        live.append(take((i * 7919 + seed) % MIB + 1))
                        if i % 3 == 2:
                            live.pop(0)
                        if i % 10 == 0:
                            live[-1].record_stream(
                                torch.cuda.default_stream())
                        if i % 100 == 0:
                            torch.cuda.empty_cache()
                            memory._snapshot()
                            torch.cuda.memory_stats()
            except Exception as fault:  # the main thread reports it
                faults.append(fault)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(faults, [])
        self.assertEqual(torch.cuda.memory_allocated(), 0)


def runtime():
    import ctypes
    return ctypes.CDLL("libcudart.so.13")


def make_stream():
    import ctypes
    out = ctypes.c_void_p()
    assert runtime().cudaStreamCreate(ctypes.byref(out)) == 0
    return out.value


def destroy_stream(stream):
    import ctypes
    assert runtime().cudaStreamDestroy(ctypes.c_void_p(stream)) == 0


class History(Case):
    def setUp(self):
        super().setUp()
        memory._record_memory_history()

    def tearDown(self):
        memory._record_memory_history(enabled=None)

    def test_entries(self):
        a = take(3 * MIB)
        at = a.data_ptr()
        del a
        torch.cuda.empty_cache()
        rows = memory._snapshot()["device_traces"][0]
        ours = [(r["action"], r["size"]) for r in rows if r["addr"] == at]
        self.assertEqual([w for w in ours if "segment" not in w[0]],
                         [("alloc", 3 * MIB), ("free_requested", 3 * MIB),
                          ("free_completed", 3 * MIB)])
        self.assertTrue(rows[0]["frames"])
        times = [r["time_us"] for r in rows]
        self.assertEqual(times, sorted(times))

    def test_whose_stacks_are_kept(self):
        import json
        for context, wanted in (("state", ()), ("alloc", ("an_alloc",)),
                                ("all", ("an_alloc", "a_free", "empty_cache"))):
            memory._record_memory_history(None)
            memory._record_memory_history(context=context)
            live = []

            def an_alloc():
                live.append(take(5 * MIB))

            def a_free():
                live.clear()

            an_alloc()
            a_free()
            torch.cuda.empty_cache()
            found = memory._snapshot()
            text = json.dumps(found)  # its annotations too
            for word in ("an_alloc", "a_free", "empty_cache"):
                self.assertEqual(word in text, word in wanted,
                                 f"{context} {word}")

    def test_skipped_actions(self):
        memory._record_memory_history(None)
        memory._record_memory_history(skip_actions=["free_requested"])
        take(3 * MIB)
        actions = {r["action"] for r in memory._snapshot()["device_traces"][0]}
        self.assertNotIn("free_requested", actions)
        self.assertLess({"alloc", "free_completed"}, actions)

    @policy_only
    def test_the_policy_is_named(self):
        take(MIB)
        torch.cuda.empty_cache()
        found = [(row["stage"], row["name"])
                 for row in memory._snapshot()["external_annotations"]]
        self.assertIn(("fragsim: policy", POLICY), found)
        self.assertIn(("fragsim: cache emptied", ""), found)

    def test_a_snapshot_is_in_the_next_one(self):
        take(MIB)
        rows = memory._snapshot()["device_traces"][0]
        self.assertNotIn("snapshot", [r["action"] for r in rows])
        rows = memory._snapshot()["device_traces"][0]
        self.assertEqual(rows[-1]["action"], "snapshot")

    def test_the_end_of_a_free_has_the_stack_of_the_free(self):
        def an_alloc():
            return [take(5 * MIB)]

        def a_free(live):
            live.clear()

        a_free(an_alloc())
        for row in memory._snapshot()["device_traces"][0]:
            names = [f["name"] for f in row["frames"]]
            self.assertEqual("a_free" in names, "free" in row["action"])
            self.assertEqual("an_alloc" in names, "free" not in row["action"])

    def test_compiled_regions(self):
        memory._record_memory_history(compile_context=True)
        take(MIB)
        found = {r["compile_context"]
                 for r in memory._snapshot()["device_traces"][0]}
        self.assertEqual(found, {"N/A"})

    def test_metadata(self):
        torch.cuda.memory._set_memory_metadata("the phase")
        a = take(MIB)
        torch.cuda.memory._set_memory_metadata("")
        row = [r for r in memory._snapshot()["device_traces"][0]
               if r["action"] == "alloc"][-1]
        self.assertEqual(row["user_metadata"], "the phase")
        self.assertEqual(row["addr"], a.data_ptr())

    def test_dump(self):
        import pickle
        import tempfile
        a = take(MIB)
        with tempfile.NamedTemporaryFile() as file:
            memory._dump_snapshot(file.name)
            made = pickle.load(file)
        self.assertEqual(sum(r["active_size"] for r in made["segments"]), MIB)
        self.assertEqual(a.numel(), MIB)

    def test_off(self):
        memory._record_memory_history(enabled=None)
        take(MIB)
        self.assertEqual(sum(map(len, memory._snapshot()["device_traces"])), 0)


class Pools(Case):
    def test_pool(self):
        pool = torch.cuda.MemPool()
        outside = take(3 * MIB)
        with torch.cuda.use_mem_pool(pool):
            inside = take(3 * MIB)
            del outside  # a block of the policy, freed inside
        rows = [r for r in memory._snapshot()["segments"]
                if tuple(r["segment_pool_id"]) == tuple(pool.id)]
        self.assertEqual(len(rows), 1)
        self.assertEqual(torch.cuda.memory_allocated(), 3 * MIB)
        self.assertGreater(len(pool.snapshot()), 0)
        del inside, pool
        gc.collect()
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.memory_reserved(), 0)

    def test_the_limit_is_for_all_memory(self):
        """The pools and the policy may each use what the other does not hold."""
        with limit(80 * MIB):
            pool = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(pool):
                inside = take(40 * MIB)
            outside = take(40 * MIB)
            self.assertRaises(torch.OutOfMemoryError, take, 20 * MIB)
            with torch.cuda.use_mem_pool(pool):
                self.assertRaises(torch.OutOfMemoryError, take, 20 * MIB)
            del outside
            torch.cuda.empty_cache()
            with torch.cuda.use_mem_pool(pool):
                more = take(40 * MIB)
            self.assertRaises(torch.OutOfMemoryError, take, 20 * MIB)
            self.assertEqual(torch.cuda.memory_reserved(), 80 * MIB)
            del inside, more, pool
            self.assertEqual(take(80 * MIB).numel(), 80 * MIB)
            self.assertEqual(torch.cuda.memory_stats()["num_ooms"], 3)
        self.assertEqual(take(100 * MIB).numel(), 100 * MIB)

    def test_use_on_oom(self):
        with limit(80 * MIB):
            spare = torch.cuda.MemPool(use_on_oom=True)
            other = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(other):
                a = take(40 * MIB)
            with torch.cuda.use_mem_pool(spare):
                b = take(40 * MIB)
            self.assertRaises(torch.OutOfMemoryError, take, 40 * MIB)
            place = b.data_ptr()
            del a, b
            c = take(30 * MIB)
            self.assertEqual(c.data_ptr(), place)
            self.assertRaises(torch.OutOfMemoryError, take, 30 * MIB)
            del c
            self.assertRaises(torch.OutOfMemoryError, take, 60 * MIB)
            del spare
            self.assertEqual(take(40 * MIB).numel(), 40 * MIB)
            self.assertEqual(torch.cuda.memory_stats()["num_ooms"], 3)
            del other

    def test_nested_and_threads(self):
        pools = [torch.cuda.MemPool() for _ in range(2)]
        ready, faults = threading.Barrier(2), []

        def work(pool):
            try:
                with torch.cuda.use_mem_pool(pool):
                    ready.wait(30)
                    live = [take(MIB) for _ in range(20)]
                    ready.wait(30)
                    del live
            except Exception as fault:
                faults.append(fault)

        threads = [threading.Thread(target=work, args=(p,)) for p in pools]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(faults, [])
        with torch.cuda.use_mem_pool(pools[0]):
            with torch.cuda.use_mem_pool(pools[1]):
                a = take(5 * MIB)
            b = take(5 * MIB)
        owners = {tuple(r["segment_pool_id"])
                  for r in memory._snapshot()["segments"] if r["active_size"]}
        self.assertIn(tuple(pools[1].id), owners)
        del a, b, pools
        gc.collect()

    @policy_only
    def test_other_threads_stay_with_the_policy(self):
        pool, seen = torch.cuda.MemPool(), []
        before = policy_reserved()

        def work():
            block = take(30 * MIB)
            seen.append(policy_reserved() - before)
            del block

        with torch.cuda.use_mem_pool(pool):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(60)
        self.assertGreaterEqual(seen[0], 30 * MIB)


class Graphs(Case):
    def test_capture(self):
        outside = [take(3 * MIB) for _ in range(4)]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            inside = take(2 * MIB)
            del outside[1:3]  # their free waits for the end
            again = take(40 * MIB)
            del again
        graph.replay()
        # and the state of the random numbers
        self.assertEqual(torch.cuda.memory_allocated() // MIB, 8)
        self.assertEqual(torch.cuda.memory_stats()
                         ["active.large_pool.current"], 3)
        del inside, outside, graph
        gc.collect()
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.memory_reserved(), 0)

    def test_shared_pool_and_other_thread(self):
        pool = torch.cuda.graph_pool_handle()
        graphs, live, faults = [], [], []

        def work():
            try:
                live.append(take(30 * MIB))
            except Exception as fault:
                faults.append(fault)

        for _ in range(2):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool,
                                  capture_error_mode="thread_local"):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join(60)
                live.append(take(MIB))
            graphs.append(graph)
        self.assertEqual(faults, [])
        for graph in graphs:
            graph.replay()
        del live, graph, graphs
        gc.collect()

    def test_checkpoint(self):
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=pool):
            a, b = take(3 * MIB), take(3 * MIB)
        state = torch._C._cuda_getCheckpointState(0, pool)
        self.assertIsNotNone(state)
        self.assertTrue(torch._C._cuda_checkPoolLiveAllocations(
            0, pool, {a.data_ptr(), b.data_ptr()}))
        self.assertFalse(torch._C._cuda_checkPoolLiveAllocations(
            0, pool, {a.data_ptr()}))

    @unittest.skipIf(torch.cuda.device_count() < 2, "one device")
    def test_request_on_another_device(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="relaxed"):
            a = take(MIB)
            b = take(30 * MIB, "cuda:1")
        graph.replay()
        self.assertEqual((a.numel(), b.numel()), (MIB, 30 * MIB))


class Shared(Case):
    @unittest.skipIf(torch.cuda.device_count() < 2, "one device")
    def test_peers(self):
        data = torch.arange(MIB, dtype=torch.int32)
        a = data.to("cuda:0")
        b = a.to("cuda:1")
        c = (data + 1).to("cuda:1").to("cuda:0")
        self.assertTrue(torch.equal(b.cpu(), data))
        self.assertTrue(torch.equal(c.cpu(), data + 1))
        d = [x.to("cuda:1") for x in [a] * 20]  # mapped after the access
        e = [x.to("cuda:0") for x in d]
        self.assertTrue(all(torch.equal(x.cpu(), data) for x in e))

    @unittest.skipIf(torch.cuda.device_count() < 2, "one device")
    def test_devices(self):
        with torch.cuda.device(1):
            a = take(3 * MIB)
        self.assertEqual(a.device.index, 1)
        self.assertEqual(torch.cuda.memory_allocated(1), 3 * MIB)
        self.assertEqual(torch.cuda.memory_allocated(0), 0)


class Process(Case):
    def test_fork(self):
        a = take(MIB)
        child = os.fork()
        if not child:
            code = 1
            try:
                take(MIB)
            except RuntimeError as error:
                code = 0 if "fork" in str(error) else 2
            del a
            gc.collect()
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        data = torch.arange(1000)
        self.assertTrue(torch.equal(data.cuda().cpu(), data))

    @policy_only
    def test_second_use(self):
        self.assertEqual(fragsim_torch.use(), "class")
        with self.assertRaisesRegex(RuntimeError, "comes too late"):
            fragsim_torch.use("best_fit:segment=64MiB")
        self.assertEqual(torch.cuda.get_allocator_backend(), "fragsim")

    @policy_only
    def test_change_of_allocator(self):
        other = memory.CUDAPluggableAllocator(
            os.environ["FRAGSIM_TORCH_LIBRARY"], "frag_torch_alloc",
            "frag_torch_free")
        with self.assertRaisesRegex(RuntimeError, "already initialized"):
            memory.change_current_allocator(other)


if __name__ == "__main__":
    torch.cuda.init()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
