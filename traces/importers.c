#include "traces/importer.h"

const struct frag_importer *const frag_importers[] = {
#define IMPORTER(name) &frag_importer_##name,
#include "traces/importers.h"
#undef IMPORTER
    NULL,
};
