/* sweep_output.c - decides whether a sweep starts, resumes or is complete,
 * opens its chunks and writes its results. */
#include "sim/cli/output/sweep_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/version.h"
#include "traces/bytes/atomic_file.h"
#include "traces/text.h"

enum frag_err sweep_output_name(struct sweep_output *out,
                                const struct outputs *to, bool resume,
                                char *command, char *settings,
                                const struct shard *shard, struct frag_error *e)
{
    *out = (struct sweep_output){
        .to = to,
        .resume = resume,
        .command = command,
        .settings = settings,
        .folder = text_make("%s.part", to->hdf5),
    };
    if (command)
        out->shards = text_make("%s --shard %" PRIu64 "/%" PRIu64, command,
                                shard->index, shard->count);
    out->made_by = (struct frag_provenance){
        .version = frag_version,
        .commit = frag_commit,
        .command = command,
        .started = FRAG_NO_TIME,
        .settings = settings,
        .shards = out->shards,
    };
    if (out->shards && out->folder && settings)
        return FRAG_OK;
    return frag_no_memory(e, "a sweep");
}

void sweep_output_free(struct sweep_output *out)
{
    free(out->command);
    free(out->shards);
    free(out->settings);
    free(out->folder);
    *out = (struct sweep_output){0};
}

static bool has_folder(const struct sweep_output *out)
{
    return access(out->folder, F_OK) == 0;
}

enum frag_err sweep_output_is_complete(const struct sweep_output *out,
                                       bool *complete, struct frag_error *e)
{
    const char *path = out->to->hdf5;
    struct frag_loaded found;

    *complete = false;
    if (!out->resume || out->to->force || has_folder(out) ||
        access(path, F_OK) < 0)
        return FRAG_OK;
    FRAG_TRY(frag_results_load(path, &found, e));
    *complete = !found.missing && found.settings &&
                !strcmp(found.settings, out->settings) && found.shards &&
                !strcmp(found.shards, out->shards) &&
                !strcmp(found.version, frag_version) &&
                !strcmp(found.commit, frag_commit);
    frag_results_unload(&found);
    if (*complete)
        return FRAG_OK;
    return frag_fail(e, FRAG_IO,
                     "%s is the result of another command, or of a part of "
                     "this one, and there is no %s to resume from; -f "
                     "overwrites it",
                     path, out->folder);
}

int sweep_output_exists(const struct call *call, const struct sweep_output *out)
{
    return outputs_exist(call, out->to, out->resume && has_folder(out));
}

/* HDF5's environment variable for file systems without locks. */
static bool locking_is_off(void)
{
    const char *wish = getenv("HDF5_USE_FILE_LOCKING");

    return wish && (!strcmp(wish, "FALSE") || !strcmp(wish, "0"));
}

enum frag_err sweep_output_chunks(const struct sweep_output *out,
                                  struct chunks *chunks, struct frag_error *e)
{
    const char *const paths[] = {out->to->hdf5, out->to->json, out->to->csv};
    const enum chunks_mode mode = out->resume      ? CHUNKS_RESUME
                                  : out->to->force ? CHUNKS_REPLACE
                                                   : CHUNKS_NEW;

    FRAG_TRY(chunks_open(out->folder, mode, locking_is_off(), &out->made_by,
                         chunks, e));
    /* The lock of the folder shows that no other sweep writes these. */
    for (int i = 0; i < 3; i++)
        if (paths[i])
            atomic_file_remove_dead(paths[i]);
    return FRAG_OK;
}

/* Adds a cell to a note. */
static enum frag_err gather(struct report *r,
                            const struct frag_run_identity *id, uint32_t device,
                            const char *text, struct frag_error *e)
{
    char place[CELL_PLACE];

    cell_place(id->policy, id->bound, place);
    return cell_note_add(r->notes, id->trace.path, device, text, place)
               ? FRAG_OK
               : frag_no_memory(e, "the notes");
}

/* Gathers the notes: in a sweep, many cells have the same. */
static enum frag_err
add_to_report(void *user, const struct frag_run_identity *id, const char *notes,
              const struct frag_run *run, struct frag_error *e)
{
    struct report *r = user;

    for (uint32_t i = 0; i < id->trace.note_count; i++)
        FRAG_TRY(gather(r, id, CELL_NOTE_TRACE, id->trace.notes[i], e));
    for (size_t n; *notes; notes += n + (notes[n] == '\n')) {
        char text[RELEASE_NOTE];

        n = strcspn(notes, "\n");
        snprintf(text, sizeof(text), "%.*s", (int)n, notes);
        FRAG_TRY(gather(r, id, id->trace.device, text, e));
    }
    return report_add(r, id, run, e);
}

enum frag_err sweep_output_write(struct sweep_output *out,
                                 const struct sweep *sweep, const char *missing,
                                 struct frag_error *e)
{
    struct frag_provenance provenance = out->made_by;
    struct report report;
    enum frag_err err;

    provenance.missing = missing;
    FRAG_TRY(report_open(&report, &provenance, out->to->hdf5, out->to->json,
                         out->to->csv, e));
    report.has_table = false;
    report.notes = out->notes;
    err = sweep_write(sweep, add_to_report, &report, e);
    if (err == FRAG_OK)
        return report_commit(&report, false, e);
    report_abort(&report);
    return err;
}
