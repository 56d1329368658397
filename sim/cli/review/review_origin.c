/* review_origin.c - the part of the page that states the source of its numbers:
 * result files, parameters, traces, command lines, and the words it uses. */
#include <inttypes.h>

#include "sim/cli/page/page.h"
#include "sim/cli/review/review_page.h"

static void put_file(FILE *out, const char *path, const struct frag_loaded *l)
{
    fputs("<tr>", out);
    html_code(out, path);
    html_count(out, l->count);
    html_between(out, "<td class=\"l\">fragsim ", l->version, ", commit ");
    html_text(out, l->commit);
    html_between(out, "</td><td class=\"l\">", l->started, "</td></tr>\n");
}

static void put_files(FILE *out, const struct review *r)
{
    fputs("<h3>Result files</h3>\n<div class=\"wide\"><table><thead><tr>"
          "<th class=\"l\">file</th><th>runs</th><th class=\"l\">made by</th>"
          "<th class=\"l\">started</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < r->files->count; i++)
        put_file(out, r->paths->items[i], &r->files->files[i]);
    fputs("</tbody></table></div>\n", out);
}

static void put_params(FILE *out, const struct review *r)
{
    fputs("<h3>Parameters, with defaults</h3>\n<div class=\"wide\"><table>"
          "<thead><tr><th class=\"l\">policy</th><th class=\"l\">parameters"
          "</th><th class=\"l\">backend</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < r->ranking.count; i++) {
        const struct frag_loaded_run *run = r->ranking.order[i]->first;

        fputs("<tr>", out);
        html_code(out, run->id.policy);
        html_code(out, run->run.params);
        html_between(out, "<td class=\"l\">", run->id.backend, "</td></tr>\n");
    }
    fputs("</tbody></table></div>\n", out);
}

static void put_traces(FILE *out, const struct review *r)
{
    fputs("<h3>Traces</h3>\n<div class=\"wide\"><table><thead><tr>"
          "<th class=\"l\">trace</th><th>device</th><th class=\"l\">SHA-256"
          "</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < r->ranking.subject_count; i++) {
        const struct frag_loaded_run *run = r->ranking.subjects[i].first;

        fputs("<tr>", out);
        html_code(out, run->id.trace.name);
        html_count(out, run->id.trace.device);
        html_code(out, run->id.trace.sha256);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

void review_provenance(struct review_page *p)
{
    const struct review *r = p->review;
    FILE *out = p->out;

    fputs("<h2 class=\"page\">Source of the numbers</h2>\n", out);
    put_files(out, r);
    put_params(out, r);
    put_traces(out, r);
    fputs("<h2>How to repeat it</h2>\n<p>Run these commands where the traces "
          "are. Equal inputs produce equal numbers.</p>\n<pre>",
          out);
    for (size_t i = 0; i < r->files->count; i++)
        html_lines(out, r->files->files[i].command);
    html_lines(out, r->command);
    fprintf(
        out,
        "</pre>\n<h2>Words</h2>\n<p><b>Requested</b>: bytes that the "
        "program requested for its live blocks; a block is live until the "
        "program frees it. <b>Allocated</b>: bytes that the policy granted "
        "for them. <b>Reserved</b>: bytes that the policy holds from the "
        "device. <b>Quantum</b>: the unit to which a policy rounds requests. "
        "<b>Lower bound</b>: the peak of the requests of live blocks, each "
        "rounded up to the smallest quantum of these policies, %" PRIu64
        " bytes; none of them that serves these requests can reserve less. "
        "<b>Impossible</b>: a run whose capacity is below the lower bound. "
        "<b>Driver calls</b>: the time that the driver calls of a run take by "
        "a cost model, which comes from measured calls. <b>OOM</b>: a request "
        "that the device could not meet; the run skips it and continues.</p>\n",
        r->ranking.subjects->first->run.summary.quantum);
}
