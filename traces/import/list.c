#include "traces/import/importer.h"

const struct frag_importer *const frag_importers[] = {
#define IMPORTER(name) &frag_importer_##name,
#include "traces/import/list.h"
#undef IMPORTER
    NULL,
};
