/* proof.c - the checks of a checked run: reports the faults that the ledger
 * finds, and verifies that blocks keep their contents. */
#include <inttypes.h>

#include "sim/replay/replay_parts.h"

enum frag_err run_fault(struct run *r)
{
    const char *words = frag_ledger_fault(r->ledger);

    return frag_fail(r->error,
                     r->refusal == FRAG_OK ? FRAG_CONTRACT : r->refusal,
                     "%s: event %" PRIu64 ": %s", r->policy->name, r->event,
                     words ? words : frag_err_text(FRAG_NOMEM));
}

/* Records an error of the device as a fault of the ledger, so that every exit
 * of the run reports it. */
static enum frag_err refuse(struct run *r, enum frag_err err, const char *what)
{
    r->refusal = err;
    frag_ledger_blame(r->ledger, "the device cannot %s a block", what);
    return run_fault(r);
}

static enum frag_err fill(struct run *r, uint32_t id)
{
    const struct frag_contents *c = r->spec->contents;
    const struct frag_block *b = &r->slots[id].block;
    enum frag_err err = c->fill(c->user, b->addr, b->size, r->event);

    r->filled[id] = r->event;
    return err == FRAG_OK ? FRAG_OK : refuse(r, err, "fill");
}

static enum frag_err verify(struct run *r, uint32_t id, const char *when)
{
    const struct frag_contents *c = r->spec->contents;
    const struct frag_block *b = &r->slots[id].block;
    frag_size wrong = UINT64_MAX;
    enum frag_err err =
        c->verify(c->user, b->addr, b->size, r->filled[id], &wrong);

    if (err != FRAG_OK)
        return refuse(r, err, "read");
    if (wrong == UINT64_MAX)
        return FRAG_OK;
    frag_ledger_blame(r->ledger,
                      "the block of event %" PRIu64 ", %" PRIu64
                      " bytes at 0x%" PRIx64
                      ", has lost its contents, from offset %" PRIu64 ", %s",
                      r->filled[id], b->size, b->addr, wrong, when);
    return run_fault(r);
}

enum frag_err run_prove_alloc(struct run *r, uint32_t id, frag_size requested)
{
    if (r->ledger &&
        frag_ledger_alloc(r->ledger, id, requested, &r->slots[id].block))
        return run_fault(r);
    return r->filled ? fill(r, id) : FRAG_OK;
}

enum frag_err run_prove_free(struct run *r, uint32_t id)
{
    if (r->ledger && frag_ledger_free(r->ledger, id, &r->slots[id].block))
        return run_fault(r);
    return r->filled ? verify(r, id, "by its free") : FRAG_OK;
}

enum frag_err run_prove_disturbed(struct run *r)
{
    static const char *const when[] = {
        [FRAG_UNDISTURBED] = NULL,
        [FRAG_COPIED_OVER] = "when it was copied over",
        [FRAG_REMAPPED] = "when it was remapped",
        [FRAG_MOVED] = "when it was moved",
    };
    enum frag_disturbance by;
    uint32_t id;

    while (r->filled && frag_ledger_disturbed(r->ledger, &id, &by))
        FRAG_TRY(verify(r, id, when[by]));
    return FRAG_OK;
}

enum frag_err run_prove_end(struct run *r)
{
    if (r->ledger && frag_ledger_fault(r->ledger))
        return run_fault(r);
    if (!r->filled)
        return FRAG_OK;
    for (uint32_t id = 0; id < r->trace->slots; id++)
        if (state_of(r->tags[id]) == SLOT_LIVE ||
            state_of(r->tags[id]) == SLOT_PENDING)
            FRAG_TRY(verify(r, id, "by the end"));
    return FRAG_OK;
}
