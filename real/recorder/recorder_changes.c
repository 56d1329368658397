/* recorder_changes.c - logs the changes of the settings of PyTorch's allocator,
 * of which real/torch/start/sitecustomize.py tells. */
#include <string.h>

#include "real/recorder/recorder_driver.h"
#include "real/recorder/write.h"

/* `text` is that of RECORD_CHANGE; a device of -1 stands for all, else the
 * limit of this one changed. Called with the lock of the Python interpreter, so
 * that the parts of two texts do not mix. */
EXPORTED void frag_record_change(const char *text, int device, uint64_t limit);

void frag_record_change(const char *text, int device, uint64_t limit)
{
    struct record_call call = {.kind = RECORD_TEXT,
                               .device = RECORD_NO_DEVICE,
                               .thread = log_thread()};

    for (size_t left = strlen(text); left;) {
        const size_t part =
            left < sizeof(call.name) ? left : sizeof(call.name) - 1;

        memset(call.name, 0, sizeof(call.name));
        memcpy(call.name, text, part);
        log_commit(log_claim(), &call);
        text += part;
        left -= part;
    }
    call = (struct record_call){.kind = RECORD_CHANGE,
                                .device = device,
                                .thread = call.thread,
                                .bytes = limit,
                                .time = log_time()};
    log_commit(log_claim(), &call);
}
