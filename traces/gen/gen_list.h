/* gen_list.h - the generators, one line each. The generator NAME is
 * traces/gen/NAME.c. The includer defines GENERATOR(name). */
GENERATOR(stationary)
GENERATOR(training)
