// cli/args.h — a strict option parser. An unknown option, a missing value or a number out of range
// is reported in one line on stderr. Options may come before or after the positional arguments. A
// long option takes its value as the next argument or after '='. If an option is given twice, the
// last value counts.
#ifndef WICK_CLI_ARGS_H
#define WICK_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"

enum { ARGS_STRINGS_MAX = 16, ARGS_POSITIONALS_MAX = 4 };

typedef struct args_strings {
  const char *items[ARGS_STRINGS_MAX];
  uint32_t count;
} args_strings;

typedef struct args_tokens {
  int32_t *ids;  // freed by args_tokens_free
  size_t count;
  bool is_given;
} args_tokens;

typedef enum args_kind {
  ARGS_FLAG,     // bool
  ARGS_STRING,   // const char *
  ARGS_STRINGS,  // args_strings: repeatable
  ARGS_U32,      // uint32_t within [low, high]
  ARGS_I32,      // int32_t within [low, high]
  ARGS_U64,      // uint64_t
  ARGS_F32,      // float within [low, high]
  ARGS_CHOICE,   // uint32_t: index into `choices`
  ARGS_PAIR,     // uint32_t[2]: two numbers separated by ':', or one for both
  ARGS_TOKENS    // args_tokens: ids separated by commas or spaces
} args_kind;

typedef struct args_option {
  const char *name;  // "-n", "--temp"
  args_kind kind;
  void *value;  // points to the kind's type; keeps its default if the option is absent
  const char *value_name, *help;  // for --help; value_name NULL for flags
  double low, high;               // range of numbers
  const char *const *choices;     // NULL-terminated
} args_option;

// Return options: one function per kind, each of which takes a pointer to the kind's type.
args_option args_flag(const char *name, bool *value, const char *help);
args_option args_string(const char *name, const char **value, const char *value_name,
                        const char *help);
args_option args_string_list(const char *name, args_strings *value, const char *value_name,
                             const char *help);
args_option args_u32(const char *name, uint32_t *value, const char *value_name, uint32_t low,
                     uint32_t high, const char *help);
args_option args_u64(const char *name, uint64_t *value, const char *value_name, const char *help);
args_option args_f32(const char *name, float *value, const char *value_name, double low,
                     double high, const char *help);
args_option args_choice(const char *name, uint32_t *value, const char *value_name,
                        const char *const *choices, const char *help);
args_option args_pair(const char *name, uint32_t value[2], const char *value_name,
                      const char *const *choices, const char *help);
args_option args_token_list(const char *name, args_tokens *value, const char *value_name,
                            const char *help);

typedef struct args_spec {
  const char *usage;  // "wick run MODEL [options]"
  const char *notes;  // printed after the options, or NULL
  const args_option *options;
  size_t option_count;
  size_t positional_count;  // exactly this many
} args_spec;

// Returns EXIT_NOT_YET if the command should run, otherwise its exit code: that of the printed
// help, EXIT_USAGE or EXIT_MEMORY, after a message.
exit_code args_parse(const args_spec *spec, int argc, char **argv,
                     const char *positionals[ARGS_POSITIONALS_MAX]);
void args_tokens_free(args_tokens *tokens);

#endif
