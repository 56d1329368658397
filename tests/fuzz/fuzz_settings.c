/* fuzz_settings.c - fuzzes the parser of PYTORCH_CUDA_ALLOC_CONF (libFuzzer).
 * Each text is either refused with a message, or its printed description means
 * the same and every size rounds as expected. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/torch_conf.h"

enum { TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void check_sizes(const struct torch_conf *conf)
{
    for (frag_size n = 1; n < (frag_size)1 << 45; n = n * 3 / 2 + 1) {
        const frag_size rounded = torch_round_size(n, conf->divisions);

        check(rounded >= n && rounded % TORCH_MIN_BLOCK == 0 &&
              rounded <= 2 * n + TORCH_MIN_BLOCK);
        check(torch_segment_size(rounded, conf->large_segment) >= rounded);
    }
}

static void describe(const struct torch_conf *conf, char text[TEXT])
{
    FILE *out = fmemopen(text, TEXT, "w");

    check(out != NULL);
    torch_conf_describe(conf, out);
    check(fclose(out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char text[TEXT], again[TEXT];
    struct torch_conf conf;
    struct frag_error e = {""};

    if (size >= sizeof(text))
        return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (torch_conf_parse(&conf, text, &e) != FRAG_OK) {
        check(e.text[0] != '\0');
        return 0;
    }
    check_sizes(&conf);
    describe(&conf, text);
    check(torch_conf_parse(&conf, text, &e) == FRAG_OK);
    describe(&conf, again);
    check(!strcmp(text, again));
    return 0;
}
