"""The functions of torch.cuda and torch.cuda.memory."""
import os
import pickle
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))

_state = {"ready": False, "runtime": None}
_waiting = []
emptied = 0  # calls of empty_cache


def start(runtime):
    _state["runtime"] = runtime


def init():
    if not _state["ready"]:
        _state["ready"] = True
        for call in _waiting:
            call()


def is_initialized():
    return _state["ready"]


def _lazy_call(call):
    if _state["ready"]:
        call()
    else:
        _waiting.append(call)


def device_count():
    return 1


def synchronize():
    pass


def empty_cache():
    global emptied  # pylint: disable=global-statement
    emptied += 1


def reset_peak_memory_stats(device):
    del device
    memory.peak = memory.live


def reset_accumulated_memory_stats(device):
    del device


def memory_stats(device):
    del device
    found = {f"{what}_bytes.all.peak": memory.peak
             for what in ("allocated", "reserved", "requested")}
    return {**found, "num_ooms": 0, "reserved_bytes.all.current": memory.live}


def _frames():
    """The stack of the program, innermost first."""
    frame, found = sys._getframe(), []
    while frame is not None:
        if os.path.dirname(frame.f_code.co_filename) != HERE:
            found.append({"name": frame.f_code.co_name, "line": frame.f_lineno,
                          "filename": frame.f_code.co_filename})
        frame = frame.f_back
    return found


class _Memory(types.SimpleNamespace):
    entries = None  # of the history; None: it is off
    live = peak = 0
    is_inside = False
    backend = "native"
    marks = []

    def get_allocator_backend(self):
        return self.backend

    def mark(self, name):
        """A mark, as an optimizer makes it."""
        self.marks += [{"stage": stage, "name": name, "device": 0,
                        "time_us": 10 * len(self.entries or []) + 5}
                       for stage in ("START", "END")]

    def note(self, action, size, addr):
        sign = {"alloc": 1, "free_completed": -1}.get(action, 0)
        self.live += sign * size
        self.peak = max(self.peak, self.live)
        if self.entries is not None:
            where = "device_free" if action == "oom" else "addr"
            self.entries.append({"action": action, "size": size, where: addr,
                                 "stream": 0, "frames": [] if self.is_inside else _frames(),
                                 "time_us": 10 * len(self.entries) + 10})

    @staticmethod
    def _record_memory_history(enabled="all", context="all", stacks="all",
                               max_entries=0):
        native._cuda_record_memory_history(enabled, context, stacks, max_entries)

    def record(self, enabled, context, stacks, max_entries):
        if enabled is None:
            self.entries = None
            return
        assert enabled == "all" and stacks == "python", (enabled, stacks)
        assert max_entries >= 1000000, (context, max_entries)
        self.entries = []

    def _snapshot(self):
        return {"device_traces": [self.entries or []], "segments": [],
                "external_annotations": self.marks}

    def _dump_snapshot(self, filename):
        hasattr(sys.modules["torch"], "_inductor")  # as PyTorch's looks for it
        with open(filename, "wb") as file:
            pickle.dump(self._snapshot(), file)


memory = _Memory()
native = types.SimpleNamespace(_cuda_record_memory_history=memory.record)
