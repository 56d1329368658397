/* The input formats, one line each; the file is traces/import/<name>.c,
 * or a folder of that name. */
IMPORTER(torch)
IMPORTER(record)
IMPORTER(csv)
IMPORTER(android)
IMPORTER(static)
