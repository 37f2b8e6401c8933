// cli/args.c — the option parser.
#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/decimal.h"
#include "base/options.h"
#include "base/text.h"
#include "cli/nearest.h"

args_option args_flag(const char *name, bool *value, const char *help) {
  return (args_option){.name = name, .kind = ARGS_FLAG, .value = value, .help = help};
}

static args_option with_value(const char *name, args_kind kind, void *value, const char *value_name,
                              const char *help) {
  return (args_option){
      .name = name, .kind = kind, .value = value, .value_name = value_name, .help = help};
}

args_option args_string(const char *name, const char **value, const char *value_name,
                        const char *help) {
  return with_value(name, ARGS_STRING, value, value_name, help);
}

args_option args_string_list(const char *name, args_strings *value, const char *value_name,
                             const char *help) {
  return with_value(name, ARGS_STRINGS, value, value_name, help);
}

args_option args_u32(const char *name, uint32_t *value, const char *value_name, uint32_t low,
                     uint32_t high, const char *help) {
  args_option option = with_value(name, ARGS_U32, value, value_name, help);
  option.low = low;
  option.high = high;
  return option;
}

args_option args_u64(const char *name, uint64_t *value, const char *value_name, const char *help) {
  return with_value(name, ARGS_U64, value, value_name, help);
}

args_option args_f32(const char *name, float *value, const char *value_name, double low,
                     double high, const char *help) {
  args_option option = with_value(name, ARGS_F32, value, value_name, help);
  option.low = low;
  option.high = high;
  return option;
}

args_option args_choice(const char *name, uint32_t *value, const char *value_name,
                        const char *const *choices, const char *help) {
  args_option option = with_value(name, ARGS_CHOICE, value, value_name, help);
  option.choices = choices;
  return option;
}

args_option args_pair(const char *name, uint32_t value[2], const char *value_name,
                      const char *const *choices, const char *help) {
  args_option option = with_value(name, ARGS_PAIR, value, value_name, help);
  option.choices = choices;
  return option;
}

args_option args_token_list(const char *name, args_tokens *value, const char *value_name,
                            const char *help) {
  return with_value(name, ARGS_TOKENS, value, value_name, help);
}

enum { HELP_COLUMN_BYTES = 24 };

static void print_usage(const args_spec *spec) {
  output_format(OUTPUT_TEXT, "usage: %s\n", spec->usage);
  for (size_t i = 0; i < spec->option_count; i++) {
    const args_option *option = &spec->options[i];
    char left[40];
    text_format(left, sizeof left, "%s%s%s", option->name, option->value_name ? " " : "",
                option->value_name ? option->value_name : "");
    output_row(OUTPUT_TEXT, HELP_COLUMN_BYTES, left, option->help);
  }
  if (spec->notes != NULL) output_format(OUTPUT_TEXT, "%s\n", spec->notes);
}

// Reads the number at `text`. Returns the position after its digits, or NULL if it has too many
// digits or none.
static const char *read_digits(const char *text, uint64_t *value) {
  const char *at = text;
  for (*value = 0; *at >= '0' && *at <= '9'; at++) {
    if (!checked_mul_u64(*value, 10, value)) return NULL;
    if (!checked_add_u64(*value, (uint64_t)(*at - '0'), value)) return NULL;
  }
  return at == text ? NULL : at;
}

// Reads an unsigned number. Accepts only digits, so "-1", "0x10" and " 7" are rejected.
static bool read_unsigned(const char *text, uint64_t *value) {
  const char *end = read_digits(text, value);
  return end != NULL && *end == '\0';
}

static void report_range(const args_option *option, const char *text) {
  report("%s takes a whole number from %lld to %lld, not '%s'", option->name,
         (long long)option->low, (long long)option->high, text);
}

static bool parse_u32(const args_option *option, const char *text) {
  uint64_t value;
  if (!read_unsigned(text, &value) || (double)value < option->low || (double)value > option->high) {
    report_range(option, text);
    return false;
  }
  *(uint32_t *)option->value = (uint32_t)value;
  return true;
}

static bool parse_i32(const args_option *option, const char *text) {
  uint64_t value = 0;
  const bool is_negative = *text == '-';
  const bool is_number = read_unsigned(text + (is_negative ? 1 : 0), &value);
  const double number = is_negative ? -(double)value : (double)value;
  if (!is_number || number < option->low || number > option->high) {
    report_range(option, text);
    return false;
  }
  *(int32_t *)option->value = (int32_t)number;
  return true;
}

static bool parse_u64(const args_option *option, const char *text) {
  if (read_unsigned(text, option->value)) return true;
  report("%s takes a whole number below 2^64, not '%s'", option->name, text);
  return false;
}

static void report_number(const args_option *option, const char *text) {
  if (option->high < (double)FLOAT_MOST) {
    report("%s takes a number from %g to %g, not '%s'", option->name, option->low, option->high,
           text);
  } else if (option->low == (double)FLOAT_LEAST) {
    report("%s takes a number above 0, not '%s'", option->name, text);
  } else {
    report("%s takes a number of at least %g, not '%s'", option->name, option->low, text);
  }
}

static bool parse_f32(const args_option *option, const char *text) {
  double value = 0;
  const bool is_number = decimal_read_f64(text, strlen(text), &value);
  const bool is_lost = value != 0 && (float)value == 0;
  if (!is_number || is_lost || value < option->low || value > option->high) {
    report_number(option, text);
    return false;
  }
  *(float *)option->value = (float)value;
  return true;
}

static bool parse_strings(const args_option *option, const char *text) {
  args_strings *strings = option->value;
  if (strings->count == ARGS_STRINGS_MAX) {
    report("%s can be given at most %d times", option->name, ARGS_STRINGS_MAX);
    return false;
  }
  strings->items[strings->count++] = text;
  return true;
}

// Finds the choice whose name is the first `size` bytes of `text`.
static bool find_choice(const args_option *option, const char *text, size_t size, uint32_t *found) {
  for (uint32_t i = 0; option->choices[i] != NULL; i++) {
    const char *choice = option->choices[i];
    if (strlen(choice) != size || memcmp(text, choice, size) != 0) continue;
    *found = i;
    return true;
  }
  char list[128] = "";
  for (uint32_t i = 0; option->choices[i] != NULL; i++) {
    const size_t used = strlen(list);
    text_format(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", option->choices[i]);
  }
  report("%s is one of %s, not '%.*s'", option->name, list, (int)size, text);
  return false;
}

static bool parse_choice(const args_option *option, const char *text) {
  return find_choice(option, text, strlen(text), option->value);
}

static bool parse_pair(const args_option *option, const char *text) {
  uint32_t *pair = option->value;
  const size_t first_size = strcspn(text, ":");
  if (!find_choice(option, text, first_size, &pair[0])) return false;
  if (text[first_size] == '\0') {
    pair[1] = pair[0];
    return true;
  }
  const char *second = text + first_size + 1;
  return find_choice(option, second, strlen(second), &pair[1]);
}

// Reads one id at `text`. Returns the position after it, or NULL. Any id that fits is accepted
// here; the model rejects ids that are not in its vocabulary.
static const char *read_token(const char *text, int32_t *id) {
  uint64_t number;
  const bool is_negative = *text == '-';
  const char *end = read_digits(is_negative ? text + 1 : text, &number);
  if (end == NULL || number > (uint64_t)INT32_MAX + is_negative) return NULL;
  if (*end != '\0' && strchr(", \n\t\r", *end) == NULL) return NULL;
  *id = (int32_t)(is_negative ? -(int64_t)number : (int64_t)number);
  return end;
}

static exit_code parse_tokens(const args_option *option, const char *text) {
  args_tokens *tokens = option->value;
  args_tokens_free(tokens);
  tokens->is_given = true;
  tokens->ids = malloc((strlen(text) / 2 + 1) * sizeof *tokens->ids);  // each id has a separator
  if (tokens->ids == NULL) {
    report("out of memory for %s", option->name);
    return EXIT_MEMORY;
  }
  const char *const spaces = " \n\t\r";
  const char *at = text + strspn(text, spaces);
  bool has_comma = false;  // an id must follow the comma
  while (*at != '\0' || has_comma) {
    const char *end = read_token(at, &tokens->ids[tokens->count]);
    if (end == NULL) {
      report("%s takes numbers separated by commas or spaces, not '%.20s'", option->name, at);
      return EXIT_USAGE;
    }
    tokens->count++;
    end += strspn(end, spaces);
    has_comma = *end == ',';
    at = end + has_comma;
    at += strspn(at, spaces);
  }
  return EXIT_DONE;
}

void args_tokens_free(args_tokens *tokens) {
  free(tokens->ids);
  *tokens = (args_tokens){0};
}

static exit_code result_of(bool is_taken) { return is_taken ? EXIT_DONE : EXIT_USAGE; }

static exit_code parse_value(const args_option *option, const char *text) {
  switch (option->kind) {
    case ARGS_FLAG:
      *(bool *)option->value = true;
      return EXIT_DONE;
    case ARGS_STRING:
      *(const char **)option->value = text;
      return EXIT_DONE;
    case ARGS_STRINGS:
      return result_of(parse_strings(option, text));
    case ARGS_U32:
      return result_of(parse_u32(option, text));
    case ARGS_I32:
      return result_of(parse_i32(option, text));
    case ARGS_U64:
      return result_of(parse_u64(option, text));
    case ARGS_F32:
      return result_of(parse_f32(option, text));
    case ARGS_CHOICE:
      return result_of(parse_choice(option, text));
    case ARGS_PAIR:
      return result_of(parse_pair(option, text));
    case ARGS_TOKENS:
      return parse_tokens(option, text);
  }
  return EXIT_USAGE;
}

static const args_option *find_option(const args_spec *spec, const char *name, size_t name_bytes) {
  for (size_t i = 0; i < spec->option_count; i++) {
    const char *known = spec->options[i].name;
    if (strlen(known) == name_bytes && memcmp(known, name, name_bytes) == 0)
      return &spec->options[i];
  }
  return NULL;
}

static void report_unknown(const args_spec *spec, const char *name, size_t name_bytes) {
  nearest meant = nearest_begin(name, name_bytes);
  for (size_t i = 0; i < spec->option_count; i++) nearest_offer(&meant, spec->options[i].name);
  if (meant.name != NULL) {
    report("unknown option '%.*s'; did you mean '%s'?", (int)name_bytes, name, meant.name);
  } else {
    report("unknown option '%.*s' (usage: %s)", (int)name_bytes, name, spec->usage);
  }
}

// Parses the option at argv[*at] and its value.
static exit_code parse_option(const args_spec *spec, int argc, char **argv, int *at) {
  const char *argument = argv[*at];
  const bool is_long = argument[1] == '-';
  const char *equals = is_long ? strchr(argument, '=') : NULL;
  const size_t name_bytes = equals ? (size_t)(equals - argument) : strlen(argument);
  const args_option *option = find_option(spec, argument, name_bytes);
  if (option == NULL) {
    report_unknown(spec, argument, name_bytes);
    return EXIT_USAGE;
  }
  if (option->kind == ARGS_FLAG) {
    if (equals == NULL) return parse_value(option, NULL);
    report("%s takes no value", option->name);
    return EXIT_USAGE;
  }
  if (equals != NULL) return parse_value(option, equals + 1);
  if (*at + 1 == argc) {
    report("%s needs a value: %s %s", option->name, option->name, option->value_name);
    return EXIT_USAGE;
  }
  return parse_value(option, argv[++*at]);
}

// Reports a missing positional argument by its name. The usage lists the names after the program
// and the command: "wick run MODEL".
static void report_missing(const args_spec *spec, size_t index) {
  const char *word = spec->usage;
  for (size_t i = 0; i < index + 2; i++) word += strcspn(word, " ") + 1;
  report("%.*s is missing (usage: %s)", (int)strcspn(word, " "), word, spec->usage);
}

exit_code args_parse(const args_spec *spec, int argc, char **argv,
                     const char *positionals[ARGS_POSITIONALS_MAX]) {
  const char *unexpected = NULL;
  size_t count = 0;
  bool are_options_over = false;
  for (int at = 0; at < argc; at++) {
    const char *argument = argv[at];
    const bool is_option = !are_options_over && argument[0] == '-' && argument[1] != '\0';
    if (!is_option) {
      if (count < spec->positional_count) {
        positionals[count++] = argument;
      } else if (unexpected == NULL) {
        unexpected = argument;
      }
    } else if (strcmp(argument, "--") == 0) {
      are_options_over = true;
    } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
      print_usage(spec);
      return output_end();
    } else {
      const exit_code taken = parse_option(spec, argc, argv, &at);
      if (taken != EXIT_DONE) return taken;
    }
  }
  if (unexpected != NULL) {
    report("unexpected argument '%s' (usage: %s)", unexpected, spec->usage);
    return EXIT_USAGE;
  }
  if (count == spec->positional_count) return EXIT_NOT_YET;
  report_missing(spec, count);
  return EXIT_USAGE;
}
