// cli/sampling.c — options of samplers.
#include "cli/sampling.h"

#include <string.h>

#include "base/options.h"
#include "cli/input.h"
#include "platform/platform.h"

size_t sampling_list(sampling_options *given, wick_sampling *sampling, args_option *options) {
#define NUMBER(field, option, kind, value, least, most, about) \
  {option, kind, &sampling->field, value, about, least, most, NULL},
  const args_option own[] = {
      SAMPLING_ARGUMENTS(NUMBER)  // with their ranges
      ARGUMENT_SEED(&sampling->seed),
      args_string_list("--dry-sequence-breaker", &given->breakers, "TEXT",
                       "end repetitions at TEXT (repeatable, 'none': never)"),
      args_string("--samplers", &given->names, "NAMES",
                  "apply these samplers in order, separated by ; (others are off)"),
      args_string("--sampling-seq", &given->letters, "SEQ",
                  "apply samplers in order, one letter each (default " SAMPLERS_DEFAULT ")"),
  };
#undef NUMBER
  _Static_assert(sizeof own / sizeof *own <= SAMPLING_OPTIONS_MAX, "room");
  platform_random(&sampling->seed, sizeof sampling->seed);
  memcpy(options, own, sizeof own);
  return sizeof own / sizeof *own;
}

static exit_code read_names(sampling_options *given) {
  const char *at = given->names;
  uint32_t count = 0;
  while (*at != '\0') {
    const size_t size = strcspn(at, ";");
    const char letter = sampler_letter(at, size);
    if (letter == 0 || count == WICK_SAMPLERS_MAX) {
      report(letter == 0 ? "--samplers: unknown sampler '%.*s'"
                         : "--samplers: '%.*s' exceeds the maximum number",
             (int)size, at);
      return EXIT_USAGE;
    }
    given->samplers[count++] = letter;
    at += size;
    if (*at == ';') at++;
  }
  given->samplers[count] = '\0';
  return EXIT_DONE;
}

static void finish_breakers(sampling_options *given, wick_sampling *sampling) {
  const args_strings *breakers = &given->breakers;
  if (breakers->count == 0) return;
  sampling->dry_sequence_breakers = breakers->items;
  sampling->dry_breaker_bytes = given->breaker_bytes;
  sampling->dry_breaker_count = breakers->count;
  for (uint32_t i = 0; i < breakers->count; i++) {
    given->breaker_bytes[i] = strlen(breakers->items[i]);
    if (strcmp(breakers->items[i], "none") == 0) sampling->dry_breaker_count = 0;
  }
}

exit_code sampling_finish(sampling_options *given, wick_sampling *sampling) {
  if (given->names != NULL && given->letters != NULL) {
    report("--samplers and --sampling-seq cannot be used together");
    return EXIT_USAGE;
  }
  sampling->samplers = given->letters;
  if (given->names != NULL) sampling->samplers = given->samplers;
  finish_breakers(given, sampling);
  return given->names != NULL ? read_names(given) : EXIT_DONE;
}
