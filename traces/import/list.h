/* The input formats, one line each; the file is traces/import_<name>.c. */
IMPORTER(torch)
IMPORTER(record)
IMPORTER(csv)
IMPORTER(android)
IMPORTER(static)
