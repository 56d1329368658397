/* gnuplot.c - finds and copies the scripts, opens the data files and runs
 * gnuplot.
 */
#include "sim/cli/gnuplot/gnuplot.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cli/gnuplot/settle.h"
#include "sim/cli/program.h"
#include "sim/cli/scratch.h"
#include "traces/bytes/atomic_file.h"
#include "traces/bytes/temporary.h"

struct gnuplot {
    const char *name; /* of the script, without .gp */
    char *folder;
    bool kept; /* the folder stays in place */
};

/* -- the folder ---------------------------------------------------------- */

static bool exists(const char *folder, const char *name, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/%s.gp", folder, name);

    return n < PATH_MAX && access(path, R_OK) == 0;
}

static enum frag_err find_script(const char *name, char path[PATH_MAX],
                                 struct frag_error *e)
{
    static const char *const places[] = {"../share/fragsim/plots",
                                         FRAG_PLOTS_SOURCE,
                                         FRAG_PLOTS_INSTALLED, NULL};
    const char *chosen = getenv("FRAG_PLOTS");
    char file[NAME_MAX];

    if (chosen && *chosen) {
        if (exists(chosen, name, path))
            return FRAG_OK;
        return frag_fail(e, FRAG_IO,
                         "FRAG_PLOTS: %.256s does not exist or cannot be read",
                         path);
    }
    snprintf(file, sizeof(file), "%s.gp", name);
    if (program_find(file, places, path))
        return FRAG_OK;
    return frag_fail(e, FRAG_IO,
                     "the script %s.gp is not installed; set FRAG_PLOTS to the "
                     "folder that holds it",
                     name);
}

/* Creates the file FOLDER/NAME<suffix>; NULL with *e if it cannot be created.
 */
static FILE *open_data(const struct gnuplot *g, const char *name,
                       const char *suffix, struct frag_error *e)
{
    char *path = scratch_path(g->folder, name, suffix);
    FILE *data = path ? fopen(path, "w") : NULL;

    if (!data)
        frag_fail(e, FRAG_IO, "%.256s: %s", path ? path : name,
                  strerror(errno));
    free(path);
    return data;
}

/* Closes a data file. */
static enum frag_err written(FILE *data, struct frag_error *e)
{
    bool done = !ferror(data) && fflush(data) == 0;
    int why = errno;

    if (fclose(data) == 0 && done)
        return FRAG_OK;
    return frag_fail(e, FRAG_IO, "the data of the plot cannot be written: %s",
                     strerror(done ? errno : why));
}

static enum frag_err copy(FILE *from, FILE *to, struct frag_error *e)
{
    char bytes[4096];
    size_t n;

    while ((n = fread(bytes, 1, sizeof(bytes), from)) > 0)
        fwrite(bytes, 1, n, to);
    return written(to, e);
}

static enum frag_err copy_script(const struct gnuplot *g, const char *name,
                                 struct frag_error *e)
{
    char path[PATH_MAX];
    FILE *from, *to;
    enum frag_err err;

    FRAG_TRY(find_script(name, path, e));
    from = fopen(path, "r");
    if (!from)
        return frag_fail(e, FRAG_IO, "%.256s: %s", path, strerror(errno));
    to = open_data(g, name, ".gp", e);
    err = to ? copy(from, to, e) : FRAG_IO;
    fclose(from);
    return err;
}

static enum frag_err make_folder(struct gnuplot *g, const char *keep,
                                 struct frag_error *e)
{
    if (!keep)
        return scratch_make(&g->folder, e);
    if (mkdir(keep, 0777) < 0 && errno != EEXIST)
        return frag_fail(e, FRAG_IO, "%s: %s", keep, strerror(errno));
    g->folder = strdup(keep);
    g->kept = true;
    return g->folder ? FRAG_OK : FRAG_NOMEM;
}

static void close_folder(struct gnuplot *g)
{
    if (g->kept)
        free(g->folder);
    else
        temporary_remove(g->folder);
    *g = (struct gnuplot){0};
}

static enum frag_err open_folder(struct gnuplot *g, const char *name,
                                 const char *keep, struct frag_error *e)
{
    enum frag_err err;

    *g = (struct gnuplot){.name = name};
    FRAG_TRY(make_folder(g, keep, e));
    err = copy_script(g, name, e);
    FRAG_THEN(err, copy_script(g, "canvas", e));
    if (err != FRAG_OK)
        close_folder(g);
    return err;
}

/* -- gnuplot ------------------------------------------------------------- */

/* "in='...'; out='...'" and the look of the drawing, to be freed. */
static char *assignments(const char *in, const char *out,
                         const struct drawing *d)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    fputs("in=", to);
    drawing_quote(to, in);
    fputs("; out=", to);
    drawing_quote(to, out);
    drawing_put(to, d);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static enum frag_err judge(const struct gnuplot *g, int code,
                           struct frag_error *e)
{
    if (code == 0)
        return FRAG_OK;
    if (code != CHILD_MISSING)
        return frag_fail(e, FRAG_IO, "gnuplot failed on %s.gp", g->name);
    return frag_fail(e, FRAG_IO,
                     "gnuplot is not installed (Debian: apt-get install "
                     "gnuplot-nox); %s%s",
                     g->kept ? "script and data are in "
                             : "--keep DIR keeps the script and its data",
                     g->kept ? g->folder : "");
}

/* Runs gnuplot without the user's start-up files, locale, time zone and
 * terminal, so that they do not change a figure. */
static enum frag_err execute(const struct gnuplot *g, const char *values,
                             const char *script, struct frag_error *e)
{
    static const struct setting settings[] = {
        {"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}, {"GNUTERM", NULL}, {NULL, NULL}};
    const char *const argv[] = {"gnuplot", "-d", "-e", values, script, NULL};
    int code;

    FRAG_TRY(child_run(
        &(const struct child){.argv = argv, .settings = settings}, &code, e));
    return judge(g, code, e);
}

static enum frag_err run(const struct gnuplot *g, const struct drawing *d,
                         const char *out, struct frag_error *e)
{
    char *in = scratch_path(g->folder, g->name, "");
    char *script = scratch_path(g->folder, g->name, ".gp");
    char *values = in ? assignments(in, out, d) : NULL;
    enum frag_err err =
        script && values ? execute(g, values, script, e) : FRAG_NOMEM;

    free(in);
    free(script);
    free(values);
    return err;
}

bool gnuplot_is_installed(void)
{
    static const char *const argv[] = {"gnuplot", "--version", NULL};
    struct frag_error e;
    int code;

    return child_run(&(const struct child){.argv = argv, .output = "/dev/null"},
                     &code, &e) == FRAG_OK &&
           code == 0;
}

static enum frag_err draw(const struct gnuplot *g, const struct drawing *d,
                          struct frag_error *e)
{
    const char *out = d->out;
    struct atomic_file file;
    struct stat made;
    enum frag_err err;

    FRAG_TRY(atomic_file_begin(&file, out, strrchr(out, '.'), e));
    err = run(g, d, file.partial, e);
    if (err == FRAG_OK && (stat(file.partial, &made) < 0 || !made.st_size))
        err = frag_fail(e, FRAG_IO, "%s: gnuplot wrote nothing to it", out);
    if (err == FRAG_OK)
        err = settle_picture(file.partial, d->title ? d->title : g->name, e);
    if (err == FRAG_OK)
        return atomic_file_commit(&file, e);
    atomic_file_abort(&file);
    return err;
}

/* -- data and picture ---------------------------------------------------- */

static enum frag_err write_file(const struct gnuplot *g,
                                const struct gnuplot_file *file,
                                const void *user, struct frag_error *e)
{
    FILE *data = open_data(g, g->name, file->suffix, e);

    if (!data)
        return FRAG_IO;
    file->write(data, user);
    return written(data, e);
}

enum frag_err gnuplot_draw(const char *name, const struct gnuplot_file *files,
                           const void *user, const struct drawing *d,
                           struct frag_error *e)
{
    struct gnuplot g;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(open_folder(&g, name, d->keep, e));
    for (; err == FRAG_OK && files->suffix; files++)
        err = write_file(&g, files, user, e);
    FRAG_THEN(err, draw(&g, d, e));
    close_folder(&g);
    return err;
}
