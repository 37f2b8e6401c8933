// cli/sampling.c — options of samplers.
#include "cli/sampling.h"

#include <string.h>

#include "cli/input.h"
#include "platform/platform.h"

enum { COUNT_MAX = 1000000000, REPEAT_LAST_DEFAULT = 64 };

// llama.cpp's names, and wick_sampling's letters.
static const struct {
  const char *name;
  char letter;
} SAMPLERS[] = {
    {"penalties", 'e'},   {"dry", 'd'},        {"top_n_sigma", 's'}, {"top_k", 'k'},
    {"typ_p", 'y'},       {"top_p", 'p'},      {"min_p", 'm'},       {"xtc", 'x'},
    {"temperature", 't'}, {"adaptive_p", 'a'},
};

static size_t list_usual(wick_sampling *c, args_option *options) {
  const args_option own[] = {
      args_f32("--temp", &c->temperature, "T", 0, 100, "set the temperature (default 0: greedy)"),
      args_u32("--top-k", &c->top_k, "K", 0, COUNT_MAX,
               "sample from the K most likely tokens (default 0: all)"),
      args_f32("--top-p", &c->top_p, "P", 0, 1,
               "sample from the most likely tokens that add up to P (default 1: all)"),
      args_f32("--min-p", &c->min_p, "P", 0, 1,
               "keep tokens at least P times as likely as the best (default 0: all)"),
      args_f32("--repeat-penalty", &c->repeat_penalty, "R", 0, 100,
               "penalize repeated tokens (default 1: off)"),
      args_f32("--frequency-penalty", &c->frequency_penalty, "F", -100, 100,
               "penalize tokens by frequency (default 0: off)"),
      args_f32("--presence-penalty", &c->presence_penalty, "F", -100, 100,
               "penalize tokens that occurred (default 0: off)"),
      args_u64("--seed", &c->seed, "S", "seed the random choice (default: new in each run)"),
  };
  memcpy(options, own, sizeof own);
  return sizeof own / sizeof own[0];
}

static size_t list_others(sampling_options *given, wick_sampling *c, args_option *options) {
  const args_option own[] = {
      args_i32("--repeat-last-n", &given->repeat_last, "N", -1, WICK_PENALTY_LAST_MAX,
               "apply penalties to the last N tokens (default 64, 0: none, -1: the context)"),
      args_f32("--typical", &c->typical_p, "P", 0, 1,
               "use locally typical sampling (default 1: off)"),
      args_f32("--top-nsigma", &c->top_n_sigma, "N", -1, 1000,
               "keep logits at most N standard deviations below the best (default -1: off)"),
      args_f32("--xtc-probability", &c->xtc_probability, "P", 0, 1,
               "set the probability of keeping only the least of the top choices (default 0: off)"),
      args_f32("--xtc-threshold", &c->xtc_threshold, "P", 0, 1,
               "set the least probability of a top choice (default 0.1, over 0.5: off)"),
      args_f32("--dynatemp-range", &c->dynatemp_range, "R", 0, 100,
               "vary the temperature from T-R to T+R by the entropy (default 0: off)"),
      args_f32("--dynatemp-exp", &c->dynatemp_exponent, "E", 0, 100,
               "set the exponent of the entropy (default 1)"),
      args_f32("--dry-multiplier", &c->dry_multiplier, "M", 0, 1000,
               "set DRY's penalty of repetitions (default 0: off)"),
      args_f32("--dry-base", &c->dry_base, "B", 1, 1000,
               "set the penalty's growth per token (default 1.75)"),
      args_u32("--dry-allowed-length", &c->dry_allowed_length, "N", 0, COUNT_MAX,
               "allow repetitions of N tokens (default 2)"),
      args_i32("--dry-penalty-last-n", &given->dry_last, "N", -1, WICK_PENALTY_LAST_MAX,
               "apply DRY to the last N tokens (default -1: the context, 0: off)"),
      args_string_list("--dry-sequence-breaker", &given->breakers, "TEXT",
                       "end repetitions at TEXT (repeatable, 'none': never)"),
      args_u32("--mirostat", &c->mirostat, "N", 0, 2, "use Mirostat 1 or 2 (default 0: off)"),
      args_f32("--mirostat-ent", &c->mirostat_tau, "T", 0, 100,
               "set Mirostat's surprise in bits (default 5)"),
      args_f32("--mirostat-lr", &c->mirostat_eta, "E", 0, 100,
               "set Mirostat's learning rate (default 0.1)"),
      args_f32("--adaptive-target", &c->adaptive_target, "P", -1, 1,
               "prefer tokens of about this probability (adaptive-p; default: below 0, off)"),
      args_f32("--adaptive-decay", &c->adaptive_decay, "D", 0, 0.99,
               "set the decay of adaptive-p's memory (default 0.9)"),
      args_string("--samplers", &given->names, "NAMES",
                  "apply these samplers in order, separated by ; (others are off)"),
      args_string("--sampling-seq", &given->letters, "SEQ",
                  "apply samplers by letters (default edskypmxta)"),
  };
  memcpy(options, own, sizeof own);
  return sizeof own / sizeof own[0];
}

size_t sampling_list(sampling_options *given, wick_sampling *sampling, args_option *options) {
  given->repeat_last = REPEAT_LAST_DEFAULT;
  given->dry_last = -1;
  platform_random(&sampling->seed, sizeof sampling->seed);
  const size_t usual = list_usual(sampling, options);
  return usual + list_others(given, sampling, options + usual);
}

// The letter of the first `size` bytes of `name`; 0: there is none.
static char find_letter(const char *name, size_t size) {
  for (size_t i = 0; i < sizeof SAMPLERS / sizeof *SAMPLERS; i++) {
    if (strlen(SAMPLERS[i].name) == size && memcmp(SAMPLERS[i].name, name, size) == 0) {
      return SAMPLERS[i].letter;
    }
  }
  return 0;
}

static exit_code read_names(sampling_options *given) {
  const char *at = given->names;
  uint32_t count = 0;
  while (*at != '\0') {
    const size_t size = strcspn(at, ";");
    const char letter = find_letter(at, size);
    if (letter == 0 || count == WICK_SAMPLERS_MAX) {
      report(letter == 0 ? "--samplers: there is no sampler '%.*s'"
                         : "--samplers: '%.*s' is one too many",
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
  sampling->penalty_last = (uint32_t)given->repeat_last;  // -1 is WICK_LAST_CONTEXT
  sampling->dry_penalty_last = (uint32_t)given->dry_last;
  if (given->repeat_last == 0) {
    sampling->repeat_penalty = 1;
    sampling->frequency_penalty = sampling->presence_penalty = 0;
  }
  finish_breakers(given, sampling);
  return given->names != NULL ? read_names(given) : EXIT_DONE;
}
