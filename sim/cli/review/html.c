/* html.c - the style sheet and script of a page, its table cells, and figures
 * with renamed ids. */
#include "sim/cli/review/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/source.h"
#include "traces/printable.h"

/* Dark and light colours and one accent. In print each trace begins a page. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#16181d;--soft:#5b6270;--line:#d9dde3;"
    "--paper:#fff;--wash:#f4f6f8;--accent:#0072b2;--bad:#b84a00}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a0a7b4;"
    "--line:#3a404b;--paper:#15181d;--wash:#1e2229;--accent:#56b4e9;"
    "--bad:#ff9a57}figure svg{filter:invert(.9) hue-rotate(180deg)}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 "
    "system-ui,'Liberation Sans',Helvetica,Arial,sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:28px 24px 64px}\n"
    "h1{font-size:30px;line-height:1.2;margin:0 0 4px}\n"
    "h2{font-size:22px;margin:44px 0 6px;padding-top:12px;"
    "border-top:1px solid var(--line)}\n"
    "h3{font-size:17px;margin:20px 0 4px}\n"
    "p{margin:6px 0 10px;max-width:82ch;overflow-wrap:anywhere}\n"
    "a{color:var(--accent)}\n"
    ".soft{color:var(--soft)}.bad{color:var(--bad);font-weight:600}\n"
    ".verdict{font-size:20px;line-height:1.45;margin:18px 0 12px}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:14px 0 18px}\n"
    ".tile{flex:1 1 200px;background:var(--wash);border-left:4px solid "
    "var(--accent);padding:10px 14px}\n"
    ".tile b{display:block;font-size:26px;line-height:1.2}\n"
    ".tile span{color:var(--soft);font-size:14px}\n"
    ".note{background:var(--wash);border-left:4px solid var(--bad);padding:"
    "10px 14px;margin:14px 0;max-width:90ch}.note ul{margin:6px 0 0;"
    "padding-left:20px}.note summary,.note b{color:var(--bad);font-weight:600}"
    "\n"
    "code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,monospace;"
    "font-size:.88em;overflow-wrap:anywhere}\n"
    "pre{background:var(--wash);padding:10px 14px;white-space:pre-wrap;"
    "margin:8px 0}\n"
    "pre.rows{font-size:12.5px;line-height:1.4}pre.rows span{display:block;"
    "padding-left:4ch;text-indent:-4ch}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:14px;margin:8px 0;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:right;padding:4px 9px;border-bottom:1px solid "
    "var(--line);white-space:nowrap}\n"
    "th{color:var(--soft);font-weight:600;vertical-align:bottom}\n"
    "th.l,td.l{text-align:left}td.w{white-space:normal;overflow-wrap:anywhere;"
    "min-width:16ch}\n"
    "table.sort th{cursor:pointer}table.sort th:hover{color:var(--accent)}\n"
    "th[aria-sort=ascending]::after{content:' \\2191'}"
    "th[aria-sort=descending]::after{content:' \\2193'}\n"
    "tr.choice td{background:var(--wash);font-weight:600}\n"
    "figure{margin:14px 0}figure svg{max-width:100%;height:auto;"
    "display:block}\n"
    "summary{cursor:pointer;color:var(--accent)}\n"
    "@page{size:A4 landscape;margin:11mm}\n"
    "@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;"
    "--wash:#f2f4f6;--accent:#0072b2;--bad:#b84a00}"
    "main{padding:0;max-width:none}body{font-size:10pt;line-height:1.35}"
    "p{max-width:none;margin:3pt 0 "
    "5pt}h1{font-size:20pt}h2{font-size:14pt;margin-top:14pt}"
    ".verdict{font-size:12.5pt;margin:8pt 0}.tile{padding:5pt 9pt}"
    ".tile b{font-size:15pt}.tile span{font-size:9pt}"
    "figure{margin:6pt 0}figure svg{filter:none;max-height:126mm;width:auto;"
    "margin:0 auto}h2,h3,summary{break-after:avoid}"
    "pre.rows{font-size:7.4pt;line-height:1.3;break-inside:avoid}"
    "h2+p,h2+p+pre.rows{break-after:avoid}"
    "h2.page{break-before:page;border-top:0;margin-top:0;padding-top:0}"
    "figure,tr,.tiles,.verdict,.note{break-inside:avoid}thead{display:table-"
    "header-"
    "group}table{font-size:8.5pt}th,td{padding:2pt 7pt}.wide{overflow:visible}"
    "a{color:inherit;text-decoration:none}summary{list-style:none;"
    "color:inherit;font-weight:600}.screen{display:none}}\n";

/* A click on a column's heading sorts by the cells' data-v. Before printing,
 * all <details> are opened. */
static const char script[] =
    "document.querySelectorAll('table.sort th').forEach(function(th){\n"
    "  th.tabIndex=0;\n"
    "  function sort(){\n"
    "    var table=th.closest('table'),i=th.cellIndex;\n"
    "    var up=th.getAttribute('aria-sort')!='ascending';\n"
    "    var rows=Array.from(table.tBodies[0].rows);\n"
    "    function key(row){\n"
    "      var c=row.cells[i],v=c.dataset.v;\n"
    "      return v===undefined?c.textContent:v===''?Infinity:+v;\n"
    "    }\n"
    "    rows.sort(function(a,b){\n"
    "      var x=key(a),y=key(b);\n"
    "      return (x<y?-1:x>y?1:0)*(up?1:-1);\n"
    "    });\n"
    "    table.querySelectorAll('th').forEach(function(o){\n"
    "      o.removeAttribute('aria-sort');\n"
    "    });\n"
    "    th.setAttribute('aria-sort',up?'ascending':'descending');\n"
    "    rows.forEach(function(row){table.tBodies[0].append(row);});\n"
    "  }\n"
    "  th.addEventListener('click',sort);\n"
    "  th.addEventListener('keydown',function(e){\n"
    "    if(e.key=='Enter')sort();\n"
    "  });\n"
    "});\n"
    "addEventListener('beforeprint',function(){\n"
    "  document.querySelectorAll('details').forEach(function(d){\n"
    "    d.open=true;\n"
    "  });\n"
    "});\n";

/* Writes the characters from text up to end. */
static void put_text(FILE *out, const char *text, const char *end)
{
    static const char special[] = "&<>\"'";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                          "&#39;"};

    char form[PRINTABLE_ROOM];

    while (text < end) {
        const char *found = strchr(special, *text);

        text += printable_character(text, form);
        fputs(found ? written[found - special] : form, out);
    }
}

void html_text(FILE *out, const char *text)
{
    put_text(out, text, text + strlen(text));
}

void html_lines(FILE *out, const char *text)
{
    for (;;) {
        const char *end = text + strcspn(text, "\n");

        put_text(out, text, end);
        fputc('\n', out);
        if (!*end)
            return;
        text = end + 1;
    }
}

void html_open(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<title>",
          out);
    html_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
            style);
}

void html_close(FILE *out)
{
    fprintf(out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", script);
}

/* -- cells --------------------------------------------------------------- */

void html_size(FILE *out, frag_size size)
{
    double x = (double)size;
    const char *unit = "MiB";

    x /= size < FRAG_GIB ? (double)FRAG_MIB : (double)FRAG_GIB;
    if (size >= FRAG_GIB)
        unit = "GiB";
    fprintf(out, "<td data-v=\"%" PRIu64 "\">%.2f %s</td>", size, x, unit);
}

const char *html_duration(double seconds, char text[32])
{
    double x = seconds < 0 ? -seconds : seconds;

    if (x == 0)
        snprintf(text, 32, "0 s");
    else if (x < 0.9995e-3)
        snprintf(text, 32, "%.3g \u00b5s", 1e6 * seconds);
    else if (x < 0.9995)
        snprintf(text, 32, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, 32, x < 99.95 ? "%.3g s" : "%.0f s", seconds);
    return text;
}

void html_seconds(FILE *out, double seconds)
{
    char text[32];

    fprintf(out, "<td data-v=\"%.17g\">%s</td>", seconds,
            html_duration(seconds, text));
}

void html_count(FILE *out, uint64_t n)
{
    fprintf(out, "<td data-v=\"%" PRIu64 "\">%" PRIu64 "</td>", n, n);
}

void html_ratio(FILE *out, double x)
{
    fprintf(out,
            x < 10 ? "<td data-v=\"%.17g\">%.3f</td>"
                   : "<td data-v=\"%.17g\">%.1f</td>",
            x, x);
}

void html_code(FILE *out, const char *text)
{
    fputs("<td class=\"l w\"><code>", out);
    html_text(out, text);
    fputs("</code></td>", out);
}

void html_none(FILE *out)
{
    fputs("<td data-v=\"\">\u2013</td>", out);
}

/* -- figures ------------------------------------------------------------- */

/* The prefixes of ids that gnuplot uses in every figure (points, groups,
 * filters), with the character before them. */
static const char *const marks[] = {"'gp",      "'#gp",     "\"gnuplot_",
                                    "'textbox", "#textbox", "'greybox",
                                    "#greybox"};

/* The mark with which `text` begins; NULL if there is none. */
static const char *mark_at(const char *text)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (!strncmp(text, marks[i], strlen(marks[i])))
            return marks[i];
    return NULL;
}

/* Writes the figure: its number is inserted into each id, and gnuplot's title
 * is replaced. */
static void put_svg(FILE *out, const char *text, unsigned number,
                    const char *title)
{
    static const char old[] = "<title>Gnuplot</title>";
    const char *mark;

    while (*text) {
        if (!strncmp(text, old, strlen(old))) {
            fputs("<title>", out);
            html_text(out, title);
            fputs("</title>", out);
            text += strlen(old);
        } else if ((mark = mark_at(text))) {
            size_t open = strspn(mark, "'\"#");

            fprintf(out, "%.*sf%u%s", (int)open, mark, number, mark + open);
            text += strlen(mark);
        } else {
            fputc(*text++, out);
        }
    }
}

/* The contents of a file as a string, to be freed; NULL if it cannot be read.
 */
static char *read_text(const char *path)
{
    FILE *in = fopen(path, "r"), *to;
    char *text = NULL, bytes[4096];
    size_t size, n;

    if (!in)
        return NULL;
    to = open_memstream(&text, &size);
    while (to && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        fwrite(bytes, 1, n, to);
    if (to)
        fclose(to);
    fclose(in);
    return text;
}

enum frag_err html_file(FILE *out, const char *path, struct frag_error *e)
{
    struct frag_source *file;
    const unsigned char *bytes;
    enum frag_err err;
    size_t n;

    FRAG_TRY(frag_source_open(path, &file, e));
    while ((n = frag_source_peek(file, 1, &bytes, &err, e)) > 0) {
        fwrite(bytes, 1, n, out);
        frag_source_skip(file, n);
    }
    frag_source_close(file);
    return err;
}

enum frag_err html_svg(FILE *out, const char *path, unsigned number,
                       const char *title, struct frag_error *e)
{
    char *text = read_text(path);
    const char *svg = text ? strstr(text, "<svg") : NULL;

    if (svg)
        put_svg(out, svg, number, title);
    free(text);
    return svg ? FRAG_OK
               : frag_fail(e, FRAG_IO, "%s: the figure cannot be read", path);
}
