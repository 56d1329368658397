"""Computes what a program reads of its device: the values that decide how many elements
a mask selects, where a loop ends, which rows an expert gets.

Each operator on device memory passes through Values, which notes it and lets PyTorch
carry it out on the stand-ins as it would without this file (but for the few that take
another way while operators are watched, such as linalg.eigvalsh, which then requests the
same sizes in another order). When the program reads a value, the noted operators that it
hangs on are carried out by PyTorch's kernels for the CPU (fragsim_notes.py), with the
random numbers of the GPU where they are known (fragsim_draws.py). What is read is then one
of

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
import sys
import threading
import warnings

import torch
from fragsim_draws import Random
from fragsim_notes import HELD, ITEMS, MASKED, WHOLE, Evaluation, Note, Operator, Seen, \
    fills, seen_of, tensor_of
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 1 << 21  # elements of a tensor of the host that are kept, and of one that is read
WINDOW = 20000  # operators that are remembered
KEPT = 100000  # notes of what hangs on the host and on random numbers alone
FREE = 5e9  # nanoseconds of computing that need not be earned
EARNED = 40e3  # nanoseconds that an operator of the program takes
PLAIN = (torch.Tensor, torch.nn.Parameter)
# Of the rows that are not alike, the part that a backward pass leaves so; with these
# extremes, the losses that the program reads fall by half.
LEFT = {"all": 0, "more": 1 / 2, "some": 4 / 5}
ZERO = ("aten::zero_", "aten::_foreach_zero_")
# Operators that copy, and the argument that is copied.
READS = {"aten::_to_copy": 0, "aten::to": 0, "aten::copy_": 1}
# Checks that end the program: they read zeros, which mean that all is well.
CHECKS = ("aten::_linalg_check_errors",)


class Held:
    """Bytes of the host that a note takes."""

    def __init__(self, values, size):
        self.values, self.size = values, size
        values.held += size

    def __del__(self):
        self.values.held -= self.size


class Told(threading.local):
    """What the next read of this thread yields: its bytes or a number, and how much of
    it was computed."""
    known = counted = kind = None


class Values(TorchDispatchMode):
    """Notes operators, and answers reads."""

    def __init__(self, native, sent, own_modes, seed, alike, share):
        super().__init__()
        self.now, self.entered = Told(), False
        self.native, self.sent = native, sent
        self.own_modes, self.alike, self.share = own_modes, alike, share
        self.evaluation = Evaluation(seed, float(alike == "all"))
        self.versions = {}  # of a storage's number: (weak reference, version)
        self.addresses = {}  # the same by the first address of its memory
        self.most_versions = 4096  # before those of freed storages are removed
        self.operators, self.clone = {}, Operator(torch.ops.aten.clone.default)
        self.recent, self.count, self.kept, self.spent = collections.deque(), 0, 0, 0.0
        self.held = 0  # bytes of values of the host
        self.zeroed, self.has_trained, self.fallen = {}, False, 1.0
        self.awaited = {}  # what other ranks send: (weak reference, parts) by storage

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
        if len(self.versions) > self.most_versions:
            self.versions, self.addresses = (
                {k: v for k, v in known.items() if not v[0].expired()}
                for known in (self.versions, self.addresses))
            self.most_versions = 2 * len(self.versions) + 4096

    def leaf(self, tensor):
        """A note of the values that a tensor of the host has now."""
        note = Note(self.count)
        size = tensor.numel() * tensor.element_size()
        note.outs = [Seen(None, tensor.dtype, tensor.size(), tensor.stride(),
                          tensor.storage_offset(), tensor.untyped_storage().nbytes())]
        if tensor.device.type != "cpu":  # meta: it has no values
            return note
        if tensor.numel() <= MOST and self.held + size <= HELD:
            copy = tensor.detach().clone(memory_format=torch.preserve_format)
            note.outs = [seen_of(copy, None)]
            note.results = [copy.untyped_storage()]
            note.held = Held(self, size)
        elif tensor.is_floating_point():
            some = tensor.detach().flatten()[::max(1, tensor.numel() // 4096)].float()
            note.spread = float(some.std(correction=0))
            note.is_drawn = True
            note.outs = [seen_of(torch.empty(0, dtype=tensor.dtype), None)._replace(
                size=tensor.size(), stride=torch.empty(
                    tensor.size(), device="meta").stride(), nbytes=size)]
        else:
            note.results = [None]
        return note

    def see(self, arg, inputs):
        """The argument as a note keeps it."""
        if isinstance(arg, torch.Tensor):
            if arg.device.type == "cuda":
                if self.awaited:
                    self.receive(arg)
                seen = seen_of(arg, self.trained(arg) if self.has_trained
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
        note.inputs = [seen_of(parameter, version)]
        note.args, note.outs = note.inputs, list(note.inputs)
        note.is_drawn = note.is_trained = True
        self.set_version(parameter, (note, 0))
        return note, 0

    # ---- operators ----

    def note(self, func, operator, args, kwargs):
        note = Note(self.count, func, operator)
        note.args = [self.see(arg, note.inputs) for arg in args]
        note.kwargs = {k: self.see(v, note.inputs) for k, v in kwargs.items()}
        if operator.is_like:
            note.inputs = [seen._replace(version=None) for seen in note.inputs]
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
            note.outs.append(seen_of(one, None))
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
        if operator.overwrites and fills(note.inputs[place]):
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
        seen = seen_of(tensor, self.version(tensor))
        if seen.version is not None:
            self.spent += self.evaluation.make(seen.version[0], self.budget())
        storage, drawn = self.evaluation.storage(seen)
        return tensor_of(seen, storage), drawn

    def copied(self, tensor):
        """The values of a tensor that was copied from the host just now."""
        size = tensor.numel() * tensor.element_size()
        if type(tensor) in PLAIN and 0 < tensor.numel() <= MOST \
                and tensor.is_contiguous():
            self.know(tensor, [(tensor.data_ptr(), self.native(tensor.data_ptr(), size))])

    def know(self, tensor, parts):
        """Notes the bytes of these parts of the tensor's storage, if all of them are
        known."""
        storage = tensor.untyped_storage()
        room = torch.zeros(storage.nbytes(), dtype=torch.uint8)
        for at, data in parts:
            if not data:
                return
            start = at - storage.data_ptr()
            room[start:start + len(data)] = torch.frombuffer(bytearray(data),
                                                             dtype=torch.uint8)
        note = Note(self.count)
        note.outs, note.results = [seen_of(tensor, None)], [room.untyped_storage()]
        self.set_version(tensor, (note, 0))

    def receive(self, tensor):
        """At the first use of what other ranks send, their messages are waited for."""
        storage = tensor.untyped_storage()
        found = self.awaited.pop(storage._cdata, None)
        if found is not None and not found[0].expired():
            self.know(tensor, [(at, get()) for at, get in found[1]])

    def tell(self, note, operator, args):
        """Says what the reads of this operator yield."""
        name, now = operator.name, self.now
        if name in ITEMS:
            value, drawn = self.value(args[0])
            if drawn and value.is_floating_point():
                value = value.nan_to_num(0.0)
                value = value * self.fallen if self.alike in LEFT else value
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
        count = first.shape[0] if first.dim() else 1
        is_largest = note.operator.name == "aten::bincount"  # it reads the last bin
        return count - is_largest, drawn

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
        if func.namespace == "c10d":
            return self.received(func, operator, args, kwargs)
        if operator.name == "aten::resize_" and args[0].device.type == "cuda":
            return self.resized(func, args, kwargs)
        if operator.may_view and not self.does_read(operator, args, kwargs):
            return self.view(func, operator, args, kwargs)
        if not self.concerns(args, kwargs):
            return self.unseen(func, operator, args, kwargs)
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

    def unseen(self, func, operator, args, kwargs):
        """An operator that cannot be noted, such as with a sparse tensor: what it
        writes is not known."""
        out = func(*args, **kwargs)
        for tensor in self.written(operator, args, kwargs):
            if type(tensor) in PLAIN and tensor.layout == torch.strided:
                self.set_version(tensor, None)
        return out

    def received(self, func, operator, args, kwargs):
        """A call of torch.distributed: what it writes is asked for at the first use."""
        out = func(*args, **kwargs)
        for tensor in self.written(operator, args, kwargs):
            size = tensor.numel() * tensor.element_size()
            if type(tensor) not in PLAIN or tensor.layout != torch.strided:
                continue
            self.set_version(tensor, None)
            get = self.sent(tensor.data_ptr(), size)
            if get is not None:
                storage = tensor.untyped_storage()
                self.awaited.setdefault(storage._cdata, (StorageWeakRef(storage), []))[
                    1].append((tensor.data_ptr(), get))
        return out

    def resized(self, func, args, kwargs):
        """Objects are made as long as the longest before all ranks gather them."""
        tensor, found = args[0], None
        if self.version(tensor) is not None and type(tensor) in PLAIN:
            found = self.read_at(tensor.data_ptr(), tensor.untyped_storage().nbytes())
        out = func(*args, **kwargs)
        self.set_version(tensor, None)
        if found is not None and found[1] == "exact":
            self.know(tensor, [(tensor.data_ptr(), found[0])])
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
        return _bytes(tensor_of(seen, storage)), "drawn" if drawn else "exact"

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
        self.evaluation.alike = 1 - (1 - self.evaluation.alike) * LEFT.get(self.alike, 1)
        self.fallen /= 2
        for key, address in self.zeroed.items():
            self.versions.pop(key, None)
            self.addresses.pop(address, None)
        self.zeroed.clear()


def _tensors(args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from _tensors(arg)


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


def start(native, sent, own_modes, seed, alike, share):
    """Notes operators from now on; returns the function that answers reads. native(
    address, size) has the bytes of device memory that the stand-ins know, or None, and
    sent(address, size) a function that waits for those that another rank sends, or None;
    own_modes(count) is told how many modes of a thread are not the program's; if is_alike,
    the rows of what is drawn are equal, so that all of them are routed, end and are kept
    alike; share is the part of the run's time that computing values may take."""
    values = Values(native, sent, own_modes, seed, alike, share)
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
