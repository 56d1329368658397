/* settings_text.h - what each release of PyTorch makes of settings of its
 * allocator, as text or as JSON. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_SETTINGS_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_SETTINGS_TEXT_H

#include "sim/cli/cli.h"

/* Answers for settings in the grammar of PYTORCH_CUDA_ALLOC_CONF; "-" means
 * those of the environment. Before them may stand the release and the device
 * library that read them: "@2.6:" or "torch_version:2.6,", and "platform:xpu,".
 * Writes JSON to the file `json`, or text to stdout if it is NULL. Returns the
 * exit code: EXIT_NO if that release refuses or ignores a setting, or if it is
 * not known. */
int settings_answer(const struct call *call, const char *settings,
                    const char *json);

#endif
