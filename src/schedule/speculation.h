// schedule/speculation.h — what may follow is proposed and checked in one pass with the newest
// token (Leviathan, Kalman and Matias 2023); here the proposals are what followed the same words
// earlier in the text (prompt lookup, Saxena 2023). A row of the pass is sampled as if it had come
// alone, and the next row counts only if its token is the one that was sampled, so the text and the
// sampler's draws are those of plain decoding, greedy or not: proposals change the time alone.
//
// It pays where much is accepted and a pass of a few rows costs little more than one of one row.
// Both are measured while running; where it does not pay it rests, and tries again later.
#ifndef WICK_SCHEDULE_SPECULATION_H
#define WICK_SCHEDULE_SPECULATION_H

#include <stdint.h>

enum {
  SPECULATION_TOKENS_MAX = 7,                         // proposed in one pass
  SPECULATION_ROWS_MAX = SPECULATION_TOKENS_MAX + 1,  // and the newest token itself
  SPECULATION_MATCH_MIN = 3,                          // tokens that must have been there before
  SPECULATION_MATCH_MAX = 16                          // more of them say no more
};

// One request's.
typedef struct speculation {
  int32_t proposed[SPECULATION_TOKENS_MAX];
  uint32_t count, accepted;  // of the pass under way
  float rate;                // of acceptance, the recent ones weigh more; 0: nothing is known
  uint32_t rest_tokens;      // to go plainly before the next proposal
  uint32_t rest_tokens_next;
} speculation;

// What passes of 1, 2, ... rows took lately, in us; 0: not measured. A scheduler's.
typedef struct speculation_costs {
  float us[SPECULATION_ROWS_MAX + 1];
} speculation_costs;

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us);
// Fills `proposed` and `count` for the next pass of a text of `count` tokens: at most `most`, none
// where that would not pay.
void speculation_propose(speculation *speculation, const speculation_costs *costs,
                         const int32_t *tokens, uint32_t count, uint32_t most);
// The pass has been: learns from `accepted` of `count`.
void speculation_learn(speculation *speculation);
// What followed the last SPECULATION_MATCH_MIN or more tokens earlier in the text, where the most
// of what precedes agrees, and there the latest: up to `most` tokens into `out`. Returns how many.
uint32_t speculation_look_up(const int32_t *tokens, uint32_t count, uint32_t most, int32_t *out);

#endif
