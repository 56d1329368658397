/* import_list.c - the table of the input formats, made from import_list.h. */
#include "traces/import/importers.h"

const struct frag_importer *const frag_importers[] = {
#define IMPORTER(name) &frag_importer_##name,
#include "traces/import/import_list.h"
#undef IMPORTER
    NULL,
};
