/* log.cpp - a log of scripts on an allocator of another project, on stdin,
 * against the policy that it names. Its lines:
 *   s POLICY[:PARAMS] CAPACITY    a new script
 *   a SIZE STREAM ADDR HELD       a request, and its address; 0: refused
 *   f NUMBER HELD                 the request with that number is freed
 *   ! HELD                        what is free is returned to the device
 * A script ends where the policy places a block in another hole of equal size:
 * between these, CuPy chooses by the address of an object.
 * HELD are the bytes of the device that are in use after the call; a segment
 * lies right after the one before. */
#include "lockstep.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>

struct script {
    lockstep::device device;
    frag_heap heap;
    std::vector<frag_block> blocks;    /* by number */
    std::map<uint64_t, uint64_t> live; /* size by address */

    script(const std::string &policy, uint64_t capacity) : device(capacity, 1)
    {
        const size_t colon = policy.find(':');
        const std::string params =
            colon == policy.npos ? "" : policy.substr(colon + 1);
        frag_error e;

        device.touches = true;
        if (frag_heap_open(&heap,
                           frag_policy_find(policy.substr(0, colon).c_str()),
                           &device, params.c_str(), &e)) {
            std::fprintf(stderr, "%s: %s\n", policy.c_str(), e.text);
            std::exit(2);
        }
    }

    ~script()
    {
        frag_heap_close(&heap);
    }

    /* Bytes from a free address up to the next block or the segment's end; 0:
     * it is not free. */
    uint64_t hole(uint64_t addr) const
    {
        const auto next = live.lower_bound(addr);
        auto segment = device.segments.upper_bound(addr);

        if (segment == device.segments.begin())
            return 0;
        segment--;
        if (segment->first != addr &&
            (next == live.begin() ||
             std::prev(next)->first + std::prev(next)->second != addr))
            return 0;
        const uint64_t end = segment->first + segment->second;
        return (next == live.end() ? end : std::min(end, next->first)) - addr;
    }

    const char *act(std::istream &line, char what)
    {
        uint64_t number = 0, stream = 0, addr = 0, held = 0;
        frag_block block = {};

        if (what == 'a') {
            line >> number >> stream >> addr >> held;
            frag_request req = {};
            req.size = number;
            req.stream = frag_stream(stream);
            req.frees_at = FRAG_NEVER;
            if (heap.policy->alloc(&heap, &req, &block))
                block = {};
            if (block.addr && addr && block.addr != addr)
                return hole(addr) && hole(block.addr) == hole(addr)
                           ? "tie"
                           : "the addresses differ";
            blocks.push_back(block);
            if (block.addr)
                live[block.addr] = block.size;
        } else if (what == 'f') {
            line >> number >> held;
            live.erase(blocks.at(number).addr);
            heap.policy->free(&heap, &blocks.at(number));
        } else {
            line >> held;
            heap.policy->trim(&heap);
        }
        if (!block.addr != !addr)
            return addr ? "only the policy refuses" : "the policy serves";
        return device.used == held ? nullptr : "the held bytes differ";
    }
};

int main()
{
    std::unique_ptr<script> now;
    uint64_t scripts = 0, requests = 0, ties = 0, differ = 0;
    std::string text, policy;

    for (unsigned step = 0; std::getline(std::cin, text); step++) {
        std::istringstream line(text);
        uint64_t capacity;
        char what;

        line >> what;
        if (what == '#') {
            std::puts(text.c_str() + 2);
        } else if (what == 's') {
            line >> policy >> capacity;
            now.reset(new script(policy, capacity));
            scripts++;
            step = 0;
        } else if (now) {
            const char *fault = now->act(line, what);

            requests += what == 'a';
            if (!fault)
                continue;
            now.reset();
            if (!std::strcmp(fault, "tie"))
                ties++;
            else if (differ++ < 5)
                std::printf("%s, script %" PRIu64 ", step %u: %s\n",
                            policy.c_str(), scripts, step, fault);
        }
    }
    std::printf("%s: %" PRIu64 " scripts, %" PRIu64 " requests, %" PRIu64
                " differ, %" PRIu64 " end at a tie\n",
                policy.substr(0, policy.find(':')).c_str(), scripts, requests,
                differ, ties);
    return differ || !scripts;
}
