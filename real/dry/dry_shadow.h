/* dry_shadow.h - the bytes of device memory without contents that are known.
 *
 * A small copy from the host keeps its bytes until the next work of the device
 * that may write memory: a kernel, or a function of a library. Until then, a
 * copy of all these bytes to the host, to other device memory or by a
 * collective of NCCL is true. What a copy to the host reads otherwise is zeros,
 * and reported.
 */
#ifndef FRAG_REAL_DRY_DRY_SHADOW_H
#define FRAG_REAL_DRY_DRY_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* The memory has these bytes now; more than SHADOW_MOST are not kept. */
enum { FRAG_DRY_SHADOW_MOST = 1 << 16 };
void frag_dry_wrote(uint64_t at, const void *bytes, size_t size);
/* The same after a copy inside of the device: its bytes are known if those of
 * `from` are. */
void frag_dry_copied(uint64_t to, uint64_t from, size_t size);
/* The memory has what another process sends, when that is known: `fetch` waits
 * for it and writes it, or returns false if nobody knows the bytes. It gets the
 * text `from`. */
typedef bool frag_dry_fetch(void *to, size_t size, const char *from);
void frag_dry_awaits(uint64_t at, size_t size, frag_dry_fetch *fetch,
                     const char *from);
/* Takes what exactly that memory awaits, for a later call that waits for it;
 * NULL if nothing. The call returns what fetch does. */
struct shadow;
struct shadow *frag_dry_awaited(uint64_t at, size_t size);
bool frag_dry_fetched(struct shadow *awaited, void *to);
/* Whether all bytes are known now; then they are written to `to`. */
bool frag_dry_known(void *to, uint64_t at, size_t size);
/* The same for bytes that are sent to another rank: the listener of reads may
 * know them. */
bool frag_dry_sends(void *to, uint64_t at, size_t size);
/* Work was launched that may write any memory of the device. */
void frag_dry_launched(void);
/* How often that was so. */
uint64_t frag_dry_launches(void);
/* Writes what the memory has to `to`: its bytes, or the next assumed value, or
 * zeros, which is reported. */
void frag_dry_read(void *to, uint64_t at, size_t size);

/* The listener of reads of unknown bytes, in the thread that reads: it may
 * write others to `to`, which has zeros, and returns whether it did. What is
 * sent to another rank is no read, and is written only if it is exact. NULL:
 * the read is a note (dry_notes.h). */
typedef bool frag_dry_reader(void *to, uint64_t at, size_t size, bool is_sent);
void frag_dry_on_read(frag_dry_reader *reader);

#pragma GCC visibility pop

#endif
