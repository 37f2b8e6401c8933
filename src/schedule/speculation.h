// schedule/speculation.h — what may follow is proposed and checked in one pass with the newest
// token (Leviathan, Kalman and Matias 2023): what followed the same words earlier in the text
// (prompt lookup, Saxena 2023), or what a smaller model says (schedule/draft.h). A row of the pass
// is sampled as if it had come alone, and the next row counts only if its token is the one that was
// sampled, so the text and the sampler's draws are those of plain decoding, greedy or not:
// proposals change the time alone.
//
// It pays where much is accepted and a pass of a few rows costs little more than one of one row.
// Both are measured while running; where it does not pay it rests, and tries again later.
#ifndef WICK_SCHEDULE_SPECULATION_H
#define WICK_SCHEDULE_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
  SPECULATION_TOKENS_MAX = 7,                         // proposed in one pass
  SPECULATION_ROWS_MAX = SPECULATION_TOKENS_MAX + 1,  // and the newest token itself
  SPECULATION_MATCH_MIN = 3,                          // tokens that must have been there before
  SPECULATION_MATCH_MAX = 16,                         // more of them say no more
  SPECULATION_LOOK_BACK = 16384  // tokens: further back it costs more than it finds
};

typedef enum speculation_source {
  SPECULATION_LOOKUP,
  SPECULATION_DRAFT,
  SPECULATION_SOURCES
} speculation_source;

// How far one request's proposals of one source are to be trusted.
typedef struct speculation_trust {
  float rate;            // of acceptance, the recent ones weigh more; 0: nothing is known
  uint32_t rest_tokens;  // to go plainly before the next proposal
  uint32_t rest_tokens_next;
} speculation_trust;

// One request's.
typedef struct speculation {
  int32_t proposed[SPECULATION_TOKENS_MAX];
  uint32_t count, accepted;  // of the pass under way
  speculation_source source;
  speculation_trust trust[SPECULATION_SOURCES];
} speculation;

// What passes of 1, 2, ... rows took lately, in us; 0: not measured. A scheduler's.
typedef struct speculation_costs {
  float us[SPECULATION_ROWS_MAX + 1];
} speculation_costs;

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us);
// Before each pass: whether the source is not resting. Counts the rest.
bool speculation_is_awake(speculation *speculation, speculation_source source);
// How many proposals, of at most `most`, yield the most for the time; each takes `proposal_us` to
// make. 0: none would pay, and the source goes to rest.
uint32_t speculation_wanted(speculation *speculation, const speculation_costs *costs,
                            speculation_source source, uint32_t most, float proposal_us);
// The pass has been: learns from `accepted` of `count`.
void speculation_learn(speculation *speculation);
// What followed the last SPECULATION_MATCH_MIN or more tokens earlier in the text, where the most
// of what precedes agrees, and there the latest: up to `most` tokens into `out`. Returns how many.
uint32_t speculation_look_up(const int32_t *tokens, uint32_t count, uint32_t most, int32_t *out);

#endif
