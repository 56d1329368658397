"""Computes what a program reads of its device: the values that decide how many elements
a mask selects, where a loop ends, which rows an expert gets.

Each operator on device memory passes through Values, which notes it and lets PyTorch
carry it out on the stand-ins as it would without this file (but for the few that take
another way while operators are watched, such as linalg.eigvalsh, which then requests the
same sizes in another order). When the program reads a value, the noted operators that it
hangs on are carried out by PyTorch's kernels for the CPU, with the random numbers of the
GPU where they are known (see philox). What is read is then one of

  exact    all that it hangs on was computed
  drawn    a part would be too dear, or is not known: it is drawn by the seed, with the
           spread that the operator gives, and what follows from it was computed
  unknown  a whole number that nothing tells; it is read as zero

The notes hold no memory of the device. Values are kept by storage and version, so that a
view and its base have the same. The budget is counted in the estimated time of the
operators and not in that of a clock, so that two runs are equal. The backward pass is not
noted: what it makes is drawn where it is needed, and parameters keep the values that they
had before the first backward pass.

This file avoids syntax that an older Python lacks.
"""
import collections
import heapq
import sys
import threading
import warnings
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 1 << 21  # elements of a tensor of the host that are kept, and of one that is read
HELD = 1 << 28  # bytes of the host that all of the host's may take
SMALL = 1 << 16  # elements below which what was drawn is searched for NaN
LARGEST = 1 << 28  # bytes of a storage that is computed or drawn
WINDOW = 20000  # operators that are remembered
KEPT = 100000  # notes of what hangs on the host and on random numbers alone
FREE = 5e9  # nanoseconds of computing that need not be earned
EARNED = 40e3  # nanoseconds that an operator of the program takes
HARD = 20e9  # nanoseconds that one read takes at most, whatever was earned
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
PLAIN = (torch.Tensor, torch.nn.Parameter)
# Operators that write all of their first argument, whatever it held.
OVERWRITE = ("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_",
             "aten::random_", "aten::exponential_", "aten::bernoulli_")
ZERO = ("aten::zero_", "aten::_foreach_zero_")
# Operators that ask the device how many elements their result has; the first of their
# results has so many.
COUNTED = ("aten::nonzero", "aten::_unique2", "aten::unique_consecutive",
           "aten::unique_dim", "aten::repeat_interleave", "aten::masked_select",
           "aten::nonzero_numpy", "aten::argwhere", "aten::bincount", "torchvision::nms")
# The same if an index is a mask.
MASKED = ("aten::index", "aten::index_put_", "aten::_index_put_impl_")
# Operators of two operands, the value of one that decides alone, and their function.
DECIDED = {"aten::bitwise_or": True, "aten::logical_or": True, "aten::__or__": True,
           "aten::bitwise_and": False, "aten::logical_and": False,
           "aten::__and__": False, "aten::mul": False}
# Operators that copy, and the argument that is copied.
READS = {"aten::_to_copy": 0, "aten::to": 0, "aten::copy_": 1}
ITEMS = ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero")
# Operators whose time is that of a product: the argument whose last size is summed.
PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0, "aten::baddbmm": 1,
            "aten::linear": 0, "aten::matmul": 0}
ATTENTION = ("aten::_scaled_dot_product_flash_attention",
             "aten::_scaled_dot_product_efficient_attention",
             "aten::_scaled_dot_product_cudnn_attention")
# Functions of one operand that give values of a certain kind: of a drawn operand.
SHAPED = ("aten::_softmax", "aten::_log_softmax", "aten::sigmoid", "aten::relu",
          "aten::exp", "aten::silu", "aten::gelu", "aten::abs", "aten::rsqrt",
          "aten::sqrt", "aten::pow", "aten::clamp", "aten::tanh")
# Checks that end the program: they read zeros, which mean that all is well.
CHECKS = ("aten::_linalg_check_errors",)


class Unknown(Exception):
    """A value that nothing tells."""


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
    return torch.stack((x, y, z, w), 1)


class Random:
    """The numbers that the kernels of one operator draw on the GPU."""

    def __init__(self, device, generator):
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = generator or torch.cuda.default_generators[index]
        gpu = torch.cuda.get_device_properties(index)
        self.most = gpu.multi_processor_count * (
            gpu.max_threads_per_multi_processor // 256)
        self.seed, self.offset = generator.initial_seed(), generator.get_offset()

    def words(self, count):
        """A tensor of turns, the four numbers of a thread, and threads."""
        if not 0 < count <= 4 * MOST:
            raise Unknown
        return philox(self.seed, self.offset, count,
                      256 * min(self.most, -(-count // 256)))

    def integers(self, shape, low, high):
        if not 0 < high - low < 1 << 28:
            raise Unknown
        count = torch.Size(shape).numel()
        return (self.words(count).flatten()[:count] % (high - low) + low).view(shape)

    def uniform(self, shape):
        """Numbers above 0 and at most 1, as curand_uniform4."""
        count = torch.Size(shape).numel()
        return ((self.words(count).flatten()[:count].double() + 0.5) / 2**32) \
            .float().view(shape)

    def normal(self, shape):
        """As curand_normal4: Box and Muller's transform of two numbers each."""
        count = torch.Size(shape).numel()
        words = (self.words(count).double() + 0.5) / 2**32
        radius = (-2 * words[:, 0::2].log()).sqrt()
        angle = 2 * torch.pi * words[:, 1::2]
        pairs = torch.stack((radius * angle.sin(), radius * angle.cos()), 2)
        return pairs.flatten()[:count].float().view(shape)


def _bounds(args, kwargs, low, high):
    """The two numbers of a distribution after the tensor, by place or name."""
    numbers = list(args[1:3])
    names = [name for name in ("from", "to", "mean", "std", "low", "high")
             if name in kwargs]
    numbers += [kwargs[name] for name in names]
    return (numbers + [low, high][len(numbers):])[:2]


def draw_integers(random, shape, args, kwargs):
    low, high = args[:2] if len(args) == 3 else (0, args[0])
    return random.integers(shape, low, high)


def draw_integers_in_place(random, shape, args, kwargs):
    rest = args[1:]
    if not 1 <= len(rest) <= 2 or rest[-1] is None:
        raise Unknown
    return random.integers(shape, 0 if len(rest) == 1 else rest[0], rest[-1])


def draw_like(random, shape, args, kwargs):
    rest = args[1:]
    return random.integers(shape, 0 if len(rest) == 1 else rest[0], rest[-1])


def draw_uniform(random, shape, args, kwargs):
    low, high = _bounds(args, kwargs, 0.0, 1.0)
    value = random.uniform(shape) * (high - low) + low
    return torch.where(value == high, torch.full_like(value, low), value)


def draw_standard_uniform(random, shape, args, kwargs):
    return draw_uniform(random, shape, (), {})


def draw_normal(random, shape, args, kwargs):
    mean, std = _bounds(args, kwargs, 0.0, 1.0)
    return random.normal(shape) * std + mean


def draw_standard_normal(random, shape, args, kwargs):
    return random.normal(shape)


def draw_categories(random, shape, args, kwargs):
    """One sample a row: the largest of the weights divided by exponential numbers."""
    weights = args[0].float()
    if (args[1] if len(args) > 1 else kwargs["num_samples"]) != 1:
        raise Unknown
    exponential = -random.uniform(weights.shape).clamp(max=1 - 2.0**-24).log()
    return (weights / exponential).argmax(-1, keepdim=True)


# Operators that draw, and what the GPU draws: a function of its numbers and the shape.
DRAWN = {"aten::randint": draw_integers, "aten::randint_like": draw_like,
         "aten::random_": draw_integers_in_place, "aten::rand": draw_standard_uniform,
         "aten::rand_like": draw_standard_uniform, "aten::uniform_": draw_uniform,
         "aten::randn": draw_standard_normal, "aten::randn_like": draw_standard_normal,
         "aten::normal_": draw_normal, "aten::multinomial": draw_categories}


class Operator:
    """What is known of an operator from its schema."""

    def __init__(self, func):
        schema = func._schema
        self.func = func
        self.name = schema.name
        self.is_known = func.namespace in ("aten", "torchvision")
        self.writes = [i for i, told in enumerate(schema.arguments)
                       if told.alias_info is not None and told.alias_info.is_write]
        self.names = [schema.arguments[i].name for i in self.writes]
        self.may_view = not self.writes and self.is_known and any(
            told.alias_info is not None for told in schema.returns)
        self.is_empty = self.name.startswith(("aten::empty", "aten::new_empty"))
        self.is_random = torch.Tag.nondeterministic_seeded in func.tags
        self.overwrites = self.name in OVERWRITE or any(
            told.kwarg_only for told in schema.arguments if told.alias_info is not None)
        self.reads = self.name in COUNTED + MASKED + ITEMS + ("aten::equal",)


# A tensor as an operator saw it: the version of its storage, which is a note and the
# place among its results, or None if nothing is known of it.
Seen = collections.namedtuple("Seen", "version dtype size stride offset nbytes")


def _seen(tensor, version):
    return Seen(version, tensor.dtype, tensor.size(), tensor.stride(),
                tensor.storage_offset(), tensor.untyped_storage().nbytes())


def _tensor(seen, storage):
    return torch.empty(0, dtype=seen.dtype).set_(storage, seen.offset, seen.size,
                                                 seen.stride)


def _numel(seen):
    return seen.size.numel()


def _fills(seen):
    """Whether the tensor may have each byte of its storage."""
    return _numel(seen) * seen.dtype.itemsize == seen.nbytes


class Note:
    """An operator that was carried out, or a leaf: values of the host, or something
    that is drawn (func None)."""
    __slots__ = ("serial", "func", "operator", "args", "kwargs", "inputs", "outs",
                 "written", "random", "results", "is_drawn", "is_empty", "is_trained", "spread",
                 "held", "__weakref__")

    def __init__(self, serial, func=None, operator=None):
        self.serial, self.func, self.operator = serial, func, operator
        self.args, self.kwargs, self.inputs = (), {}, []
        self.outs = []  # each Seen: of new storages, then of those that are written
        self.written = []  # places among the inputs
        self.random = self.results = None
        self.is_drawn = self.is_empty = self.is_trained = False
        self.spread, self.held = 1.0, None

    def cut(self):
        """Forgets what the results hang on: they are drawn."""
        self.args, self.kwargs, self.inputs, self.written = (), {}, [], []
        self.func = None
        self.is_drawn = True

    def cost(self):
        """Estimated nanoseconds on the CPU."""
        if any(seen.nbytes > LARGEST for seen in self.outs):
            return float("inf")
        count = sum(map(_numel, self.outs)) + sum(map(_numel, self.inputs))
        time = 50e3 + count * (1 if self.random is None else 100)
        time += sum(self.inputs[i].nbytes for i in self.written) / 2
        name = self.operator.name
        if name in PRODUCTS and self.outs:
            time += _numel(self.outs[0]) * self.inputs[PRODUCTS[name]].size[-1] / 15
        elif name in ATTENTION:
            query, key = self.inputs[:2]
            time += _numel(query) * key.size[-2] * 4 / 30
        elif name == "aten::convolution":
            weight = self.inputs[1]
            time += _numel(self.outs[0]) * _numel(weight) / max(1, weight.size[0]) / 10
        return time


def _attention(args, kwargs):
    """What the fused kernels of the GPU compute, by the function for every device."""
    query, key, value = args[:3]
    is_efficient = len(args) > 3 and not isinstance(args[3], (bool, float))
    mask = args[3] if is_efficient else None
    causal = kwargs.get("is_causal", args[6] if is_efficient and len(args) > 6
                        else args[4] if not is_efficient and len(args) > 4 else False)
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=bool(causal),
        scale=kwargs.get("scale"))


def _histogram(args, kwargs):
    return torch.histc(args[0].double(), *args[1:], **kwargs)


# Operators that the CPU lacks, or not for all types.
INSTEAD = dict.fromkeys(ATTENTION, _attention)
INSTEAD["aten::histc"] = _histogram


class Held:
    """Bytes of the host that a note takes."""

    def __init__(self, values, size):
        self.values, self.size = values, size
        values.held += size

    def __del__(self):
        self.values.held -= self.size


class Evaluation:
    """Carries out noted operators on the CPU."""

    def __init__(self, seed, alike):
        self.seed, self.alike = seed, alike
        self.large, self.held = collections.deque(), 0  # notes, and bytes of the results

    def drawn(self, note, slot):
        """Plausible numbers for a result."""
        seen = note.outs[slot]
        if not seen.dtype.is_floating_point or seen.nbytes > LARGEST:
            raise Unknown
        count = seen.nbytes // seen.dtype.itemsize
        generator = torch.Generator()
        generator.manual_seed((self.seed * 1000003 + note.serial) * 31 + slot)
        flat = torch.randn(min(count, SMALL), generator=generator) * note.spread
        flat = flat.repeat(-(-count // max(1, len(flat))))[:count]
        if note.operator is not None and note.operator.name in SHAPED:
            flat = self.shaped(note.operator.name, flat, seen)
        last = seen.size[-1] if len(seen.size) > 1 else 0
        if last and count % last == 0:
            flat = self.level(flat.view(-1, last), note.serial).flatten()
        return flat.to(seen.dtype).untyped_storage()

    @staticmethod
    def shaped(name, flat, seen):
        name = name[len("aten::"):].lstrip("_")
        if name in ("softmax", "log_softmax"):
            last = max(1, seen.size[-1] if len(seen.size) else 1)
            if flat.numel() % last:
                return flat
            return getattr(torch, name)(flat.view(-1, last), -1).flatten()
        if name in ("rsqrt", "sqrt", "abs", "pow", "clamp"):
            return flat.abs()
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        return function(flat)

    def storage(self, seen):
        """The bytes of a tensor's storage, and whether they are drawn."""
        if seen.version is None or seen.version[0].is_empty:
            if not seen.dtype.is_floating_point or seen.nbytes > LARGEST:
                raise Unknown
            unknown = Note(seen.nbytes + 1)
            unknown.outs = [seen]
            return self.drawn(unknown, 0), True
        note, slot = seen.version
        if note.results is not None:
            if note.results[slot] is None:
                raise Unknown
            return note.results[slot], note.is_drawn
        if note.func is None:
            return self.drawn(note, slot), True
        raise Unknown  # it was not carried out

    def inputs(self, note):
        """The tensors of the inputs; those that are written are copies."""
        storages, drawn = {}, False
        writes = {note.inputs[i].version for i in note.written}
        tensors = []
        for i, seen in enumerate(note.inputs):
            key = seen.version if seen.version is not None else i
            if key not in storages:
                storages[key], was = self.base(note, i) if i in note.written \
                    else self.storage(seen)
                drawn = drawn or was
                if seen.version in writes:
                    storages[key] = storages[key].clone()
            tensors.append(_tensor(seen, storages[key]))
        return tensors, drawn

    def base(self, note, i):
        """What a tensor held that is written; of memory that nothing wrote before, it
        does not matter."""
        seen = note.inputs[i]
        is_empty = seen.version is not None and seen.version[0].is_empty
        if not is_empty and (seen.version is not None or not note.operator.overwrites):
            return self.storage(seen)
        return torch.zeros(seen.nbytes, dtype=torch.uint8).untyped_storage(), False

    def level(self, rows, seed):
        """Makes a part of the rows equal to the first."""
        if not self.alike:
            return rows
        count = len(rows)
        generator = torch.Generator()
        generator.manual_seed(self.seed + seed)
        chosen = torch.rand(count, generator=generator) < self.alike
        return torch.where(chosen.unsqueeze(1), rows[:1], rows)

    def run(self, note):
        """Sets the results; they are drawn if the operator cannot be carried out."""
        drawn, tensors = False, []
        try:
            tensors, drawn = self.inputs(note)
            found = self.call(note, iter(tensors), tensors)
        except Unknown:
            found = self.decided(note)
        except (RuntimeError, ValueError, TypeError, IndexError):
            found = None  # the CPU has no such kernel, or not for what was drawn
        if found is None:
            note.results = [self.drawn_or_none(note, k) for k in range(len(note.outs))]
            note.is_drawn = True
        else:
            if not isinstance(found, (tuple, list)):
                found = (found,)
            fresh = len(note.outs) - len(note.written)
            note.results = [self.placed(one, seen, drawn or note.is_drawn)
                            for one, seen in
                            zip(list(found) + fresh * [None], note.outs[:fresh])]
            note.results += [tensors[i].untyped_storage() for i in note.written]
            note.is_drawn = note.is_drawn or drawn
        note.args, note.kwargs, note.inputs = (), {}, []
        note.written, note.func = [], None
        self.hold(note)

    def hold(self, note):
        """Large results are kept until there are too many: then the oldest are drawn
        where they are needed again."""
        size = sum(seen.nbytes for seen in note.outs)
        if size < SMALL:
            return
        self.large.append((weakref.ref(note), size))
        self.held += size
        while self.held > HELD:
            old, size = self.large.popleft()
            self.held -= size
            note = old()
            if note is not None:
                note.results, note.is_drawn = None, True

    def drawn_or_none(self, note, slot):
        try:
            return self.drawn(note, slot)
        except Unknown:
            return None

    def placed(self, found, seen, drawn):
        """The storage of a result, as the device lays it out."""
        if not isinstance(found, torch.Tensor) or found.shape != seen.size:
            return None
        found = found.to(seen.dtype)
        if drawn and found.dim() > 1 and found.is_floating_point() and found.numel():
            found = self.level(found.flatten(0, -2), found.shape[-1]).view(found.shape)
        if drawn and found.is_floating_point() and found.numel() < SMALL:
            found = found.nan_to_num(0.0, float("inf"), float("-inf"))
        if found.stride() == seen.stride and found.storage_offset() == seen.offset \
                and found.untyped_storage().nbytes() == seen.nbytes:
            return found.untyped_storage()
        room = torch.zeros(seen.nbytes, dtype=torch.uint8).untyped_storage()
        _tensor(seen, room).copy_(found)
        return room

    def call(self, note, tensors, all_tensors):
        name = note.operator.name
        args = [self.filled(arg, tensors) for arg in note.args]
        kwargs = {k: self.filled(v, tensors) for k, v in note.kwargs.items()
                  if k != "pin_memory"}
        if note.random is not None:
            return self.random(note, args, kwargs, all_tensors)
        if name in INSTEAD:
            return INSTEAD[name](args, kwargs)
        return note.func(*args, **kwargs)

    def random(self, note, args, kwargs, tensors):
        """Numbers of the GPU if they are known, or else others by the seed; the
        program's own generator on the CPU is left as it is."""
        draw, seen = DRAWN.get(note.operator.name), note.outs[0]
        if draw is not None and note.random is not False:
            try:
                value = draw(note.random, seen.size, args, kwargs)
                return tensors[0].copy_(value) if note.written else value
            except Unknown:
                pass
        note.is_drawn = True
        state = torch.get_rng_state()
        try:
            torch.manual_seed(self.seed * 1000003 + note.serial)
            return note.func(*args, **dict(kwargs, generator=None)
                             if "generator" in kwargs else kwargs)
        finally:
            torch.set_rng_state(state)

    def filled(self, arg, tensors):
        if isinstance(arg, Seen):
            return next(tensors)
        if type(arg) in (list, tuple):
            return type(arg)(self.filled(one, tensors) for one in arg)
        if isinstance(arg, torch.device):
            return torch.device("cpu")
        if isinstance(arg, torch.Generator):
            return None
        return arg

    def decided(self, note):
        """What an operator yields one of whose operands decides alone, or None."""
        name, sides = note.operator.name, note.inputs[:2]
        if name not in DECIDED or len(sides) < 2:
            return None
        for one, other in (sides, sides[::-1]):
            try:
                value = _tensor(one, self.storage(one)[0])
            except Unknown:
                continue
            alone = bool(value.all()) if DECIDED[name] else not bool(value.any())
            if alone and one.dtype in WHOLE and other.dtype in WHOLE and (
                    not DECIDED[name] or one.dtype == torch.bool == other.dtype):
                return torch.full(note.outs[0].size, DECIDED[name],
                                  dtype=note.outs[0].dtype)
        return None

    def needs(self, root):
        """What is carried out for a note, the newest first: each until the budget is
        spent, then those that make whole numbers only; the others are drawn."""
        heap, found = [(-root.serial, id(root), root)], {}
        while heap:
            _, key, note = heapq.heappop(heap)
            if key in found:
                continue
            found[key] = note
            yield note
            for seen in note.inputs:
                if seen.version is not None and seen.version[0].func is not None:
                    below = seen.version[0]
                    heapq.heappush(heap, (-below.serial, id(below), below))

    def make(self, root, budget):
        """Carries out a note; returns the estimated nanoseconds. Unknown."""
        chosen, spent, walk = [], 0.0, self.needs(root)
        if root.func is None:
            return 0.0
        for note in walk:
            cost = note.cost()
            whole = note is root or any(out.dtype in WHOLE for out in note.outs)
            if spent + cost > (HARD if whole else budget):
                if whole:
                    raise Unknown
                note.cut()
                continue
            spent += cost
            chosen.append(note)
        for note in reversed(chosen):
            self.run(note)
        return spent


class Told(threading.local):
    """What the next read of this thread yields: its bytes or a number, and how much of
    it was computed."""
    known = counted = kind = None


class Values(TorchDispatchMode):
    """Notes operators, and answers reads."""

    def __init__(self, native, own_modes, seed, alike, share):
        super().__init__()
        self.now, self.native, self.entered = Told(), native, False
        self.own_modes, self.alike, self.share = own_modes, alike, share
        self.evaluation = Evaluation(seed, float(alike == "all"))
        self.versions = {}  # of a storage's number: (weak reference, version)
        self.addresses = {}  # the same by the first address of its memory
        self.operators, self.clone = {}, Operator(torch.ops.aten.clone.default)
        self.recent, self.count, self.kept, self.spent = collections.deque(), 0, 0, 0.0
        self.held = 0  # bytes of values of the host
        self.zeroed, self.has_trained = {}, False

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

    # ---- versions ----

    def version(self, tensor):
        storage = tensor.untyped_storage()
        found = self.versions.get(storage._cdata)
        return found[1] if found is not None and not found[0].expired() else None

    def set_version(self, tensor, version):
        storage = tensor.untyped_storage()
        if version is None:
            self.versions.pop(storage._cdata, None)
            self.addresses.pop(storage.data_ptr(), None)
            return
        found = StorageWeakRef(storage), version
        self.versions[storage._cdata] = found
        self.addresses[storage.data_ptr()] = found
        if len(self.versions) % 4096 == 0:
            self.versions, self.addresses = (
                {k: v for k, v in known.items() if not v[0].expired()}
                for known in (self.versions, self.addresses))

    def leaf(self, tensor):
        """A note of the values that a tensor of the host has now."""
        note = Note(self.count)
        size = tensor.numel() * tensor.element_size()
        note.outs = [Seen(None, tensor.dtype, tensor.size(), tensor.stride(),
                          tensor.storage_offset(), tensor.untyped_storage().nbytes())]
        if tensor.numel() <= MOST and self.held + size <= HELD:
            copy = tensor.detach().clone(memory_format=torch.preserve_format)
            note.outs = [_seen(copy, None)]
            note.results = [copy.untyped_storage()]
            note.held = Held(self, size)
        elif tensor.is_floating_point():
            some = tensor.detach().flatten()[::max(1, tensor.numel() // 4096)].float()
            note.spread = float(some.std(correction=0))
            note.is_drawn = True
            note.outs = [_seen(torch.empty(0, dtype=tensor.dtype), None)._replace(
                size=tensor.size(), stride=torch.empty(
                    tensor.size(), device="meta").stride(), nbytes=size)]
        else:
            note.results = [None]
        return note

    def see(self, arg, inputs):
        """The argument as a note keeps it."""
        if isinstance(arg, torch.Tensor):
            if arg.device.type == "cuda":
                seen = _seen(arg, self.trained(arg) if self.has_trained
                             and type(arg) is torch.nn.Parameter else self.version(arg))
            else:
                note = self.leaf(arg)
                seen = note.outs[0]._replace(version=(note, 0))
            inputs.append(seen)
            return seen
        if type(arg) in (list, tuple):
            return type(arg)(self.see(one, inputs) for one in arg)
        return arg

    def trained(self, parameter):
        """The version of a parameter that training has changed, to what is not known:
        its first values stand for those that it has, and count as drawn."""
        version = self.version(parameter)
        if not parameter.requires_grad or version is None or version[0].is_trained:
            return version
        note = Note(self.count, torch.ops.aten.clone.default, self.clone)
        note.inputs = [_seen(parameter, version)]
        note.args, note.outs = note.inputs, list(note.inputs)
        note.is_drawn = note.is_trained = True
        self.set_version(parameter, (note, 0))
        return note, 0

    # ---- operators ----

    def note(self, func, operator, args, kwargs):
        note = Note(self.count, func, operator)
        note.args = [self.see(arg, note.inputs) for arg in args]
        note.kwargs = {k: self.see(v, note.inputs) for k, v in kwargs.items()}
        if operator.is_random:
            note.random = self.random_of(args, kwargs)
        return note

    @staticmethod
    def random_of(args, kwargs):
        device = args[0].device if args and isinstance(args[0], torch.Tensor) \
            else torch.device(kwargs.get("device") or "cuda")
        try:
            return Random(device, kwargs.get("generator"))
        except (RuntimeError, AttributeError):  # such as during a capture
            return False

    def written(self, operator, args, kwargs):
        """The tensors that the operator changes."""
        if not operator.is_known:
            places = list(args) + list(kwargs.values())
        else:
            places = [args[i] if i < len(args) else kwargs.get(name)
                      for i, name in zip(operator.writes, operator.names)]
        return [t for t in _tensors(places) if t.device.type == "cuda"]

    def learn(self, note, operator, out, written):
        """Sets the versions of what the operator made and changed."""
        keys = {t.untyped_storage()._cdata for t in written}
        for one in _tensors(out if isinstance(out, (tuple, list)) else (out,)):
            if one.device.type != "cuda" or type(one) not in PLAIN \
                    or one.layout != torch.strided:
                continue
            if one.untyped_storage()._cdata in keys:
                continue
            if not operator.is_known:
                self.set_version(one, None)
                continue
            if operator.is_empty:
                note.func, note.is_empty = None, True
            note.outs.append(_seen(one, None))
            self.set_version(one, (note, len(note.outs) - 1))
        for tensor in written:
            self.write(note, operator, tensor)
        self.remember(note)

    def write(self, note, operator, tensor):
        if self.has_trained and type(tensor) is torch.nn.Parameter:
            return  # what training makes of it is not known
        version = self.version(tensor)
        place = next((i for i, seen in enumerate(note.inputs)
                      if seen.version == version and i not in note.written
                      and seen.size == tensor.size()
                      and seen.offset == tensor.storage_offset()), None)
        if not operator.is_known or place is None or \
                version is None and not operator.overwrites:
            self.set_version(tensor, None)
            return
        note.written.append(place)
        note.outs.append(note.inputs[place])
        if operator.overwrites and _fills(note.inputs[place]):
            note.inputs[place] = note.inputs[place]._replace(version=None)
        self.set_version(tensor, (note, len(note.outs) - 1))
        if operator.name in ZERO:
            storage = tensor.untyped_storage()
            self.zeroed[storage._cdata] = storage.data_ptr()

    def remember(self, note):
        """An old note is cut, unless it hangs on the host and on random numbers alone:
        so the notes do not grow with the steps of a program."""
        if note.func is None:
            return
        self.recent.append(note)
        if len(self.recent) <= WINDOW:
            return
        old = self.recent.popleft()
        if old.func is None:
            return
        leaves = all(seen.version is not None and seen.version[0].func is None
                     for seen in old.inputs)
        if leaves and self.kept < KEPT:
            self.kept += 1
        else:
            old.cut()

    # ---- reads ----

    def budget(self):
        return max(0.0, FREE + self.share * EARNED * self.count - self.spent)

    def value(self, tensor):
        """The tensor's values on the CPU, and whether they are drawn."""
        seen = _seen(tensor, self.version(tensor))
        if seen.version is not None:
            self.spent += self.evaluation.make(seen.version[0], self.budget())
        storage, drawn = self.evaluation.storage(seen)
        return _tensor(seen, storage), drawn

    def copied(self, tensor):
        """The values of a tensor that was copied from the host just now."""
        size = tensor.numel() * tensor.element_size()
        data = self.native(tensor.data_ptr(), size) \
            if 0 < tensor.numel() <= MOST and tensor.is_contiguous() else None
        if not data:
            return
        note = Note(self.count)
        room = torch.zeros(tensor.untyped_storage().nbytes(), dtype=torch.uint8)
        start = tensor.storage_offset() * tensor.element_size()
        room[start:start + size] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        note.outs, note.results = [_seen(tensor, None)], [room.untyped_storage()]
        self.set_version(tensor, (note, 0))

    def tell(self, note, operator, args):
        """Says what the reads of this operator yield."""
        name, now = operator.name, self.now
        if name in ITEMS:
            value, drawn = self.value(args[0])
            if drawn and value.is_floating_point():
                value = value.nan_to_num(0.0)
            now.known = _bytes(value)
        elif name in READS:
            value, drawn = self.value(args[READS[name]])
            dtype = args[0].dtype if name == "aten::copy_" else next(
                (one for one in list(args[1:]) + list(note.kwargs.values())
                 if isinstance(one, torch.dtype)), value.dtype)
            now.known = _bytes(value.to(dtype))
        elif name in MASKED:
            masks = [i for i in args[1] if i is not None and i.dtype == torch.bool]
            if not masks:
                return
            value, drawn = self.value(masks[0])
            now.counted = int(value.count_nonzero())
        elif name == "aten::_coalesce":
            value, drawn = self.value(args[0]._indices())
            now.counted = value.unique(dim=1).shape[1]
        else:
            now.counted, drawn = self.counted(note, args)
        now.kind = "drawn" if drawn else "exact"

    def counted(self, note, args):
        """How many elements the operator's result has; it is carried out for this."""
        for seen in note.inputs:
            if seen.version is not None:
                self.spent += self.evaluation.make(seen.version[0], self.budget())
        tensors, drawn = self.evaluation.inputs(note)
        found = self.evaluation.call(note, iter(tensors), tensors)
        if isinstance(found, bool):
            self.now.known = bytes([found])
            return None, drawn
        first = found[0] if isinstance(found, tuple) else found
        return first.shape[0] if first.dim() else 1, drawn

    @staticmethod
    def does_read(operator, args, kwargs):
        if operator.reads:
            return True
        if operator.name not in READS:
            return False
        copied = args[READS[operator.name]]
        if copied.device.type != "cuda" or copied.numel() > MOST:
            return False
        places = (args[0].device,) if operator.name == "aten::copy_" \
            else list(args[1:]) + [kwargs.get("device")]
        return any(isinstance(place, torch.device) and place.type == "cpu"
                   for place in places)

    # ---- the mode ----

    def concerns(self, args, kwargs):
        """Whether device memory takes part, and Values can note it."""
        device = kwargs.get("device")
        on_gpu = device is not None and torch.device(device).type == "cuda"
        for tensor in _tensors(list(args) + list(kwargs.values())):
            if type(tensor) not in PLAIN or tensor.layout != torch.strided:
                return False
            on_gpu = on_gpu or tensor.device.type == "cuda"
        return on_gpu

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        operator = self.operators.get(func)
        if operator is None:
            operator = self.operators[func] = Operator(func)
        if operator.name == "aten::_coalesce":
            return self.coalesce(func, operator, args)
        if operator.may_view and not self.does_read(operator, args, kwargs):
            return self.view(func, operator, args, kwargs)
        if not self.concerns(args, kwargs):
            return func(*args, **kwargs)
        self.count += 1
        with torch.inference_mode(False):
            note = self.note(func, operator, args, kwargs)
            written = self.written(operator, args, kwargs)
            if operator.name not in CHECKS and self.does_read(operator, args, kwargs):
                self.foretell(note, operator, args)
        try:
            out = func(*args, **kwargs)
        finally:
            self.forget_told()
        with torch.inference_mode(False):
            self.learn(note, operator, out, written)
        return out

    def view(self, func, operator, args, kwargs):
        """An operator that need not copy; if it did, it is noted."""
        out = func(*args, **kwargs)
        if operator.name == "aten::lift_fresh":  # copied from the host below this mode
            with torch.inference_mode(False):
                self.copied(out)
        elif isinstance(out, torch.Tensor) and self.concerns(args, kwargs) \
                and type(out) in PLAIN and not _shares(out, args[0]):
            self.count += 1
            with torch.inference_mode(False):
                self.learn(self.note(func, operator, args, kwargs), operator, out, ())
        return out

    def coalesce(self, func, operator, args):
        self.count += 1
        with torch.inference_mode(False):
            self.foretell(None, operator, args)
        try:
            return func(*args)
        finally:
            self.forget_told()

    def foretell(self, note, operator, args):
        self.forget_told()
        try:
            self.tell(note, operator, args)
        except Exception:  # unknown, or the program's own call says what is wrong
            self.now.known = self.now.counted = None

    def read(self, at, size):
        """What a read yields, and how much of it was computed; or None."""
        data, count = self.now.known, self.now.counted
        if data is not None and len(data) == size:
            return data, self.now.kind
        if count is not None and size in (4, 8):
            return count.to_bytes(size, sys.byteorder), self.now.kind
        if count is not None and size == 1:  # whether the counts make sense
            return bytes([1]), self.now.kind
        with torch.inference_mode(False), torch.no_grad():
            return self.read_at(at, size)

    def read_at(self, at, size):
        """A read of the memory of a storage, such as by the backward pass."""
        found = self.addresses.get(at)
        if found is None or found[0].expired() or size > MOST:
            return None
        note, slot = found[1]
        seen = note.outs[slot]._replace(version=found[1], dtype=torch.uint8, offset=0,
                                        size=torch.Size([size]), stride=(1,))
        try:
            self.spent += self.evaluation.make(note, self.budget())
            storage, drawn = self.evaluation.storage(seen)
        except Exception:
            return None
        return _bytes(_tensor(seen, storage)), "drawn" if drawn else "exact"

    def tell_outside(self, kernel, operator):
        """An operator that counts, where it is called without Values, as in the
        backward pass: the kernel that says first how many."""
        def counts(keys, tensor, *args, **kwargs):
            if self.now.known is None and self.now.counted is None:
                with torch.inference_mode(False), torch.no_grad():
                    note = Note(self.count, operator.func, operator)
                    note.args = [self.see(tensor, note.inputs)] + list(args)
                    note.kwargs = kwargs
                    self.foretell(note, operator, (tensor,))
                try:
                    return kernel.call_boxed(keys, tensor, *args, **kwargs)
                finally:
                    self.forget_told()
            return kernel.call_boxed(keys, tensor, *args, **kwargs)
        return counts

    def note_outside(self, kernel, operator):
        """An operator on whole numbers that is noted without Values, too: indices of
        sparse gradients are joined in the backward pass."""
        def notes(keys, tensors, *args, **kwargs):
            out = kernel.call_boxed(keys, tensors, *args, **kwargs)
            if not self.entered and out.dtype in WHOLE:
                with torch.inference_mode(False), torch.no_grad():
                    self.count += 1
                    self.learn(self.note(operator.func, operator, (tensors,) + args,
                                         kwargs), operator, out, ())
            return out
        return notes

    def forget_told(self):
        self.now.known = self.now.counted = self.now.kind = None

    def end_backward(self):
        """What the backward pass wrote is not noted: such as gradients that were set to
        zero before."""
        self.has_trained = True
        if self.alike == "more":
            self.evaluation.alike = 1 - (1 - self.evaluation.alike) / 2
        for key, address in self.zeroed.items():
            self.versions.pop(key, None)
            self.addresses.pop(address, None)
        self.zeroed.clear()


def _tensors(args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            for one in arg:
                if isinstance(one, torch.Tensor):
                    yield one


def _shares(tensor, other):
    """Whether they have the same memory."""
    return isinstance(other, torch.Tensor) and \
        tensor.untyped_storage()._cdata == other.untyped_storage()._cdata


def _bytes(tensor):
    flat = tensor.reshape(-1).clone(memory_format=torch.contiguous_format)
    return bytes(flat.view(torch.uint8).tolist())



def _without_own_frames(snapshot):
    """The snapshot, with the stacks that it would have without Values."""
    lists = [e.get("frames") for trace in snapshot["device_traces"] for e in trace]
    for segment in snapshot["segments"]:
        lists.append(segment.get("frames"))
        lists += [block.get("frames") for block in segment["blocks"]]
    for frames in {id(f): f for f in lists if f}.values():
        frames[:] = [f for f in frames if f["filename"] != __file__]
    return snapshot


def _outside_of_backward(values):
    """The backward pass runs without Values: what Python has seen there is not added
    in place, so that it would make other requests. What checkpoints repeat there is
    noted as the first time."""
    run = torch.autograd.graph._engine_run_backward

    def run_without(*args, **kwargs):
        if not values.entered or torch._C._len_torch_dispatch_stack() != 1:
            return run(*args, **kwargs)
        values.leave()
        try:
            return run(*args, **kwargs)
        finally:
            values.enter()
            values.end_backward()

    torch.autograd.graph._engine_run_backward = run_without
    torch.autograd._engine_run_backward = run_without
    _inside_of_checkpoints(values)


def _inside_of_checkpoints(values):
    import torch.utils.checkpoint as checkpoint
    if not hasattr(checkpoint, "_CheckpointFrame"):
        return
    begin = checkpoint._CheckpointFrame.__init__

    def begin_noted(frame, recompute, *args, **kwargs):
        def recompute_noted(*inputs):
            if values.entered:
                return recompute(*inputs)
            values.enter()
            try:
                return recompute(*inputs)
            finally:
                values.leave()

        begin(frame, recompute_noted, *args, **kwargs)

    checkpoint._CheckpointFrame.__init__ = begin_noted


def _outside_of_the_mode(values):
    """Counts are told below the mode, too, where this PyTorch lets an operator be
    replaced."""
    if not hasattr(torch.library, "get_kernel"):
        return None
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():  # PyTorch warns of an override
        warnings.simplefilter("ignore")
        for name, put in (("nonzero", values.tell_outside), ("cat", values.note_outside),
                          ("clone", values.note_outside)):
            func = getattr(torch.ops.aten, name).default
            kernel = torch.library.get_kernel("aten::" + name, "CUDA")
            library.impl(name, put(kernel, Operator(func)), "CUDA",
                         with_keyset=True, allow_override=True)
    return library


def start(native, own_modes, seed, alike, share):
    """Notes operators from now on; returns the function that answers reads. native(
    address, size) has the bytes of device memory that the stand-ins know, or None;
    own_modes(count) is told how many modes of a thread are not the program's; if is_alike,
    the rows of what is drawn are equal, so that all of them are routed, end and are kept
    alike; share is the part of the run's time that computing values may take."""
    values = Values(native, own_modes, seed, alike, share)
    _outside_of_backward(values)
    replay = torch.cuda.CUDAGraph.replay

    def replay_and_forget(graph):
        values.versions.clear()
        values.addresses.clear()
        return replay(graph)

    torch.cuda.CUDAGraph.replay = replay_and_forget
    snapshot = torch.cuda.memory._snapshot
    torch.cuda.memory._snapshot = lambda *args, **kwargs: _without_own_frames(
        snapshot(*args, **kwargs))
    values.library = _outside_of_the_mode(values)
    values.enter()
    return values.read
