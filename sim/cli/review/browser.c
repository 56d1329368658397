/* browser.c - prints the review page as PDF: runs Chromium without a window,
 * with a temporary profile. */
#include "sim/cli/review/browser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cli/child.h"
#include "sim/cli/gnuplot/pdf.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/temporary.h"
#include "traces/text.h"

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

static enum frag_err print(const char *profile, const char *page,
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

enum frag_err browser_print(const char *html, const char *pdf,
                            struct frag_error *e)
{
    char *page = realpath(html, NULL), *profile = NULL;
    enum frag_err err;

    if (!page)
        return frag_fail(e, FRAG_IO, "%s: %s", html, strerror(errno));
    err = scratch_make(&profile, e);
    if (err == FRAG_OK)
        err = print(profile, page, pdf, e);
    temporary_remove(profile);
    free(page);
    return err;
}
