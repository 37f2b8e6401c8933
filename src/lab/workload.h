// lab/workload.h — the requests of a benchmark: classes of prompt and answer lengths, arrival
// times, and the measurements of each request.
#ifndef WICK_LAB_WORKLOAD_H
#define WICK_LAB_WORKLOAD_H

#include "cli/command.h"

enum { WORKLOAD_CLASSES_MAX = 8, WORKLOAD_NAME_BYTES = 24, WORKLOAD_REQUESTS_MAX = 10000 };

static const uint64_t WORKLOAD_ARRIVAL_US_MAX = (uint64_t)1 << 60;

typedef struct workload_class {
  char name[WORKLOAD_NAME_BYTES];
  uint32_t tokens_in, tokens_out;
  double share;  // of the requests; the shares add up to 1
} workload_class;

typedef struct workload_mix {
  workload_class classes[WORKLOAD_CLASSES_MAX];
  uint32_t count;
} workload_mix;

// One request. Times are microseconds after the start of the run; 0: not happened yet.
typedef struct workload_item {
  uint32_t kind;  // index of its class
  uint32_t tokens_in, tokens_out;
  uint64_t arrival_us;  // WORKLOAD_ARRIVAL_US_MAX or later: never
  // measured:
  uint32_t request;     // the engine's id
  uint64_t read_us;     // when the first part of its prompt was processed
  uint64_t first_us;    // when its first token arrived
  uint64_t last_us;     // when its latest token arrived
  uint64_t done_us;     // when it ended
  uint32_t tokens_fed;  // number of tokens in its pages
  uint32_t tokens;      // number of sampled tokens
  double *gaps_ms;      // [tokens - 1] gaps between tokens
  uint32_t finish;      // wick_finish; NONE: the request was not submitted or has not ended
  bool is_refused;      // the queue was full
} workload_item;

typedef struct workload {
  workload_item *items;  // in order of arrival
  size_t count;
} workload;

// Parses "chat:0.7,short:0.2,long:0.1": classes with their shares, which need not add up to 1. A
// class is a known name or a pair of lengths, "512/128" (tokens of prompt and answer). Reports
// errors.
exit_code workload_parse_mix(const char *text, workload_mix *mix);
// Checks an arrival rate per second: 0 (all at once), or at least one arrival per quarter of an
// hour. Reports errors.
exit_code workload_check_rate(double rate);
// Parses "10x2048/512": a number of requests and their class.
exit_code workload_parse_group(const char *option, const char *text, uint32_t *count,
                               workload_class *kind);

// Generates `count` requests. Classes are drawn by their shares. Arrivals are a Poisson process
// with `rate` requests per second (0: all at the start). A seed produces the same requests on every
// host. Freed by workload_free.
exit_code workload_draw(const workload_mix *mix, size_t count, double rate, uint64_t seed,
                        workload *out);
// Like workload_draw, for a single class, `kind`.
exit_code workload_repeat(const workload_class *class, uint32_t kind, size_t count, double rate,
                          uint64_t seed, workload *out);
// Merges two workloads in order of arrival, with the items of `a` first at equal times. Neither
// workload is changed.
exit_code workload_merge(const workload *a, const workload *b, workload *out);
void workload_free(workload *workload);

static inline double workload_ttft_ms(const workload_item *item) {
  return (double)(item->first_us - item->arrival_us) / 1e3;
}
static inline double workload_total_ms(const workload_item *item) {
  return (double)(item->done_us - item->arrival_us) / 1e3;
}
// Whether all requested tokens have arrived.
static inline bool workload_is_finished(const workload_item *item) {
  return item->finish == WICK_FINISH_LENGTH && item->tokens == item->tokens_out;
}
// Returns the mean of the gaps between an item's tokens; 0 if it has no gaps.
double workload_gap_ms_mean(const workload_item *item);

#endif
