// cli/settings.h — the options for creating an engine, which several commands share.
#ifndef WICK_CLI_SETTINGS_H
#define WICK_CLI_SETTINGS_H

#include "cli/args.h"
#include "cli/command.h"

typedef struct model_settings {
  uint32_t context_tokens;    // --ctx, 0: the engine's default
  uint32_t kv[2];             // --kv, for keys and values: each a wick_kv_type
  uint32_t threads;           // --threads
  const char *pre_tokenizer;  // --pre-tokenizer, or NULL
  bool no_predictor;          // --no-predictor
  uint32_t tables;            // --tables: a wick_tables
} model_settings;

enum {
  SETTINGS_CTX = 1,
  SETTINGS_KV = 2,
  SETTINGS_THREADS = 4,
  SETTINGS_ALL = 7,
  SETTINGS_PRE = 8,
  SETTINGS_PREDICTOR = 16,
  SETTINGS_TABLES = 32
};

model_settings settings_default(void);
// Returns only the --pre-tokenizer option.
args_option settings_pre_tokenizer(const char **name);
// Appends the options that `which` selects; returns their number (up to 6).
size_t settings_list(model_settings *settings, uint32_t which, args_option *options);
// Sets *config to the defaults with these settings. Reports kernels that do not exist.
exit_code settings_apply(const model_settings *settings, wick_config *config);
// Waits for the helper threads of the engine. Reports an error if there are fewer threads than
// requested.
exit_code settings_check_threads(const model_settings *settings, const wick_engine *engine);

#endif
