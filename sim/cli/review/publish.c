/* publish.c - writes HTML to its place, or has Chromium print it as PDF from a
 * temporary file, without a window and with a temporary profile. */
#include "sim/cli/review/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cli/child.h"
#include "sim/cli/gnuplot/pdf.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/sink.h"
#include "traces/bytes/temporary.h"
#include "traces/text.h"

/* -- the browser -------------------------------------------------------- */

static const char *const browsers[] = {"chromium", "chromium-browser",
                                       "google-chrome", "chrome"};

/* Runs the first browser that is installed. As root it runs without a sandbox,
 * because Chromium refuses to run as root with one. *code is CHILD_MISSING if
 * no browser is installed. */
static enum frag_err run(char *const words[3], const char *profile, int *code,
                         struct frag_error *e)
{
    const struct setting settings[] = {
        {"TZ", "UTC"}, {"HOME", profile}, {NULL, NULL}};
    enum frag_err err = FRAG_OK;

    *code = CHILD_MISSING;
    for (size_t i = 0; i < sizeof(browsers) / sizeof(*browsers) &&
                       (err != FRAG_OK || *code == CHILD_MISSING);
         i++) {
        const char *const argv[] = {browsers[i],
                                    "--headless",
                                    "--disable-gpu",
                                    "--disable-extensions",
                                    "--no-first-run",
                                    "--no-pdf-header-footer",
                                    words[0],
                                    words[1],
                                    words[2],
                                    geteuid() ? NULL : "--no-sandbox",
                                    NULL};

        err = child_run(&(const struct child){.argv = argv,
                                              .settings = settings,
                                              .output = "/dev/null"},
                        code, e);
    }
    return err;
}

static enum frag_err judge(int code, const char *pdf, struct frag_error *e)
{
    struct stat made;

    if (code == CHILD_MISSING)
        return frag_fail(e, FRAG_IO,
                         "a PDF is printed by Chromium, which is not installed "
                         "(Debian: apt-get install chromium); -o FILE.html "
                         "does not need Chromium");
    if (code != 0 || stat(pdf, &made) < 0 || !made.st_size)
        return frag_fail(e, FRAG_IO, "Chromium could not print the page");
    pdf_settle_dates(pdf);
    return FRAG_OK;
}

static enum frag_err print_with(const char *profile, const char *page,
                                const char *pdf, struct frag_error *e)
{
    char *const words[] = {text_make("--user-data-dir=%s", profile),
                           text_make("--print-to-pdf=%s", pdf),
                           text_make("file://%s", page)};
    enum frag_err err = FRAG_NOMEM;
    int code = 0;

    if (words[0] && words[1] && words[2])
        err = run(words, profile, &code, e);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        free(words[i]);
    return err == FRAG_OK ? judge(code, pdf, e) : err;
}

/* Prints the page at the path `html` to the file `pdf` with a headless
 * Chromium, which is needed at run time only. Equal pages make equal bytes. */
static enum frag_err browser_print(const char *html, const char *pdf,
                                   struct frag_error *e)
{
    char *page = realpath(html, NULL), *profile = NULL;
    enum frag_err err;

    if (!page)
        return frag_fail(e, FRAG_IO, "%s: %s", html, strerror(errno));
    err = scratch_make(&profile, e);
    FRAG_THEN(err, print_with(profile, page, pdf, e));
    temporary_remove(profile);
    free(page);
    return err;
}

/* -- the page ----------------------------------------------------------- */

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
    FRAG_THEN(err, browser_print(page.partial, pdf, e));
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
