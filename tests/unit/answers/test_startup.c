/* test_startup.c - tests the reader of the logs of servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/answers/startup.h"

static struct startup read_text(const char *text)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    struct startup s;

    startup_read(in, &s);
    fclose(in);
    return s;
}

static frag_size gib(double size)
{
    return (frag_size)(size * FRAG_GIB + 0.5);
}

static void vllm_tells_each_part(void **state)
{
    const struct startup s = read_text(
        "(W0 pid=7) INFO Model loading took 14.99 GiB memory and 12.3 seconds\n"
        "(W1 pid=8) INFO Model loading took 15.5 GiB memory and 12.3 seconds\n"
        "DEBUG Memory profiling takes 5.00 seconds. Total non KV cache memory: "
        "17.1GiB; torch peak memory increase: 1.75GiB; non-torch forward "
        "increase "
        "memory: 0.25GiB; weights memory: "
        "14.99GiB.\n"
        "(W0 pid=7) INFO Available KV cache memory: 58.11 GiB\n"
        "(W1 pid=8) INFO Available KV cache memory: 57.5 GiB\n"
        "INFO GPU KV cache size: 476,016 tokens, Maximum concurrency 3.63x\n"
        "INFO Graph capturing finished in 15 secs, took 0.91 GiB\n"
        "INFO Free memory on device cuda:0 (78.68/79.19 GiB) on startup. "
        "Desired GPU memory utilization is (0.95, 75.23 GiB). Actual usage is "
        "14.99 GiB for weight, 1.89 GiB for peak activation, and 0.91 GiB for "
        "CUDAGraph memory. Replace it with `--kv-cache-memory=61234567890` "
        "(57.03 GiB) to fit into requested memory, or "
        "`--kv-cache-memory=64234567890` (59.82 GiB) to fully utilize it.\n");

    (void)state;
    assert_string_equal(s.server, "vLLM");
    assert_int_equal(s.weights, gib(15.5)); /* the most of all ranks */
    assert_int_equal(s.cache, gib(57.5));   /* the least */
    assert_int_equal(s.tokens, 476016);
    assert_int_equal(s.activation, gib(1.89));
    assert_int_equal(s.outside, gib(0.25));
    assert_int_equal(s.graphs, gib(0.91));
    assert_int_equal(s.left, gib(78.68));
    assert_int_equal(s.total, gib(79.19));
    assert_int_equal(s.budget, gib(75.23));
    assert_int_equal(s.cache_most, 64234567890);
    assert_false(s.is_up);
    assert_null(s.failure);
}

static void sglang_has_the_keys_and_the_values(void **state)
{
    const struct startup s = read_text(
        "[10:00 TP0] Load weight end. type=A, avail mem=61.20 GB, mem "
        "usage=14.98 GB.\n"
        "[10:00 TP0] KV Cache is allocated. dtype: bf16, #tokens: 387968, K "
        "size: 5.92 GB, V size: 6.00 GB\n"
        "[10:00 TP0] Capture cuda graph begin. avail mem=12.01 GB\n"
        "[10:00 TP0] Capture cuda graph end. Time elapsed: 5.37 s. mem "
        "usage=1.44 GB. avail mem=10.05 GB.\n"
        "The server is fired up and ready to roll!\n");

    (void)state;
    assert_string_equal(s.server, "SGLang");
    assert_int_equal(s.weights, gib(14.98));
    assert_int_equal(s.tokens, 387968);
    assert_int_equal(s.cache, gib(11.92));
    assert_int_equal(s.graphs, gib(1.44));
    assert_int_equal(s.activation, FRAG_UNLIMITED);
    assert_true(s.is_up);
}

/* The same error before and after the server served has the opposite advice. */
static void a_start_is_told_from_a_request(void **state)
{
    const struct startup start =
        read_text("INFO Model loading took 15.5 GiB memory\n"
                  "ValueError: No available memory for the cache blocks. Try\n"
                  "RuntimeError: CUDA out of memory\n");
    const struct startup request =
        read_text("INFO Model loading took 15.5 GiB memory\n"
                  "INFO:     Application startup complete.\n"
                  "torch.OutOfMemoryError: CUDA out of memory. Tried\n");

    (void)state;
    assert_false(start.failed_later);
    assert_int_equal(start.line, 2);
    assert_non_null(strstr(start.failure->advice, "raise"));
    assert_true(request.failed_later);
    assert_int_equal(request.line, 3);
    assert_non_null(strstr(request.failure->advice_later, "lower"));
    assert_null(read_text("CUDA out of memory\n").server);
    assert_string_equal(
        read_text("ERROR Failed to load model - not enough GPU memory. Try\n")
            .server,
        "vLLM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vllm_tells_each_part),
        cmocka_unit_test(sglang_has_the_keys_and_the_values),
        cmocka_unit_test(a_start_is_told_from_a_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
