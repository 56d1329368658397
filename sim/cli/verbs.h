/* The commands, one line each in the order of the manual; the file is
 * sim/cli/verb_<name>.c. */
VERB(replay)
VERB(fit)
VERB(tune)
VERB(validate)
VERB(info)
VERB(import)
VERB(record)
VERB(gen)
VERB(export)
VERB(policies)
VERB(plot)
VERB(help)
