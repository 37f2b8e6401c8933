// lab/workload.c — classes and arrivals.
#include "lab/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/math.h"
#include "lab/verdict.h"
#include "sample/rng.h"

enum { TOKENS_MAX = 1000000 };
static const double RATE_MIN = 0.001;

static workload_class known_class(uint32_t index) {
  workload_class known[] = {
      {"chat", 256, 128, 1},
      {"short", workload_tokens_in(WORKLOAD_SHORT_QA), workload_tokens_out(WORKLOAD_SHORT_QA), 1},
      {"long", workload_tokens_in(WORKLOAD_LONG_CONTEXT),
       workload_tokens_out(WORKLOAD_LONG_CONTEXT), 1},
  };
  return index < sizeof known / sizeof known[0] ? known[index] : (workload_class){.share = 0};
}

// Reads a number. Returns false if it has too many digits or none.
static bool read_number(const char **at, uint32_t *out) {
  char *end;
  if (**at < '0' || **at > '9') return false;
  const unsigned long value = strtoul(*at, &end, 10);
  *at = end;
  *out = value > TOKENS_MAX ? 0 : (uint32_t)value;
  return *out > 0;
}

// Reads a known name, or "IN/OUT". Moves *at past the class.
static bool read_class(const char **at, workload_class *class) {
  const size_t size = strcspn(*at, ":,");
  for (uint32_t i = 0; (*class = known_class(i)).share != 0; i++) {
    if (strlen(class->name) != size || memcmp(class->name, *at, size) != 0) continue;
    *at += size;
    return true;
  }
  *class = (workload_class){.share = 1};
  if (size >= sizeof class->name) return false;
  memcpy(class->name, *at, size);
  const char *const end = *at + size;
  if (!read_number(at, &class->tokens_in) || *(*at)++ != '/') return false;
  return read_number(at, &class->tokens_out) && *at == end;
}

static bool read_share(const char **at, double *share) {
  if (**at != ':') return true;
  const size_t size = strcspn(++*at, ",");
  if (!decimal_read_f64(*at, size, share)) return false;
  *at += size;
  return *share > 0 && *share <= (double)TOKENS_MAX;
}

exit_code workload_parse_mix(const char *text, workload_mix *mix) {
  *mix = (workload_mix){.count = 0};
  double shares = 0;
  const char *at = text;
  for (;;) {
    workload_class *class = &mix->classes[mix->count];
    if (!read_class(&at, class) || !read_share(&at, &class->share)) break;
    shares += class->share;
    mix->count++;
    if (*at == '\0') {
      for (uint32_t i = 0; i < mix->count; i++) mix->classes[i].share /= shares;
      return EXIT_DONE;
    }
    if (*at++ != ',' || mix->count == WORKLOAD_CLASSES_MAX) break;
  }
  report("--mix takes classes with shares, such as chat:0.7,short:0.2,512/128:0.1, not '%s'", text);
  return EXIT_USAGE;
}

exit_code workload_check_rate(double rate) {
  if (rate == 0 || rate >= RATE_MIN) return EXIT_DONE;
  report("--rate takes 0 or at least %g arrivals per second, not %g", RATE_MIN, rate);
  return EXIT_USAGE;
}

exit_code workload_parse_group(const char *option, const char *text, uint32_t *count,
                               workload_class *kind) {
  const char *at = text;
  bool is_good = read_number(&at, count) && *count <= WORKLOAD_REQUESTS_MAX && *at == 'x';
  if (is_good) {
    at++;
    is_good = read_class(&at, kind) && *at == '\0';
  }
  if (is_good) return EXIT_DONE;
  report("%s takes a number of requests and their lengths, such as 10x2048/512, not '%s'", option,
         text);
  return EXIT_USAGE;
}

static exit_code allocate(size_t count, workload *out) {
  *out = (workload){.items = calloc(count + 1, sizeof *out->items)};
  out->count = out->items == NULL ? 0 : count;
  if (out->items != NULL) return EXIT_DONE;
  report("out of memory for %zu requests", count);
  return EXIT_MEMORY;
}

static uint32_t draw_class(const workload_mix *mix, double at) {
  uint32_t kind = 0;
  while (kind + 1 < mix->count && at >= mix->classes[kind].share) at -= mix->classes[kind++].share;
  return kind;
}

static uint64_t moment_us(double moment_s) {
  const double us = moment_s * 1e6;
  return us < (double)WORKLOAD_ARRIVAL_US_MAX ? (uint64_t)us : WORKLOAD_ARRIVAL_US_MAX;
}

exit_code workload_draw(const workload_mix *mix, size_t count, double rate, uint64_t seed,
                        workload *out) {
  const exit_code code = allocate(count, out);
  if (code != EXIT_DONE) return code;
  rng rng;
  rng_seed(&rng, seed);
  double arrival_s = 0;
  for (size_t i = 0; i < count; i++) {
    // gaps of a Poisson process are exponential
    const double gap = -math_log(1 - rng_uniform(&rng));
    if (rate > 0) arrival_s += gap / rate;
    const uint32_t kind = draw_class(mix, rng_uniform(&rng));
    const workload_class *class = &mix->classes[kind];
    out->items[i] = (workload_item){.kind = kind,
                                    .tokens_in = class->tokens_in,
                                    .tokens_out = class->tokens_out,
                                    .arrival_us = moment_us(arrival_s)};
  }
  return EXIT_DONE;
}

exit_code workload_repeat(const workload_class *class, uint32_t kind, size_t count, double rate,
                          uint64_t seed, workload *out) {
  workload_mix mix = {.classes = {*class}, .count = 1};
  mix.classes[0].share = 1;
  const exit_code code = workload_draw(&mix, count, rate, seed, out);
  for (size_t i = 0; code == EXIT_DONE && i < count; i++) out->items[i].kind = kind;
  return code;
}

exit_code workload_merge(const workload *a, const workload *b, workload *out) {
  const exit_code code = allocate(a->count + b->count, out);
  if (code != EXIT_DONE) return code;
  size_t from_a = 0, from_b = 0;
  for (size_t i = 0; i < out->count; i++) {
    const bool takes_a =
        from_b == b->count ||
        (from_a < a->count && a->items[from_a].arrival_us <= b->items[from_b].arrival_us);
    out->items[i] = takes_a ? a->items[from_a++] : b->items[from_b++];
  }
  return EXIT_DONE;
}

void workload_free(workload *workload) {
  for (size_t i = 0; i < workload->count; i++) free(workload->items[i].gaps_ms);
  free(workload->items);
  *workload = (struct workload){.count = 0};
}

double workload_gap_ms_mean(const workload_item *item) {
  if (item->tokens < 2) return 0;
  return (double)(item->last_us - item->first_us) / 1e3 / (double)(item->tokens - 1);
}
