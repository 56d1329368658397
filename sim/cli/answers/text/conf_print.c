/* conf_print.c - prints the answer of the command conf. */
#include "sim/cli/answers/text/conf_print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "traces/printable.h"

enum { WIDTH = 78, INDENT = 4, PARAGRAPH = 2048 };

/* ---- text ---- */

/* Writes a paragraph, broken at blanks. */
static void put_paragraph(FILE *out, const char *text)
{
    char form[PARAGRAPH];
    size_t column = 0;

    printable_text(form, sizeof(form), text);
    for (const char *word = form; *word;) {
        const size_t length = strcspn(word, " ");

        if (column && column + 1 + length > WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%*s%.*s", column ? 1 : INDENT, "",
                                  (int)length, word);
        word += length + strspn(word + length, " ");
    }
    fputc('\n', out);
}

static void FRAG_PRINTF(2, 3) put_sentence(FILE *out, const char *format, ...)
{
    char text[PARAGRAPH];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_paragraph(out, text);
}

static void put_key(FILE *out, const struct conf_key *key)
{
    char versions[CONF_VERSIONS];

    put_paragraph(out, key->effect);
    put_sentence(out, "Values: %s. Default: %s. Known to %s.", key->values,
                 key->init, conf_key_versions(key, versions));
    put_paragraph(out, key->use);
    put_paragraph(out, key->price);
}

static void put_findings(FILE *out, const struct conf_answer *a, size_t item)
{
    for (size_t i = 0; i < a->finding_count; i++) {
        const struct conf_finding *f = &a->findings[i];

        if (f->item == item)
            put_sentence(out, "%s: %s", conf_level_names[f->level], f->text);
    }
}

static size_t count(const struct conf_answer *a, enum conf_level level)
{
    size_t n = 0;

    for (size_t i = 0; i < a->finding_count; i++)
        n += a->findings[i].level == level;
    return n;
}

static void put_verdict(FILE *out, const struct conf_answer *a)
{
    static const char *const verdicts[] = {
        [CONF_REFUSED] = "PyTorch 2.%u refuses this text: it raises an error "
                         "when the program first uses the GPU.\n",
        [CONF_IGNORED] = "PyTorch 2.%u accepts this text, and ignores a part "
                         "of it.\n",
        [CONF_DANGER] = "PyTorch 2.%u accepts this text. A part of it is "
                        "dangerous.\n",
        [CONF_NOTE] = "PyTorch 2.%u accepts this text.\n",
        [CONF_FINE] = "PyTorch 2.%u accepts this text.\n",
    };

    fprintf(out, verdicts[conf_level(a)], a->version);
    for (int level = 0; level < CONF_FINE; level++)
        fprintf(out, "%s%s %zu", level ? ", " : "  ", conf_level_names[level],
                count(a, (enum conf_level)level));
    fputc('\n', out);
}

static void put_settings(FILE *out, const struct conf_answer *a)
{
    const char *without =
        count(a, CONF_REFUSED) ? " without what is refused" : "";

    fprintf(out, "\nin force%s, as the policy torch uses them", without);
    if (!torch_is_modelled(a->version))
        fprintf(out, " (it models PyTorch 2.%d)",
                torch_modelled_as(a->version));
    fputc('\n', out);
    printable_line(out, "    %s",
                   a->native ? a->used->text
                             : "none: the backend is the driver's");
    fputs("\nthe shortest text with the same effect\n", out);
    printable_line(out, "    %s",
                   *a->canonical ? a->canonical
                                 : "nothing: unset the variable");
}

void conf_put_text(FILE *out, const struct conf_answer *a, const char *source)
{
    printable_line(out, "%s%s%s", source ? source : "", source ? "=" : "",
                   *a->text ? a->text : "(empty: PyTorch's defaults)");
    put_verdict(out, a);
    for (size_t i = 0; i < a->item_count; i++) {
        const struct conf_item *it = &a->items[i];

        fputc('\n', out);
        printable_line(out, "%s%s%s", it->key, *it->value ? ":" : "",
                       it->value);
        put_findings(out, a, i);
        if (it->row && !it->overwritten)
            put_key(out, it->row);
    }
    if (a->finding_count && a->findings[a->finding_count - 1].item == SIZE_MAX)
        fputs("\nthe environment\n", out);
    put_findings(out, a, SIZE_MAX);
    put_settings(out, a);
}

static double relative(double now, double before)
{
    return before > 0 ? now / before : 1;
}

void conf_put_effect(FILE *out, const struct conf_effect *effect)
{
    const struct conf_outcome *before = &effect->with_default;
    const struct conf_outcome *now = &effect->with_settings;
    const bool limited = effect->bound.bytes != FRAG_UNLIMITED;
    char reserved[2][FRAG_SIZE_TEXT], bound[FRAG_BOUND_TEXT];

    fputc('\n', out);
    printable_line(out, "on the recording %s, device %" PRIu32 ", with %s%s",
                   effect->trace, effect->device,
                   limited ? "a capacity of " : "unlimited memory",
                   limited ? frag_bound_format(effect->bound, bound) : "");
    put_sentence(
        out,
        "Peak reserved is %s, and %s with the default settings: %.3g "
        "times as much.",
        frag_size_format(now->peak_reserved, reserved[0]),
        frag_size_format(before->peak_reserved, reserved[1]),
        relative((double)now->peak_reserved, (double)before->peak_reserved));
    put_sentence(out,
                 "%" PRIu64 " requests fail (default: %" PRIu64 "), %" PRIu64
                 " succeed only after a retry (default: %" PRIu64
                 "), and the driver is called %" PRIu64
                 " times (default: %" PRIu64 "), which takes %.3g s (default: "
                 "%.3g s) by the cost model.",
                 now->ooms, before->ooms, now->retries, before->retries,
                 now->calls, before->calls, now->seconds, before->seconds);
}

void conf_put_keys(FILE *out)
{
    for (const struct conf_key *k = conf_keys; k->name; k++) {
        fprintf(out, "%s%s\n", k == conf_keys ? "" : "\n", k->name);
        put_key(out, k);
    }
}

/* ---- JSON ---- */

static void json_key(struct frag_json *j, const struct conf_key *k)
{
    const unsigned since = torch_setting_find(k->name)->since;

    frag_json_text(j, "effect", k->effect);
    frag_json_text(j, "values", k->values);
    frag_json_text(j, "default", k->init);
    frag_json_text(j, "use", k->use);
    frag_json_text(j, "price", k->price);
    frag_json_bool(j, "on_host", k->on_host);
    frag_json_count(j, "since_minor",
                    since == TORCH_NEVER ? UINT64_MAX : since);
}

static void json_item(struct frag_json *j, const struct conf_item *it)
{
    frag_json_line(j, 4);
    frag_json_object(j, NULL);
    frag_json_text(j, "key", it->key);
    frag_json_text(j, "value", it->value);
    frag_json_bool(j, "known", it->row != NULL);
    frag_json_bool(j, "refused", it->refused);
    frag_json_bool(j, "overwritten", it->overwritten);
    if (it->row)
        json_key(j, it->row);
    frag_json_end(j);
}

static void json_finding(struct frag_json *j, const struct conf_answer *a,
                         const struct conf_finding *f)
{
    frag_json_line(j, 4);
    frag_json_object(j, NULL);
    frag_json_text(j, "level", conf_level_names[f->level]);
    frag_json_text(j, "key",
                   f->item == SIZE_MAX ? NULL : a->items[f->item].key);
    frag_json_text(j, "text", f->text);
    frag_json_end(j);
}

static void json_outcome(struct frag_json *j, const char *key,
                         const struct conf_outcome *o)
{
    frag_json_object(j, key);
    frag_json_number(j, "peak_reserved_bytes", o->peak_reserved);
    frag_json_number(j, "num_ooms", o->ooms);
    frag_json_number(j, "num_alloc_retries", o->retries);
    frag_json_number(j, "num_driver_calls", o->calls);
    frag_json_seconds(j, "modelled_device_seconds", o->seconds);
    frag_json_end(j);
}

static void json_effect(struct frag_json *j, const struct conf_effect *effect)
{
    frag_json_line(j, 4);
    frag_json_object(j, NULL);
    frag_json_text(j, "trace", effect->trace);
    frag_json_number(j, "device", effect->device);
    frag_json_count(j, "capacity_bytes",
                    frag_bound_of(effect->bound, FRAG_BOUND_CAPACITY));
    frag_json_texts(j, "notes", (const char *const *)effect->notes,
                    effect->note_count);
    json_outcome(j, "with_default", &effect->with_default);
    json_outcome(j, "with_settings", &effect->with_settings);
    frag_json_end(j);
}

void conf_put_json(struct frag_json *j, const struct conf_answer *a,
                   const char *source, const struct conf_effect *effects,
                   size_t effect_count)
{
    const enum conf_level level = conf_level(a);
    char version[16];

    snprintf(version, sizeof(version), "2.%u", a->version);
    frag_json_line(j, 2);
    frag_json_object(j, NULL);
    frag_json_text(j, "text", a->text);
    frag_json_text(j, "variable", source);
    frag_json_text(j, "torch_version", version);
    frag_json_text(j, "verdict",
                   level == CONF_FINE ? "fine" : conf_level_names[level]);
    frag_json_text(j, "in_force", a->native ? a->used->text : NULL);
    frag_json_text(j, "canonical", a->canonical);
    frag_json_line(j, 3);
    frag_json_array(j, "settings");
    for (size_t i = 0; i < a->item_count; i++)
        json_item(j, &a->items[i]);
    frag_json_end(j);
    frag_json_line(j, 3);
    frag_json_array(j, "findings");
    for (size_t i = 0; i < a->finding_count; i++)
        json_finding(j, a, &a->findings[i]);
    frag_json_end(j);
    frag_json_line(j, 3);
    frag_json_array(j, "recordings");
    for (size_t i = 0; i < effect_count; i++)
        json_effect(j, &effects[i]);
    frag_json_end(j);
    frag_json_end(j);
}

void conf_put_keys_json(struct frag_json *j)
{
    for (const struct conf_key *k = conf_keys; k->name; k++) {
        frag_json_line(j, 2);
        frag_json_object(j, NULL);
        frag_json_text(j, "key", k->name);
        json_key(j, k);
        frag_json_end(j);
    }
}
