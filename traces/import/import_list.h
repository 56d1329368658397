/* import_list.h - the input formats, one line each. The importer of a format is
 * traces/import/import_NAME.c, or in the folder traces/import/NAME/. The
 * includer defines IMPORTER(name). Where the first bytes of a file fit several
 * formats, the first one in this list reads the file. */
IMPORTER(torch)
IMPORTER(record)
IMPORTER(csv)
IMPORTER(rmm)
IMPORTER(kineto)
IMPORTER(static)
