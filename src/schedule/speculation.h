// schedule/speculation.h — what may follow is proposed and checked in one pass with the newest
// token (Leviathan, Kalman and Matias 2023): what followed the same words earlier in the text
// (prompt lookup, Saxena 2023), or what a smaller model says (schedule/draft.h). A row of the pass
// is sampled as if it had come alone, and the next row counts only if its token is the one that was
// sampled, so the text and the sampler's draws are those of plain decoding, greedy or not:
// proposals change the time alone.
//
// It pays where much is accepted and a row costs less beside others than alone. Both are measured
// while running. What the text itself proposes is compared with what came whether it was tried or
// not, so it costs nothing to know how far it is to be trusted: by how much of what precedes
// agrees, and by whether other places that agree go on in the same way; a record's names do, its
// values do not. A smaller model's proposals cost time to be made, so where they do not pay it
// rests, and tries again later.
#ifndef WICK_SCHEDULE_SPECULATION_H
#define WICK_SCHEDULE_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
  SPECULATION_TOKENS_MAX = 15,                        // proposed in one pass
  SPECULATION_ROWS_MAX = SPECULATION_TOKENS_MAX + 1,  // and the newest token itself
  // With more than so many decoding, a pass has enough rows without proposals.
  SPECULATION_REQUESTS_MAX = 4,
  SPECULATION_MATCH_MIN = 3,   // tokens that must have been there before
  SPECULATION_MATCH_MAX = 32,  // more of them say no more
  SPECULATION_PLACES = 3,      // the one that is followed, and others it is compared with
  // Of proposals: what precedes agrees in 3, 4 to 5, 6 to 9, 10 to 15 or more tokens; no other
  // place is known, another goes on in the same way, or another does not. Or, behind a token that
  // was changed, in 0, 1 or 2 tokens.
  SPECULATION_KINDS = 5 * 3 + SPECULATION_MATCH_MIN,
  SPECULATION_LOOK_BACK = 16384  // tokens: further back it costs more than it finds
};

typedef enum speculation_source { SPECULATION_LOOKUP, SPECULATION_DRAFT } speculation_source;

// How often proposals were right, of those seen: recent ones weigh more. Both 0: nothing is known.
typedef struct speculation_trust {
  float right, seen;
} speculation_trust;

// One request's.
typedef struct speculation {
  int32_t proposed[SPECULATION_TOKENS_MAX];
  speculation_source source;
  uint32_t found;  // in `proposed`, of which `count` are in the pass under way
  uint32_t count, accepted;
  uint32_t seen;  // of the found ones, compared with what came
  // Of the text's own proposals: where they come from, where they would go, and of which kind each
  // is.
  uint32_t place, start;
  uint8_t kinds[SPECULATION_TOKENS_MAX];
  speculation_trust by_kind[SPECULATION_KINDS];
  uint32_t changed_place, changed;  // the last that was wrong: from where, and where; 0: none
  uint32_t misses;                  // in a row: nothing was found
  float draft_rate;  // of acceptance, the recent ones weigh more; 0: nothing is known
  uint32_t lookup_rest, draft_rest;  // tokens to go plainly before the next try
  uint32_t draft_rest_next;
} speculation;

// What passes of 1, 2, ... rows take: a line, and how each differs from it. A scheduler's.
typedef struct speculation_costs {
  float one_us;  // a pass of one row; 0: not measured
  float row;     // what each further one adds, in passes of one
  // A pass of so many, in what the line says; 0: not measured.
  float unlike[SPECULATION_ROWS_MAX + 1];
  float doubt;   // 0 to 1: further ones may have become so much cheaper since one was measured
  uint8_t seen;  // passes of several, as far as it matters
} speculation_costs;

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us);
// Of a pass of so many rows, in us; 0: not measured.
float speculation_cost_us(const speculation_costs *costs, uint32_t rows);
// Before each pass: whether the source is not resting. Counts the rest.
bool speculation_is_awake(speculation *speculation, speculation_source source);
// What followed the last SPECULATION_MATCH_MIN or more tokens earlier in the text, where the most
// of what precedes agrees, and there the latest; or what stands behind a token that was just
// changed: up to `most` tokens into `proposed` (`found`, `kinds`). Where there is nothing time and
// again, it is looked for less often.
void speculation_look_up(speculation *speculation, const int32_t *tokens, uint32_t count,
                         uint32_t most);
// How many proposals of a source, of at most `most`, yield the most for the time of a pass that has
// `rows` without them; each takes `proposal_us` to make. 0: none would pay; a smaller model goes to
// rest then. Where the text is sure, what speaks against more is doubted a little each time.
uint32_t speculation_wanted(speculation *speculation, speculation_costs *costs,
                            speculation_source source, uint32_t most, uint32_t rows,
                            float proposal_us);
// A token has come. True when it is the next of those in the pass.
bool speculation_accepts(speculation *speculation, int32_t token);

#endif
