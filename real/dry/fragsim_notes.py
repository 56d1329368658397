"""Notes of operators that a program carried out on device memory, and their evaluation on
the CPU (fragsim_values.py says when).

This file avoids syntax that an older Python lacks.
"""
import collections
import heapq
import weakref

import torch
from fragsim_draws import DRAWN, Unknown

HELD = 1 << 28  # bytes of the host that all of the host's may take
SMALL = 1 << 16  # elements below which what was drawn is searched for NaN
DRAWN_MOST = 1 << 14  # numbers that are drawn; a larger tensor has them again and again
LARGEST = 1 << 28  # bytes of a storage that is computed or drawn
HARD = 20e9  # nanoseconds that one read takes at most, whatever was earned
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Operators that write all of their first argument, whatever it held.
OVERWRITE = ("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_",
             "aten::random_", "aten::exponential_", "aten::bernoulli_")
# Operators that need no more of their first argument than its size and type.
LIKE = ("aten::new_ones", "aten::new_zeros", "aten::new_full", "aten::ones_like",
        "aten::zeros_like", "aten::full_like")
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
        self.is_like = self.name in LIKE
        self.overwrites = self.is_like or self.name in OVERWRITE or any(
            told.kwarg_only for told in schema.arguments if told.alias_info is not None)
        self.reads = self.name in COUNTED + MASKED + ITEMS + ("aten::equal",)


# A tensor as an operator saw it: the version of its storage, which is a note and the
# place among its results, or None if nothing is known of it.
Seen = collections.namedtuple("Seen", "version dtype size stride offset nbytes")


def seen_of(tensor, version):
    return Seen(version, tensor.dtype, tensor.size(), tensor.stride(),
                tensor.storage_offset(), tensor.untyped_storage().nbytes())


def tensor_of(seen, storage):
    return torch.empty(0, dtype=seen.dtype).set_(storage, seen.offset, seen.size,
                                                 seen.stride)


def _numel(seen):
    return seen.size.numel()


def fills(seen):
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
        flat = torch.randn(min(count, DRAWN_MOST), generator=generator) * note.spread
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
                storages[key], was = self.base(note, i) if note.operator.is_like \
                    or i in note.written else self.storage(seen)
                drawn = drawn or was
                if seen.version in writes:
                    storages[key] = storages[key].clone()
            tensors.append(tensor_of(seen, storages[key]))
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
        tensor_of(seen, room).copy_(found)
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
                value = tensor_of(one, self.storage(one)[0])
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
