// cli/adapter_files.h — the --lora option, which selects the adapters of a command's requests.
#ifndef WICK_CLI_ADAPTER_FILES_H
#define WICK_CLI_ADAPTER_FILES_H

#include "cli/args.h"
#include "cli/command.h"

typedef struct adapter_files {
  args_strings files;  // "FILE" or "FILE:SCALE"
  wick_adapter_use uses[ARGS_STRINGS_MAX];
} adapter_files;

args_option adapter_files_option(adapter_files *adapters);
// Loads the files into the engine. Reports errors. Afterwards, a request can refer to `uses`
// [files.count].
exit_code adapter_files_load(adapter_files *adapters, wick_engine *engine);

#endif
