/* publish.c - writes HTML to its place, or prints it from a temporary file. */
#include "sim/cli/review/publish.h"

#include <string.h>

#include "sim/cli/review/browser.h"
#include "traces/bytes/sink.h"

/* A page, and who writes it. */
struct page_source {
    enum frag_err (*write)(void *user, FILE *out, struct frag_error *e);
    void *user;
};

static bool ends_with(const char *path, const char *suffix)
{
    const char *dot = path ? strrchr(path, '.') : NULL;

    return dot && !strcmp(dot, suffix);
}

bool publish_can(const char *path)
{
    return ends_with(path, ".html") || ends_with(path, ".pdf");
}

static enum frag_err write_html(const struct page_source *p, const char *path,
                                struct frag_error *e)
{
    struct sink page;
    enum frag_err err;

    FRAG_TRY(sink_open(&page, path, e));
    err = p->write(p->user, page.out, e);
    if (err == FRAG_OK)
        return sink_commit(&page, e);
    sink_abort(&page);
    return err;
}

/* Prints the page as PDF from a temporary HTML file beside it. */
static enum frag_err print(const struct page_source *p, const char *path,
                           const char *pdf, struct frag_error *e)
{
    struct atomic_file page;
    enum frag_err err;

    FRAG_TRY(atomic_file_begin(&page, path, ".html", e));
    err = write_html(p, page.partial, e);
    if (err == FRAG_OK)
        err = browser_print(page.partial, pdf, e);
    atomic_file_abort(&page);
    return err;
}

static enum frag_err write_pdf(const struct page_source *p, const char *path,
                               struct frag_error *e)
{
    struct atomic_file pdf;
    enum frag_err err;

    FRAG_TRY(atomic_file_begin(&pdf, path, ".pdf", e));
    err = print(p, path, pdf.partial, e);
    if (err == FRAG_OK)
        return atomic_file_commit(&pdf, e);
    atomic_file_abort(&pdf);
    return err;
}

enum frag_err publish(const char *path,
                      enum frag_err (*write)(void *user, FILE *out,
                                             struct frag_error *e),
                      void *user, struct frag_error *e)
{
    const struct page_source p = {write, user};

    return ends_with(path, ".pdf") ? write_pdf(&p, path, e)
                                   : write_html(&p, path, e);
}
