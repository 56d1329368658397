/* conf_print.h - the answer of the command conf as text and as JSON. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_CONF_PRINT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_CONF_PRINT_H

#include <stdio.h>

#include "sim/answers/conf/conf.h"
#include "sim/results/json.h"

/* What the settings did to one device of a trace, beside the default. */
struct conf_effect {
    char *trace;  /* its name; owned, as the notes are */
    char **notes; /* of the trace: what its reader assumed */
    size_t note_count;
    uint32_t device;
    struct frag_bound bound;
    struct conf_outcome with_default, with_settings;
};

/* `source` is the variable that held the text; NULL: an argument. */
void conf_put_text(FILE *out, const struct conf_answer *a, const char *source);
void conf_put_effect(FILE *out, const struct conf_effect *effect);
/* Writes one result; the caller closes its object with frag_json_end. */
void conf_put_json(struct frag_json *j, const struct conf_answer *a,
                   const char *source, const struct conf_effect *effects,
                   size_t effect_count);

/* The table of all settings, with the versions that know them. */
void conf_put_keys(FILE *out);
void conf_put_keys_json(struct frag_json *j);

#endif
