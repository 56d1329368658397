/* The generators, one line each; the file is traces/gen_<name>.c. */
GENERATOR(stationary)
GENERATOR(training)
GENERATOR(inference)
GENERATOR(fitted)
GENERATOR(tiling)
GENERATOR(fleetbench)
