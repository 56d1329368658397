"""dry_causes.py: why the entries of a run without a GPU differ from the recording's.

An allocator's history is decided by the program's requests, by the moments at which other
streams are done with a freed block, and by the addresses that the driver gives: from these
the rest follows (`fragsim validate` finds no other entry). So the requests are compared
first, then those moments, then the places. Differences of requests that lie close together
are one, and are decided by what differs:

autocast     the same frees in another order, below the exit of autocast
frees        the same frees in another order, elsewhere
workspace    requests of one side or of other sizes, each freed again at once
threads      requests differ in a process whose threads race: DataParallel's, or NCCL's,
             which let go of buckets
values       requests differ, and the program read values that the device had computed
streams      the same requests; a block of several streams is free earlier or later
tie          the same requests and states; free blocks of the same size are equal for the
             allocator, which takes the lower address
unexplained  none of these
"""
import bisect
import collections
import os
import re
import subprocess
import tempfile

REQUESTS = {"alloc": "+", "free_requested": "-", "oom": "!"}
NEAR = 40  # requests between two differences that are one
AT_ONCE = 8  # requests until a workspace is freed


class Hunk:
    """Requests [a, b) of the run without a GPU and [c, d) of the recording, of which
    `dry` and `recorded` are those that differ, by number."""

    def __init__(self, a, b, c, d):
        self.a, self.b, self.c, self.d = a, b, c, d
        self.dry, self.recorded = list(range(a, b)), list(range(c, d))

    def join(self, other):
        self.b, self.d = other.b, other.d
        self.dry += other.dry
        self.recorded += other.recorded


def differences(dry, recorded):
    """The hunks between two lists of texts, by GNU diff."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in "ab"]
        for path, texts in zip(paths, (dry, recorded)):
            with open(path, "w", encoding="ascii") as out:
                out.write("\n".join(texts) + "\n")
        said = subprocess.run(["diff", "--speed-large-files", *paths], text=True,
                              capture_output=True, check=False).stdout
    hunks = []
    for found in re.finditer(r"^(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?$", said, re.M):
        a, b, kind, c, d = found.groups()
        one = Hunk(int(a) - (kind != "a"), int(b or a), int(c) - (kind != "d"),
                   int(d or c))
        if hunks and one.a - hunks[-1].b < NEAR:
            hunks[-1].join(one)
        else:
            hunks.append(one)
    return hunks


class History:
    """The entries of a device; `requests` are the numbers of those that are requests."""

    def __init__(self, entries):
        self.entries = entries
        self.requests = [i for i, e in enumerate(entries) if e["action"] in REQUESTS]
        self.texts = [REQUESTS[entries[i]["action"]] + str(entries[i]["size"])
                      for i in self.requests]
        self.lives = self._lives()

    def _lives(self):
        """For each request, how many requests lie between it and the other of its
        block."""
        live, lives = {}, [len(self.requests)] * len(self.requests)
        for n, i in enumerate(self.requests):
            entry = self.entries[i]
            if entry["action"] == "alloc":
                live[entry["addr"]] = n
            elif entry["action"] == "free_requested" and entry["addr"] in live:
                began = live.pop(entry["addr"])
                lives[n] = lives[began] = n - began
        return lives

    def moments(self):
        """The requests, and the ends of blocks that other streams still used."""
        last, texts = None, []
        for entry in self.entries:
            action = entry["action"]
            if action in REQUESTS:
                texts.append(REQUESTS[action] + str(entry["size"]))
            elif action == "free_completed" and (last is None or last["action"]
                                                 != "free_requested"
                                                 or last["addr"] != entry["addr"]):
                texts.append("=" + str(entry["size"]))
            last = entry
        return texts


def functions(entry):
    return [f"{os.path.basename(f['filename'])}:{f['name']}"
            for f in entry.get("frames", ())]


def left(one, other):
    """What is left of the first list of texts without the second's."""
    return collections.Counter(one) - collections.Counter(other)


def decide(hunk, dry, recorded, facts):
    texts = [dry.texts[n] for n in hunk.dry], [recorded.texts[n] for n in hunk.recorded]
    more, fewer = left(*texts), left(*reversed(texts))
    if not more and not fewer:
        if any("autocast_mode.py:__exit__" in functions(dry.entries[dry.requests[n]])
               for n in hunk.dry):
            return "autocast"
        if all(text.startswith("-") for text in texts[0]):
            return "frees"
    if all(side.lives[n] <= AT_ONCE for side, numbers, those in (
            (dry, hunk.dry, more), (recorded, hunk.recorded, fewer))
           for n in numbers if side.texts[n] in those or not more and not fewer):
        return "workspace"
    return "threads" if facts["threads"] else "values" if facts["reads"] \
        else "unexplained"


# ---- places ----

class Places:
    """Where the blocks of a history are: in which segment, at which offset."""

    def __init__(self):
        self.segments, self.starts = {}, []  # address: (number, size)
        self.live = {}  # address of a block: its size

    def follow(self, number, entry):
        addr, action = entry.get("addr"), entry["action"]
        if action in ("segment_alloc", "segment_map"):
            self.segments[addr] = number, entry["size"]
            bisect.insort(self.starts, addr)
        elif action in ("segment_free", "segment_unmap") and addr in self.segments:
            del self.segments[addr]
            self.starts.remove(addr)
        elif action == "alloc":
            self.live[addr] = entry["size"]
        elif action == "free_completed":
            self.live.pop(addr, None)

    def place(self, addr):
        at = bisect.bisect_right(self.starts, addr) - 1
        if at < 0:
            return None
        start = self.starts[at]
        return self.segments[start][0], addr - start

    def room(self, addr):
        """Bytes between the live blocks around a free address of a segment."""
        start = self.starts[bisect.bisect_right(self.starts, addr) - 1]
        end = start + self.segments[start][1]
        before = [a + -(-s // 512) * 512 for a, s in self.live.items()
                  if start <= a <= addr]
        after = [a for a in self.live if addr < a < end]
        return min(after, default=end) - max(before, default=start)

    def address(self, place):
        return next(a for a, one in self.segments.items() if one[0] == place[0]) + place[1]


def first_place(dry, recorded):
    """(number of the first entry that has another place, whether it is a tie), or None
    if all have the same until an entry differs."""
    mine, true = Places(), Places()
    for n, (a, b) in enumerate(zip(dry.entries, recorded.entries)):
        if (a["action"], a["size"]) != (b["action"], b["size"]):
            return None
        if a["action"] == "alloc" and mine.place(a["addr"]) != true.place(b["addr"]):
            return n, mine.room(a["addr"]) == mine.room(
                mine.address(true.place(b["addr"])))
        mine.follow(n, a)
        true.follow(n, b)
    return None


# ---- the answer ----

def entry_text(entries, number):
    """Action, size and place: #2+512 is 512 bytes into the segment of the third
    segment entry."""
    if number >= len(entries):
        return "end"
    places, names = Places(), {}
    for n, entry in enumerate(entries[:number + 1]):
        if entry["action"] in ("segment_alloc", "segment_map"):
            names[n] = len(names)
        if n < number:
            places.follow(n, entry)
    entry = entries[number]
    place = places.place(entry.get("addr", 0)) \
        if entry["action"] in ("alloc", "free_requested", "free_completed") else None
    return f"{entry['action']} {entry['size']}" + (
        f" #{names[place[0]]}+{place[1]}" if place else "")


def first_entry(dry, recorded):
    for n, (a, b) in enumerate(zip(dry.entries, recorded.entries)):
        if (a["action"], a["size"]) != (b["action"], b["size"]):
            return n
    return None if len(dry.entries) == len(recorded.entries) else \
        min(len(dry.entries), len(recorded.entries))


def placed(pairs):
    """Entries of (action, size) without addresses: each free takes the youngest block of
    its size."""
    live, out = collections.defaultdict(list), []
    for number, (action, size) in enumerate(pairs):
        if action == "free_requested":
            at = live[size].pop() if live[size] else -1
        elif action == "free_completed":
            at = out[-1]["addr"] if out else -1
        else:
            at = number << 50
            if action == "alloc":
                live[size].append(at)
        out.append({"action": action, "size": size, "addr": at, "stream": 0})
    return out


def device(dry, recorded, facts):
    """(number of the first entry that differs, its class, all classes with counts)"""
    dry, recorded = History(dry), History(recorded)
    first = first_entry(dry, recorded)
    if first is None:
        return None
    hunks = differences(dry.texts, recorded.texts)
    kinds = [decide(hunk, dry, recorded, facts) for hunk in hunks]
    begins = dry.requests[min(hunks[0].a, len(dry.requests) - 1)] if hunks else None
    counts = collections.Counter(kinds)
    place = first_place(dry, recorded) if facts.get("places", True) else None
    if not hunks and dry.moments() != recorded.moments():
        kind, counts["streams"] = "streams", len(differences(
            dry.moments(), recorded.moments()))
    elif place and (begins is None or place[0] < first < begins):
        kind = "tie" if place[1] else "unexplained"
        counts[kind] += 1
    else:
        kind = kinds[0] if kinds else "unexplained" if facts.get("places", True) else "tie"
        counts[kind] += not kinds
    return first, kind, +counts, (entry_text(dry.entries, first),
                                  entry_text(recorded.entries, first))


def compare(dry, recorded, facts):
    """The columns of the first device that differs, with the classes of all."""
    found = [one for one in (device(a, b, facts) for a, b in zip(dry, recorded)) if one]
    if not found:
        return {}
    first, kind, _, entries = found[0]
    counts = sum((one[2] for one in found), collections.Counter())
    return {"first_difference": first, "dry_entry": entries[0],
            "recorded_entry": entries[1], "cause": kind,
            "differences": " ".join(f"{k}:{n}" for k, n in sorted(counts.items()))}
