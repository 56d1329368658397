/* test_import_rocprof.c - tests the importer of rocprofv3's memory allocation
 * trace, on rows written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/log_rows.h"

#define HEADER                                                 \
    "\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\"," \
    "\"Address\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
#define ROW(operation, agent, size, address, start)                \
    "\"MEMORY_ALLOCATION\",\"" operation "\",\"" agent "\"," #size \
    ",\"" #address "\",7," #start ",9\n"
#define ALLOC(agent, size, address, start) \
    ROW("MEMORY_ALLOCATION_ALLOCATE", "Agent " #agent, size, address, start)
#define FREE(address, start) \
    ROW("MEMORY_ALLOCATION_FREE", "", 0, address, start)

static const struct log_row rows[] = {
    {"a free belongs to the agent of its allocation",
     HEADER ALLOC(8, 4096, 0x00007f1db8c00000, 5)
         ALLOC(3, 112, 0x00007f1de09cf000, 6) FREE(0x00007f1db8c00000, 7),
     "+0:112 | +0:4096 -0", NULL},
    {"the operations may have a prefix",
     HEADER ROW("ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE", "Agent 0", 5, 0x10, 5)
         ROW("ROCPROFILER_MEMORY_ALLOCATION_FREE", "", 0, 0x10, 6),
     "+0:5 -0", NULL},
    {"an agent may be a number alone",
     HEADER ROW("MEMORY_ALLOCATION_ALLOCATE", "2", 5, 0x10, 5), "+0:5", NULL},
    {"a handle and an address may be the same number",
     HEADER ALLOC(0, 5, 0x10, 5)
         ROW("MEMORY_ALLOCATION_VMEM_ALLOCATE", "Agent 0", 6, 0x10, 5)
             FREE(0x10, 6) ROW("MEMORY_ALLOCATION_VMEM_FREE", "", 0, 0x10, 7),
     "+0:5 +1:6 -0 -1", NULL},
    {"a free of null is nothing", HEADER ALLOC(0, 5, 0x10, 5) FREE(0x0, 6),
     "+0:5", NULL},
    {"a request without an address failed",
     HEADER ALLOC(0, 5, 0x10, 5) ALLOC(0, 900, 0x0, 6), "+0:5 ?1:900 -1", NULL},
    {"a free of an unknown address is counted",
     HEADER ALLOC(0, 5, 0x10, 5) FREE(0x20, 6), "+0:5",
     "1 frees of addresses that no row allocated"},
    {"an address that is live is freed first",
     HEADER ALLOC(0, 5, 0x10, 5) ALLOC(1, 6, 0x10, 6), "+0:5 -0 | +0:6",
     "1 allocations returned an address that was live"},
    {"0 bytes are no block", HEADER ALLOC(0, 0, 0x10, 5) ALLOC(0, 6, 0x20, 6),
     "+0:6", "1 allocations of 0 bytes"},
    {"a log without rows", HEADER, "", NULL},
};

static const struct log_refusal refusals[] = {
    {HEADER ROW("MEMORY_ALLOCATION_NONE", "Agent 0", 5, 0x10, 5),
     ":2: expected an operation such as MEMORY_ALLOCATION_ALLOCATE"},
    {HEADER ROW("MEMORY_ALLOCATION_ALLOCATE", "GPU", 5, 0x10, 5),
     ":2: expected an agent"},
    {HEADER ROW("MEMORY_ALLOCATION_ALLOCATE", "", 5, 0x10, 5),
     ":2: expected an agent"},
    {HEADER ALLOC(0, -5, 0x10, 5), ":2: expected a size"},
    {HEADER ALLOC(0, 5, 0x4000000000000000, 5), ":2: expected an address"},
    {HEADER ALLOC(0, 5, 0x10, 5s), ":2: expected a time in ns"},
    {HEADER ALLOC(0, 5, 0x10, 5) FREE(0x10, 4),
     ":3: expected rows in the order of Start_Timestamp (sort the file), found "
     "\"4\""},
    {HEADER "1,2\n", ":2: expected as many fields as the header has"},
    {"\"Operation\",\"Agent_Id\",\"Address\"\n", "expected a known format"},
};

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        log_is_refused(&refusals[i]);
}

static void times_and_agents_are_kept(void **state)
{
    struct frag_trace *t;

    (void)state;
    assert_int_equal(log_open(HEADER ALLOC(8, 5, 0x10, 10099422964253101), &t),
                     FRAG_OK);
    assert_int_equal(t->device_count, 1);
    assert_int_equal(t->devices[0].device, 8);
    assert_int_equal(t->devices[0].time[0], 10099422964253101);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(times_and_agents_are_kept),
    };
    const int file = mkstemp(log_path);
    int failed;

    if (file < 0)
        return 1;
    close(file);
    failed = log_run_rows(rows, sizeof(rows) / sizeof(*rows));
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return failed;
}
