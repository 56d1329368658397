/* conf_print.c - prints the answer of the command conf. */
#include "sim/cli/answers/text/conf_print.h"

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
        [CONF_UNKNOWN] = "fragsim does not know a setting of this text, and so "
                         "not whether PyTorch 2.%u accepts it.\n",
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

/* ---- JSON ---- */

static void json_key(struct frag_json *j, const struct conf_key *k)
{
    const struct torch_setting *s = torch_setting_find(k->name);
    const unsigned since = s ? s->since : TORCH_NEVER;

    frag_json_text(j, "effect", k->effect);
    frag_json_text(j, "values", k->values);
    frag_json_text(j, "default", k->init);
    frag_json_text(j, "use", k->use);
    frag_json_text(j, "price", k->price);
    frag_json_bool(j, "on_host", k->on_host);
    frag_json_bool(j, "of_torch_npu", conf_key_is_of_npu(k));
    frag_json_count(j, "since_minor",
                    since == TORCH_NEVER ? UINT64_MAX : since);
}

static void json_item(struct frag_json *j, const struct conf_item *it)
{
    frag_json_new_object(j, 4, NULL);
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
    frag_json_new_object(j, 4, NULL);
    frag_json_text(j, "level", conf_level_names[f->level]);
    frag_json_text(j, "key",
                   f->item == SIZE_MAX ? NULL : a->items[f->item].key);
    frag_json_text(j, "text", f->text);
    frag_json_end(j);
}

void conf_put_json(struct frag_json *j, const struct conf_answer *a,
                   const char *source)
{
    const enum conf_level level = conf_level(a);
    char version[16];

    snprintf(version, sizeof(version), "2.%u", a->version);
    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "text", a->text);
    frag_json_text(j, "variable", source);
    frag_json_text(j, "torch_version", version);
    frag_json_text(j, "verdict",
                   level == CONF_FINE ? "fine" : conf_level_names[level]);
    frag_json_text(j, "in_force", a->native ? a->used->text : NULL);
    frag_json_text(j, "canonical", a->canonical);
    frag_json_new_array(j, 3, "settings");
    for (size_t i = 0; i < a->item_count; i++)
        json_item(j, &a->items[i]);
    frag_json_end(j);
    frag_json_new_array(j, 3, "findings");
    for (size_t i = 0; i < a->finding_count; i++)
        json_finding(j, a, &a->findings[i]);
    frag_json_end(j);
    frag_json_end(j);
}

/* ---- all settings ---- */

void conf_put_keys(FILE *out, struct frag_json *j)
{
    for (const struct conf_key *k = conf_keys; k->name; k++) {
        if (!j) {
            fprintf(out, "%s%s\n", k == conf_keys ? "" : "\n", k->name);
            put_key(out, k);
            continue;
        }
        frag_json_new_object(j, 2, NULL);
        frag_json_text(j, "key", k->name);
        json_key(j, k);
        frag_json_end(j);
    }
}
