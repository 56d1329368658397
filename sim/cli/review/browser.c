/* nftw is of the X/Open part of POSIX. */
#define _XOPEN_SOURCE 700

#include "sim/cli/review/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/figures/pdf.h"

enum { MISSING = 127 }; /* exit code of a child that found no browser */

static const char *const browsers[] = {"chromium", "chromium-browser",
                                       "google-chrome", "chrome"};

/* Runs in the child. The profile is its own; without the sandbox where the
 * browser refuses to run with it, as root. */
static void become(const char *profile, const char *pdf, const char *html)
{
    int nowhere = open("/dev/null", O_RDWR);
    char data[PATH_MAX], print[PATH_MAX], page[PATH_MAX];
    char *arguments[] = {NULL,
                         (char[]){"--headless"},
                         (char[]){"--disable-gpu"},
                         (char[]){"--disable-extensions"},
                         (char[]){"--no-first-run"},
                         (char[]){"--no-pdf-header-footer"},
                         data,
                         print,
                         page,
                         geteuid() ? NULL : (char[]){"--no-sandbox"},
                         NULL};

    snprintf(data, sizeof(data), "--user-data-dir=%s", profile);
    snprintf(print, sizeof(print), "--print-to-pdf=%s", pdf);
    snprintf(page, sizeof(page), "file://%s", html);
    setenv("TZ", "UTC", 1);
    setenv("HOME", profile, 1);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    for (size_t i = 0; i < sizeof(browsers) / sizeof(*browsers); i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s", browsers[i]);
        arguments[0] = name;
        execvp(name, arguments);
    }
    _exit(errno == ENOENT ? MISSING : MISSING - 1);
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

/* A browser leaves a tree of files. */
static void remove_tree(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static enum frag_err judge(int status, const char *pdf, struct frag_error *e)
{
    struct stat made;

    if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)
        return frag_fail(e, FRAG_IO,
                         "a PDF is printed by Chromium, which is not installed "
                         "(Debian: apt-get install chromium); -o FILE.html "
                         "needs none");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || stat(pdf, &made) < 0)
        return frag_fail(e, FRAG_IO, "Chromium could not print the page");
    pdf_settle_dates(pdf);
    return FRAG_OK;
}

enum frag_err browser_print(const char *html, const char *pdf,
                            struct frag_error *e)
{
    char profile[] = "/tmp/fragsim-browser-XXXXXX";
    char *page = realpath(html, NULL);
    int status = 0;
    pid_t child;

    if (!page || !mkdtemp(profile)) {
        free(page);
        return frag_fail(e, FRAG_IO, "%s: %s", html, strerror(errno));
    }
    fflush(NULL);
    child = fork();
    if (child == 0)
        become(profile, pdf, page);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    remove_tree(profile);
    free(page);
    if (child < 0)
        return frag_fail(e, FRAG_IO, "Chromium cannot be started: %s",
                         strerror(errno));
    return judge(status, pdf, e);
}
