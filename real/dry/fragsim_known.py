"""Keeps the values of small tensors of integers and truth values that follow from the
host: token numbers and masks that were copied to the device, arange, ones, and what the
program computes from such tensors alone. A program that reads one of them back, or asks
how many of them are true, gets what a GPU would say. Any other value is unknown.

Each operator passes through Known: PyTorch carries it out on the stand-ins as it would
without this file (but for the few that take another way while operators are watched, such
as linalg.eigvalsh, which then requests the same sizes in another order), and if all that it reads is known, the CPU repeats it. Values are kept
by storage, so that a view and its base have the same. Memory that something else writes
(an operator with an unknown input, a collective, the replay of a graph) is forgotten; a
kernel that is not an operator of PyTorch, such as one of Triton, is not noticed.

This file avoids syntax that an older Python lacks.
"""
import sys

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 1 << 21  # elements of a tensor whose values are kept
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
PLAIN = (torch.Tensor, torch.nn.Parameter)
# Operators that write all of their first argument, whatever it held.
OVERWRITE = ("aten::copy_", "aten::fill_", "aten::zero_")
# Operators that ask the device how many elements their result has; the first of their
# results has so many.
COUNTED = ("aten::nonzero", "aten::_unique2", "aten::unique_consecutive",
           "aten::unique_dim", "aten::repeat_interleave", "aten::masked_select")
# Operators of whose first argument only the shape counts.
SHAPED = ("aten::new_ones", "aten::new_zeros", "aten::new_full", "aten::new_empty",
          "aten::ones_like", "aten::zeros_like", "aten::full_like", "aten::empty_like")
# Operators of two operands, the value of one that decides alone, and their function.
DECIDED = {"aten::bitwise_or": True, "aten::logical_or": True, "aten::__or__": True,
           "aten::bitwise_and": False, "aten::logical_and": False,
           "aten::__and__": False, "aten::mul": False}
# Operators that draw whole numbers. Those of the first are the GPU's own (see philox); of
# the second, other numbers than a GPU draws are kept.
INTEGERS = ("aten::randint",)
RANDOM = ("aten::randint_like", "aten::randperm") + INTEGERS
# Operators that copy, and the argument that is copied.
READS = {"aten::_to_copy": 0, "aten::to": 0, "aten::copy_": 1}
ITEMS = ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero")
# The same as COUNTED if an index is a mask.
MASKED = ("aten::index", "aten::index_put_", "aten::_index_put_impl_")


class Unknown(Exception):
    """A tensor whose values are not known."""


def _tensors(args, kwargs):
    for arg in list(args) + list(kwargs.values()):
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            for one in arg:
                if isinstance(one, torch.Tensor):
                    yield one


def _kept(tensor):
    """Whether it is a tensor whose values may be kept."""
    return (type(tensor) in PLAIN and tensor.dtype in WHOLE
            and tensor.device.type == "cuda" and tensor.numel() <= MOST
            and tensor.layout == torch.strided)


def _fills(tensor):
    """Whether the tensor has each byte of its storage once."""
    size = tensor.numel() * tensor.element_size()
    dense = tensor.is_contiguous() or tensor.dim() == 2 and tensor.t().is_contiguous()
    return dense and tensor.untyped_storage().nbytes() == size


def _bytes(tensor):
    flat = tensor.reshape(-1).clone(memory_format=torch.contiguous_format)
    return bytes(flat.view(torch.uint8).tolist())


def _written(func, args):
    """The tensors that the operator changes; all, if its schema may not say so."""
    if func.namespace != "aten":
        return list(_tensors(args, {}))
    changed = [arg for arg, told in zip(args, func._schema.arguments)
               if told.alias_info is not None and told.alias_info.is_write]
    return list(_tensors(changed, {}))


def philox(seed, offset, count, threads):
    """The numbers of 32 bits that a kernel of PyTorch draws for `count` elements, as
    int64: Philox4x32-10 (Salmon et al., SC 2011, as cuRAND seeds it), whose counter is
    the offset of the generator and the number of the thread. A thread takes four
    numbers a turn, `threads` elements apart."""
    low, turns = 0xffffffff, -(-count // (4 * threads))
    turn = torch.arange(offset // 4, offset // 4 + turns).view(-1, 1)
    x, y = turn & low, turn >> 32
    z, w = torch.arange(threads).view(1, -1), torch.zeros(1, dtype=torch.int64)
    keys = seed & low, seed >> 32 & low
    for _ in range(10):
        one, other = x * 0xD2511F53, z * 0xCD9E8D57
        x, y, z, w = ((other >> 32 & low) ^ y ^ keys[0], other & low,
                      (one >> 32 & low) ^ w ^ keys[1], one & low)
        keys = keys[0] + 0x9E3779B9 & low, keys[1] + 0xBB67AE85 & low
    return torch.stack((x, y, z, w), 1).flatten()[:count]


def integers(args, kwargs):
    """What randint(low=0, high, size) yields on the GPU."""
    low, high = args[:2] if len(args) == 3 else (0, args[0])
    shape, dtype = args[-1], kwargs.get("dtype") or torch.int64
    device, count = torch.device(kwargs["device"]), torch.Size(shape).numel()
    if dtype not in WHOLE or not 0 < high - low < 1 << 28 or not 0 < count <= MOST:
        raise Unknown
    index = torch.cuda.current_device() if device.index is None else device.index
    generator = kwargs.get("generator") or torch.cuda.default_generators[index]
    gpu = torch.cuda.get_device_properties(index)
    most = gpu.multi_processor_count * (gpu.max_threads_per_multi_processor // 256)
    drawn = philox(generator.initial_seed(), generator.get_offset(), count,
                   256 * min(most, -(-count // 256)))
    return (drawn % (high - low) + low).to(dtype).view(shape)


class Known(TorchDispatchMode):
    """`now` has what the next read of this thread yields: now.known, its bytes, and
    now.counted, a number."""

    def __init__(self, now, native, own_modes):
        super().__init__()
        self.now, self.native, self.entered = now, native, False
        self.own_modes = own_modes
        self.values = {}  # of a storage's address: (weak reference, bytes on the CPU)

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # or PyTorch puts two more functions around each operator

    def enter(self):
        self.entered = True
        self.own_modes(1)
        self.__enter__()

    def leave(self):
        self.entered = False
        self.own_modes(0)
        self.__exit__(None, None, None)

    # ---- what is kept ----

    def value(self, tensor):
        """The tensor's values on the CPU, at its own place in its storage."""
        if tensor.device.type == "cpu" and type(tensor) in PLAIN \
                and tensor.numel() <= MOST:
            return tensor
        if not _kept(tensor):
            raise Unknown
        kept = self.values.get(tensor.untyped_storage()._cdata)
        if kept is None or kept[0].expired():
            raise Unknown
        return torch.empty(0, dtype=tensor.dtype).set_(
            kept[1], tensor.storage_offset(), tensor.size(), tensor.stride())

    def keep(self, tensor, value):
        if not _kept(tensor) or not _fills(tensor) or value.shape != tensor.shape:
            return
        storage = tensor.untyped_storage()
        room = torch.empty(storage.nbytes(), dtype=torch.uint8).untyped_storage()
        self.values[storage._cdata] = StorageWeakRef(storage), room
        self.value(tensor).copy_(value)
        if len(self.values) % 4096 == 0:
            self.values = {k: v for k, v in self.values.items() if not v[0].expired()}

    def forget(self, tensors):
        for tensor in tensors:
            if type(tensor) in PLAIN and tensor.dtype in WHOLE:
                self.values.pop(tensor.untyped_storage()._cdata, None)

    # ---- operators ----

    def on_host(self, arg):
        """The argument as the CPU repeats the operator with it."""
        if isinstance(arg, torch.Tensor):
            return self.value(arg)
        if isinstance(arg, (list, tuple)):
            return type(arg)(map(self.on_host, arg))
        if isinstance(arg, torch.device):
            return torch.device("cpu")
        return arg

    def copied(self, tensor):
        """The values of a tensor that was copied from the host just now."""
        data = self.native(tensor.data_ptr(), tensor.numel() * tensor.element_size()) \
            if _kept(tensor) and _fills(tensor) and tensor.is_contiguous() else None
        if not data:
            raise Unknown
        return torch.frombuffer(bytearray(data), dtype=tensor.dtype).view(tensor.shape)

    def drawn(self, func, args, kwargs):
        """Drawn numbers; the program's own generator on the CPU is left as it is."""
        state = torch.get_rng_state()
        try:
            return func(*map(self.on_host, args), **{
                k: self.on_host(v) for k, v in kwargs.items()
                if v is not None and k != "pin_memory"})
        finally:
            torch.set_rng_state(state)

    def decided(self, name, args):
        """The value of an operator one of whose operands decides alone."""
        for one, other in (args[:2], args[1::-1]):
            if name not in DECIDED or not all(
                    isinstance(t, torch.Tensor) and t.dtype in WHOLE for t in args[:2]):
                break
            try:
                value = self.value(one)
            except Unknown:
                continue
            alone = bool(value.all()) if DECIDED[name] else not bool(value.any())
            if alone and (not DECIDED[name] or one.dtype == torch.bool == other.dtype):
                shape = torch.broadcast_shapes(one.shape, other.shape)
                return torch.full(shape, DECIDED[name],
                                  dtype=torch.promote_types(one.dtype, other.dtype))
        raise Unknown

    def repeat(self, func, args, kwargs):
        """What the operator yields, on the CPU; it may change known values."""
        name = func._schema.name
        if name in RANDOM:
            if name in INTEGERS:
                try:
                    return integers(args, kwargs)
                except Unknown:
                    pass
            return self.drawn(func, args, dict(kwargs, generator=None))
        if torch.Tag.nondeterministic_seeded in func.tags or func.namespace != "aten":
            raise Unknown
        if name == "aten::lift_fresh":  # torch.tensor copied it below this mode
            return self.copied(args[0])
        options = {k: self.on_host(v) for k, v in kwargs.items() if k != "pin_memory"}
        if name in OVERWRITE and _kept(args[0]) and _fills(args[0]):
            rest = [self.on_host(arg) for arg in args[1:]]
            self.keep(args[0], torch.zeros(args[0].shape, dtype=args[0].dtype))
            return func(self.value(args[0]), *rest, **options)
        if name in SHAPED and args[0].numel() <= MOST:
            return func(torch.zeros(args[0].shape, dtype=args[0].dtype), *args[1:],
                        **options)
        try:
            host = [self.on_host(arg) for arg in args]
        except Unknown:
            return self.decided(name, args)
        return func(*host, **options)

    def concerns(self, func, args, kwargs):
        """Whether the operator may read or make values that are kept."""
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "cuda":
            return True
        if kwargs.get("dtype") in WHOLE and func._schema.name in SHAPED:
            return True
        return any(t.dtype in WHOLE and t.device.type == "cuda"
                   for t in _tensors(args, kwargs))

    def tell(self, func, args, found):
        """Says what the reads of this operator yield."""
        name, now = func._schema.name, self.now
        if name in MASKED:
            masks = [i for i in args[1] if i is not None and i.dtype == torch.bool]
            if masks:
                now.counted = int(self.value(masks[0]).count_nonzero())
        elif name == "aten::masked_select":
            now.counted = int(self.value(args[1]).count_nonzero())
        elif found is None:
            return
        elif name in COUNTED:
            first = found[0] if isinstance(found, tuple) else found
            now.counted = first.shape[0] if first.dim() else 1
        elif name == "aten::equal":
            now.known = bytes([found])
        elif name in ITEMS:
            now.known = _bytes(self.value(args[0]))
        elif name in READS and args[READS[name]].device.type == "cuda":
            now.known = _bytes(found)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.concerns(func, args, kwargs):
            return func(*args, **kwargs)
        with torch.inference_mode(False):
            found = self.foresee(func, args, kwargs)
        try:
            out = func(*args, **kwargs)
        finally:
            self.now.known = self.now.counted = None
        if found is not None:
            with torch.inference_mode(False):
                self.learn(out, found)
        return out

    def foresee(self, func, args, kwargs):
        """What the operator yields, or None; tells what its reads yield."""
        found = None
        try:
            found = self.repeat(func, args, kwargs)
        except Exception:  # the program's own call says what is wrong with it
            self.forget(_written(func, args))
        self.now.known = self.now.counted = None
        try:
            self.tell(func, args, found)
        except Unknown:
            pass
        return found

    def learn(self, out, found):
        pairs = zip(out, found) if isinstance(out, (tuple, list)) else ((out, found),)
        for own, value in pairs:
            if isinstance(own, torch.Tensor) and isinstance(value, torch.Tensor) \
                    and _kept(own) \
                    and own.untyped_storage()._cdata not in self.values:
                self.keep(own, value)


def known_bytes(now, size):
    """What a read of that size yields, or None."""
    data = getattr(now, "known", None)
    if data is not None and len(data) == size:
        return data
    count = getattr(now, "counted", None)
    if count is not None and size in (4, 8):
        return count.to_bytes(size, sys.byteorder)
    if count is not None and size == 1:  # whether the counts make sense
        return bytes([1])
    return None


def _without_own_frames(snapshot):
    """The snapshot, with the stacks that it would have without Known."""
    lists = [e.get("frames") for trace in snapshot["device_traces"] for e in trace]
    for segment in snapshot["segments"]:
        lists.append(segment.get("frames"))
        lists += [block.get("frames") for block in segment["blocks"]]
    for frames in {id(f): f for f in lists if f}.values():
        frames[:] = [f for f in frames if f["filename"] != __file__]
    return snapshot


def _outside_of_backward(known):
    """The backward pass runs without Known: what Python has seen there is not added
    in place, so that it would make other requests."""
    run = torch.autograd.graph._engine_run_backward

    def run_without(*args, **kwargs):
        if not known.entered or torch._C._len_torch_dispatch_stack() != 1:
            return run(*args, **kwargs)
        known.leave()
        try:
            return run(*args, **kwargs)
        finally:
            known.enter()

    torch.autograd.graph._engine_run_backward = run_without
    torch.autograd._engine_run_backward = run_without


def start(now, native, own_modes):
    """Keeps values from now on. native(address, size) has the bytes of device memory
    that the stand-ins know, or None; own_modes(count) is told how many modes of a
    thread are not the program's."""
    known = Known(now, native, own_modes)
    _outside_of_backward(known)
    replay = torch.cuda.CUDAGraph.replay

    def replay_and_forget(graph):
        known.values.clear()
        return replay(graph)

    torch.cuda.CUDAGraph.replay = replay_and_forget
    snapshot = torch.cuda.memory._snapshot
    torch.cuda.memory._snapshot = lambda *args, **kwargs: _without_own_frames(
        snapshot(*args, **kwargs))
    known.enter()
