/* The policies, one line each; the file is policies/<name>.c. */
POLICY(torch)
POLICY(direct)
POLICY(first_fit)
POLICY(next_fit)
POLICY(best_fit)
POLICY(size_class)
POLICY(bfc)
POLICY(cupy)
