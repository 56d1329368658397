/* lockstep.hpp - runs random scripts on an allocator of another project and on
 * the policy that models it, and compares after each call: the address, the
 * size, whether the request is refused, and each call to the device.
 *
 * Both have a device of their own. Two devices of one script place a segment at
 * the same address after the same calls; some segments touch the one before.
 * check_own_code.py compiles the programs of this folder.
 */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "policies/policy.h"

namespace lockstep
{

using random = std::mt19937_64;

inline uint64_t below(random &r, uint64_t n)
{
    return r() % n;
}

/* Between `least` and `most`, each power of two as often. */
inline uint64_t size_between(random &r, uint64_t least, uint64_t most)
{
    const uint64_t ratio = most / least, shift = below(r, 64);
    const uint64_t scale = uint64_t(1) << shift % (64 - __builtin_clzll(ratio));
    const uint64_t size = least * scale + below(r, least * scale);

    return size < most ? size : most;
}

struct call {
    char what; /* a: a segment, r: one that is refused, f: its return, s: a wait
                  for the device */
    uint64_t addr, size;

    bool operator==(const call &o) const
    {
        return what == o.what && addr == o.addr && size == o.size;
    }
};

/* A device of `capacity` bytes, which is its own backend. */
struct device : frag_backend {
    uint64_t used = 0, next = uint64_t(1) << 32;
    bool moves = true;    /* false: it has one segment, always at one address */
    bool touches = false; /* true: no gap between two segments */
    random gaps;
    std::map<uint64_t, uint64_t> segments;
    std::vector<call> calls;

    device(uint64_t bytes, uint64_t seed) : frag_backend(), gaps(seed)
    {
        ops = table();
        capacity = total = bytes;
        granularity = 2 << 20;
    }

    /* 0: refused. */
    uint64_t allocate(uint64_t size)
    {
        if (size > capacity - used) {
            calls.push_back({'r', 0, size});
            return 0;
        }
        const uint64_t addr = next;

        next += (size + 511) / 512 * 512 + (touches ? 0 : below(gaps, 2) * 512);
        if (!used && !moves) /* the one segment lies where it was */
            next = addr;
        used += size;
        segments[addr] = size;
        calls.push_back({'a', addr, size});
        return addr;
    }

    void release(uint64_t addr)
    {
        const auto found = segments.find(addr);

        if (found == segments.end()) {
            std::fprintf(stderr, "a segment that is not allocated is freed\n");
            std::abort();
        }
        calls.push_back({'f', addr, found->second});
        used -= found->second;
        segments.erase(found);
    }

    void wait()
    {
        calls.push_back({'s', 0, 0});
    }

  private:
    static frag_err segment_alloc(frag_backend *mem, frag_size size,
                                  frag_addr *addr)
    {
        const uint64_t found = static_cast<device *>(mem)->allocate(size);

        if (!found)
            return FRAG_OOM;
        *addr = found;
        return FRAG_OK;
    }

    static frag_err segment_free(frag_backend *mem, frag_addr addr, frag_size)
    {
        static_cast<device *>(mem)->release(addr);
        return FRAG_OK;
    }

    static frag_err synchronize(frag_backend *mem)
    {
        static_cast<device *>(mem)->wait();
        return FRAG_OK;
    }

    static frag_time now(frag_backend *)
    {
        return 0;
    }

    static const frag_backend_ops *table()
    {
        static frag_backend_ops ops;

        ops.name = "lockstep";
        ops.segment_alloc = segment_alloc;
        ops.segment_free = segment_free;
        ops.synchronize = synchronize;
        ops.now = now;
        return &ops;
    }
};

struct place {
    uint64_t addr, size; /* size 0: the allocator does not tell */
};

/* An allocator of another project. */
struct other {
    virtual ~other() = default;
    /* False: refused. */
    virtual bool alloc(uint64_t size, unsigned stream, place *out) = 0;
    virtual void free(const place &block, uint64_t size, unsigned stream) = 0;
};

/* What the scripts of a seed run on and ask for. */
struct subject {
    const char *policy = "";
    std::string params;
    uint64_t capacity = 0, least = 1, most = 0; /* bytes */
    unsigned streams = 1;
    bool frees_elsewhere = false; /* some frees are on another stream */
    bool has_device = true;       /* the calls to the device are compared */
};

struct live {
    frag_block ours;
    place theirs;
    uint64_t size;
    unsigned stream;
};

struct run {
    const subject &s;
    device mine;
    frag_heap heap;
    std::vector<live> blocks;
    std::vector<uint64_t> sizes; /* that are asked for again and again */
    random &r;
    uint64_t requests = 0;

    run(const subject &subject, uint64_t seed, random &random)
        : s(subject), mine(subject.capacity, seed), heap(), r(random)
    {
        const frag_policy *policy = frag_policy_find(s.policy);
        frag_error e;

        mine.moves = s.has_device;
        if (!policy || frag_heap_open(&heap, policy, &mine, s.params.c_str(),
                                      &e) != FRAG_OK) {
            std::fprintf(stderr, "%s:%s: %s\n", s.policy, s.params.c_str(),
                         policy ? e.text : "no such policy");
            std::exit(2);
        }
        for (int i = 0; i < 6; i++)
            sizes.push_back(size_between(r, s.least, s.most));
    }

    ~run()
    {
        frag_heap_close(&heap);
    }

    const char *ask(other &o)
    {
        const bool again = below(r, 2);
        live l = {};
        frag_request req = {};

        l.size = again ? sizes[below(r, sizes.size())]
                       : size_between(r, s.least, s.most);
        l.stream = unsigned(below(r, s.streams));
        req.size = l.size;
        req.stream = frag_stream(l.stream);
        req.frees_at = FRAG_NEVER;
        requests++;
        const frag_err err = heap.policy->alloc(&heap, &req, &l.ours);
        const bool served = o.alloc(l.size, l.stream, &l.theirs);

        if (err != FRAG_OK && err != FRAG_OOM)
            return "the policy fails";
        if (served != (err == FRAG_OK))
            return served ? "only the policy refuses" : "the policy serves";
        if (!served)
            return nullptr;
        blocks.push_back(l);
        if (l.ours.addr != l.theirs.addr)
            return "the addresses differ";
        if (l.theirs.size && l.ours.size != l.theirs.size)
            return "the sizes differ";
        return nullptr;
    }

    void give(other &o)
    {
        const size_t i =
            below(r, 3) ? below(r, blocks.size()) : blocks.size() - 1;
        const live l = blocks[i];
        unsigned stream = l.stream;

        if (s.frees_elsewhere && !below(r, 4))
            stream = unsigned(below(r, s.streams));
        blocks[i] = blocks.back();
        blocks.pop_back();
        if (stream != l.stream && heap.policy->needs & FRAG_HEARS_FREES) {
            frag_heard heard = {};

            heard.block = &l.ours;
            heard.stream = frag_stream(stream);
            if (heap.policy->hear(&heap, &heard))
                std::exit(2);
        }
        heap.policy->free(&heap, &l.ours);
        o.free(l.theirs, l.size, stream);
    }

    /* One step; nullptr or what differs. */
    const char *step(other &o, const device &theirs, unsigned fill)
    {
        const char *fault = nullptr;

        if (blocks.empty() || below(r, 100) < fill)
            fault = ask(o);
        else
            give(o);
        if (!fault && s.has_device && mine.calls != theirs.calls)
            fault = "the calls to the device differ";
        mine.calls.clear();
        return fault;
    }
};

struct tally {
    uint64_t scripts = 0, requests = 0, differ = 0;
};

/* The main function of a program with the arguments SCRIPTS and the first seed.
 * make(random, subject) fills the subject of a script, and returns a function
 * that makes the other allocator on a device. */
template <typename Make> int compare(int argc, char **argv, Make make)
{
    const uint64_t scripts = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::map<std::string, tally> tallies;
    bool differ = false;

    for (uint64_t seed = first; seed < first + scripts; seed++) {
        random r(seed);
        subject s;
        const auto open = make(r, s);
        device theirs(s.capacity, seed);
        const std::unique_ptr<other> o = open(theirs);
        run ours(s, seed, r);
        const char *fault = nullptr;
        unsigned step = 0;

        for (unsigned fill = 50; !fault && step < 400; step++) {
            if (step % 50 == 0)
                fill = unsigned(20 + below(r, 75));
            fault = ours.step(*o, theirs, fill);
            theirs.calls.clear();
        }
        tally &t = tallies[s.policy];
        t.scripts++;
        t.requests += ours.requests;
        if (!fault) {
            while (!ours.blocks.empty())
                ours.give(*o);
        } else if (t.differ++ < 5) {
            std::printf("%s:%s, seed %" PRIu64 ", step %u: %s\n", s.policy,
                        s.params.c_str(), seed, step, fault);
        }
        differ = differ || fault;
    }
    for (const auto &[policy, t] : tallies)
        std::printf("%s: %" PRIu64 " scripts, %" PRIu64 " requests, %" PRIu64
                    " differ\n",
                    policy.c_str(), t.scripts, t.requests, t.differ);
    return differ;
}

} // namespace lockstep
