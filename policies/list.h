/* The policies, one line each; the file is policies/<name>.c. */
POLICY(torch)
