// cli/model_file.h — opens a model from a file, from the files of a split model, or from standard
// input, and feeds it to an engine.
#ifndef WICK_CLI_MODEL_FILE_H
#define WICK_CLI_MODEL_FILE_H

#include "cli/command.h"

// Creates an engine and loads the model, or what config->directory_only requests. `path` is a file
// or "-". The names of a split model's files are derived from the first one
// (name-00001-of-00003.gguf). A file is read at the offsets that the engine requests, and a pipe
// sequentially, in pieces of 1 MiB. A file may be read again while the engine runs
// (config->tables); a pipe cannot. Reports errors and then sets *engine to NULL.
exit_code model_open(const char *path, const wick_config *config, wick_engine **engine);
// Destroys the engine and closes the file that it may read while it runs. NULL does nothing.
void model_close(wick_engine *engine);
// Like model_open, but loads only metadata and tokenizer. A file without a tokenizer is an error.
// `pre_tokenizer` replaces the file's value; NULL: use the file's value.
exit_code model_open_vocabulary(const char *path, const char *pre_tokenizer, wick_engine **engine);

#endif
