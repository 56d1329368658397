/* Policies of placement that are told by more than their choice of a hole:
 * pictures of each rule and tie-break, in segments of 12 units.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/canvas.h"

enum { UNIT = 512, ROOM = 64 };

static const struct picture pictures[] = {
    /* clang-format off */
    /* The largest hole, its low part; of equals the lowest. */
    {"worst_fit", ROOM, "a4 b2",                   "aaaabb......"},
    {"worst_fit", ROOM, "a4 b1 c2 d5 -a -c e2",    "ee..b..ddddd"},
    {"worst_fit", ROOM, "a2 b1 c4 d5 -a -c e2",    "..bee..ddddd"},
    {"worst_fit", ROOM, "a2 b1 c2 d1 e2 f4 -e -a -c g2", "ggb..d..ffff"},
    {"worst_fit", ROOM, "a2 b1 c4 d5 -a -c e2 f2", "ffbee..ddddd"},
    {"worst_fit", ROOM, "a12 b12 -b -a c2",        "cc..........|............"},
    {"worst_fit", ROOM, "a8 b3 c9 d1",             "aaaaaaaabbb.|cccccccccd.."},
    {"worst_fit", ROOM, "a4 b4 c4 -a -c -b d12",   "dddddddddddd"},
    {"worst_fit", ROOM, "a4@1 -a b2@2",            "bb.........."},
    {"worst_fit", ROOM, "a12 b12 -a !",            "bbbbbbbbbbbb"},
    {"worst_fit", 16,   "a12 -a b13",              "bbbbbbbbbbbbb..."},

    /* Of equals the last or the first that was freed, */
    {"best_fit:ties=lifo", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2 h2", "..bggdhhffff"},
    {"best_fit:ties=fifo", ROOM, "a2 b1 c2 d1 e2 f4 -e -c -a g2 h2", "..bhhdggffff"},
    {"best_fit:ties=lifo", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2 h2 i2", "iibggdhhffff"},
    {"best_fit:ties=fifo", ROOM, "a2 b1 c2 d1 e2 f4 -e -c -a g2 h2 i2", "iibhhdggffff"},
    {"best_fit:ties=address", ROOM, "a2 b1 c2 d1 e2 f4 -e -a -c g2 h2", "ggbhhd..ffff"},
    /* split, */
    {"best_fit:ties=lifo", ROOM, "a5 b1 c2 d4 -c -a f3 g2", "fffggb..dddd"},
    {"best_fit:ties=fifo", ROOM, "a5 b1 c2 d4 -c -a f3 g2", "fff..bggdddd"},
    /* or coalesced; */
    {"best_fit:ties=lifo", ROOM, "a1 b1 c1 d2 e1 f6 -d -a -b g2", "ggc..effffff"},
    {"best_fit:ties=fifo", ROOM, "a1 b1 c1 d2 e1 f6 -d -a -b g2", "..cggeffffff"},
    /* one that is coalesced is none of them any more. */
    {"best_fit:ties=lifo", ROOM, "a2 b1 c2 d1 e2 f1 g3 -a -c -e -b h2", ".....dhhfggg"},
    {"best_fit:ties=fifo", ROOM, "a2 b1 c2 d1 e2 f1 g3 -a -c -e -b h2", ".....dhhfggg"},
    {"best_fit:ties=fifo", ROOM, "a2 b1 c2 d1 e2 f1 g3 -e -c -a -b h2 i2", "ii...dhhfggg"},
    /* The tightest comes before any of them. */
    {"best_fit:ties=lifo", ROOM, "a2 b1 c3 d6 -a -c e2", "eeb...dddddd"},
    {"best_fit:ties=fifo", ROOM, "a3 b1 c2 d6 -a -c e2", "...beedddddd"},
    {"best_fit:ties=lifo", ROOM, "a12 b12 -a !",   "bbbbbbbbbbbb"},
    {"best_fit:ties=fifo", ROOM, "a12 b12 -a -b !", ""},

    /* The first list that is safe, its last comer, the low part. */
    {"half_fit", ROOM, "a4 b2",                    "aaaabb......"},
    {"half_fit", ROOM, "a2 b1 -a c1",              "c.b........."},
    {"half_fit", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2", "..bggd..ffff"},
    {"half_fit", ROOM, "a3 b1 c2 d1 e5 -c -a f2",  "ff.b..deeeee"},
    {"half_fit", ROOM, "a3 b1 c2 d1 e5 -a -c f2",  "...bffdeeeee"},
    /* A hole of 3 is no answer to 3 while a list from 4 up has one, */
    {"half_fit", ROOM, "a3 b1 c2 -a d3",           "...bccddd..."},
    {"half_fit", ROOM, "a4 b1 c2 -a d4",           "ddddbcc....."},
    /* but comes before a segment, the last comer that is large enough. */
    {"half_fit", ROOM, "a3 b1 c8 -a d3",           "dddbcccccccc"},
    {"half_fit", ROOM, "a3 b1 c2 d6 -a -c e3",     "eeeb..dddddd"},
    {"half_fit", ROOM, "a3 b1 c3 d5 -c -a e3",     "eeeb...ddddd"},
    {"half_fit", ROOM, "a2 b10 -a c3",             "..bbbbbbbbbb|ccc........."},
    {"half_fit", ROOM, "a4 b4 c4 -a -c -b d12",    "dddddddddddd"},
    {"half_fit", ROOM, "a12 b12 -a -b c16",        "cccccccccccccccc|............|............"},
    {"half_fit", ROOM, "a4@1 -a b2@2",             "bb.........."},
    {"half_fit", ROOM, "a12 b12 -a !",             "bbbbbbbbbbbb"},
    {"half_fit", 16,   "a12 -a b13",               "bbbbbbbbbbbbb..."},

    /* Lists of one size below 32 units: nothing is rounded. */
    {"tlsf", ROOM, "a5 b7",                        "aaaaabbbbbbb"},
    {"tlsf", ROOM, "a2 b1 -a c1",                  "c.b........."},
    {"tlsf", ROOM, "a2 b1 c2 d1 e2 f4 -a -e -c g2", "..bggd..ffff"},
    {"tlsf", ROOM, "a4 b1 c3 d4 -c -a e2",         "....bee.dddd"},
    {"tlsf", ROOM, "a4 b4 c4 -a -b d8",            "ddddddddcccc"},
    {"tlsf", ROOM, "a4 b4 c4 -b -a d8",            "ddddddddcccc"},
    {"tlsf", ROOM, "a4 b4 c4 -a -c -b d12",        "dddddddddddd"},
    {"tlsf", ROOM, "a12 b12 -a -b c16",            "cccccccccccccccc|............|............"},
    {"tlsf", ROOM, "a4@1 -a b2@2",                 "bb.........."},
    {"tlsf", ROOM, "a12 b12 -a !",                 "bbbbbbbbbbbb"},
    {"tlsf", ROOM, "a6 b6 -b !",                   "aaaaaa......"},
    {"tlsf", 16,   "a12 -a b13",                   "bbbbbbbbbbbbb..."},
    /* Lists from 4, 6, 8 and 12: requests are rounded to these. */
    {"tlsf:second_levels=2", ROOM, "a3 b5",        "aaabbbbbb..."},
    {"tlsf:second_levels=2", ROOM, "a7 b4",        "aaaaaaaabbbb"},
    {"tlsf:second_levels=1", ROOM, "a3 b5",        "aaaabbbbbbbb"},
    /* One list has holes of 4 and 5: the last comer, not the tightest. */
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d -a f4", "ffffb.....ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -a -c -d f4", "....bffff.ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d -a f3 g1", "fffgb.....ee"},
    {"tlsf:second_levels=2", ROOM, "a4 b1 c2 d3 e2 -c -d f5", "aaaab.....ee|ffffff......"},
    /* What a split leaves is the last comer of its list, if it stays there
     * too. */
    {"tlsf:second_levels=1", ROOM, "a2 b1 c8 d1 -a -c e1 f2 g2", "e.bffgg....d"},
    /* A last list from 1 up: not rounded, the first that is large enough. */
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a5 b7", "aaaaabbbbbbb"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -c -a f3", "..bfffdeeeee"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -c -a f1", "f.b...deeeee"},
    {"tlsf:first_levels=1,second_levels=2", ROOM, "a2 b1 c3 d1 e5 -a -c f1", "..bf..deeeee"},
    {"tlsf:first_levels=1,second_levels=1", ROOM, "a2 b1 c3 d1 e5 -a -c f1", "..bf..deeeee"},
    /* clang-format on */
};

static void memory_is_as_drawn(void **state)
{
    canvas_check(*state, UNIT, "segment=6KiB");
}

int main(void)
{
    return run_pictures("placement", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn);
}
