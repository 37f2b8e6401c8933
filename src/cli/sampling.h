// cli/sampling.h — the options that control how tokens are chosen, under llama.cpp's names.
#ifndef WICK_CLI_SAMPLING_H
#define WICK_CLI_SAMPLING_H

#include "cli/args.h"
#include "cli/command.h"

typedef struct sampling_options {
  args_strings breakers;
  size_t breaker_bytes[ARGS_STRINGS_MAX];
  const char *names, *letters;           // --samplers, --sampling-seq
  char samplers[WICK_SAMPLERS_MAX + 1];  // the letters that stand for the names
} sampling_options;

enum { SAMPLING_OPTIONS_MAX = 40 };

// Appends the options and returns their number. Their values are stored in `sampling` or, for
// sampling_finish, in `given`. Sets a random seed.
size_t sampling_list(sampling_options *given, wick_sampling *sampling, args_option *options);
// Completes `sampling`, which then points into `given`. An unknown sampler is a usage error.
exit_code sampling_finish(sampling_options *given, wick_sampling *sampling);

#endif
