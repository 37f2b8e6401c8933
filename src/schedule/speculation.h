// schedule/speculation.h — speculative decoding: proposed tokens are checked in one pass with the
// newest token (Leviathan, Kalman and Matias 2023). Proposals come from the text (prompt lookup,
// Saxena 2023: what followed the same tokens earlier) or from a smaller model (schedule/draft.h).
// Each row is sampled as if it were alone. The next row is used only if its token is the sampled
// one. So the output and the random draws are identical to plain decoding, greedy or not; proposals
// change only the time.
//
// Speculation pays off if many proposals are accepted and a row costs less in a larger pass than
// alone. Both are measured while requests run. A proposal from the text is compared with the
// sampled token even if it was not in the pass, so measuring the reliability of proposals costs no
// time. The reliability of a proposal depends on how many tokens before it agree, and on whether
// other positions with the same tokens continue in the same way. Example: in a list of records, the
// names are proposed and the values are not. Proposals of a smaller model cost time. If they do not
// pay off, the model rests and is tried again later.
#ifndef WICK_SCHEDULE_SPECULATION_H
#define WICK_SCHEDULE_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
  SPECULATION_TOKENS_MAX = 15,                        // proposals per pass
  SPECULATION_ROWS_MAX = SPECULATION_TOKENS_MAX + 1,  // the proposals and the newest token
  // If more requests than this decode, a pass has enough rows without proposals.
  SPECULATION_REQUESTS_MAX = 4,
  SPECULATION_MATCH_MIN = 3,   // minimum number of tokens that must agree with an earlier position
  SPECULATION_MATCH_MAX = 32,  // more agreeing tokens are not counted
  SPECULATION_PLACES =
      3,  // the position whose continuation is proposed, and others to compare it with
  // Kinds of proposals: 3, 4 to 5, 6 to 9, 10 to 15 or more tokens before it agree; for each of
  // these, no other position is known, another position continues in the same way, or another
  // position does not. After a token that was changed: 0, 1 or 2 tokens agree.
  SPECULATION_KINDS = 5 * 3 + SPECULATION_MATCH_MIN,
  SPECULATION_LOOK_BACK = 16384  // tokens; searching further back costs more than it finds
};

typedef enum speculation_source { SPECULATION_LOOKUP, SPECULATION_DRAFT } speculation_source;

// The numbers of correct and of compared proposals; recent ones have more weight. Both are 0 if no
// proposal has been compared.
typedef struct speculation_trust {
  float right, seen;
} speculation_trust;

// Speculation of one request.
typedef struct speculation {
  int32_t proposed[SPECULATION_TOKENS_MAX];
  speculation_source source;
  uint32_t found;  // tokens in `proposed`; the first `count` are in the current pass
  uint32_t count, accepted;
  uint32_t seen;  // number of proposals that have been compared with sampled tokens
  // For proposals from the text: the position of each, the positions that would follow, and their
  // kinds.
  uint32_t place, start;
  uint8_t kinds[SPECULATION_TOKENS_MAX];
  speculation_trust by_kind[SPECULATION_KINDS];
  uint32_t changed_place, changed;  // the last wrong proposal: its source position, and its
                                    // position in the text; 0: none
  uint32_t misses;                  // consecutive lookups without a result
  float draft_rate;  // acceptance rate; recent proposals have more weight; 0: unknown
  uint32_t lookup_rest, draft_rest;  // tokens to decode without proposals before the next attempt
  uint32_t draft_rest_next;
} speculation;

// The times of passes of 1, 2, ... rows: a linear model, and the deviation from it for each number
// of rows. Each scheduler has one.
typedef struct speculation_costs {
  float one_us;  // time of a pass of one row; 0: not measured
  float row;     // cost of each additional row, as a share of one_us
  // For each number of rows: measured time / time by the linear model; 0: not measured.
  float unlike[SPECULATION_ROWS_MAX + 1];
  float doubt;   // 0 to 1: rows may have become this much cheaper since they were measured
  uint8_t seen;  // number of measured passes of several rows, up to a limit
} speculation_costs;

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us);
// Returns the expected time of a pass of this many rows, in us; 0: not measured.
float speculation_cost_us(const speculation_costs *costs, uint32_t rows);
// Whether the source is not resting. Must be called once before each pass, because it counts down
// the rest.
bool speculation_is_awake(speculation *speculation, speculation_source source);
// Prompt lookup: writes up to `most` tokens to `proposed` (with `found` and `kinds`). It follows
// the position where the most tokens agree with the end of the text (at least
// SPECULATION_MATCH_MIN), and if several are equal, the latest one. After a token that was just
// changed, it continues at the same position. After repeated misses it searches less often.
void speculation_look_up(speculation *speculation, const int32_t *tokens, uint32_t count,
                         uint32_t most);
// Returns the number of proposals from a source, at most `most`, that maximises tokens per unit of
// time if the pass has `rows` rows without them and a proposal takes `proposal_us`. 0: proposals
// would not pay off, and a smaller model then rests. If the text is predictable, the measured costs
// of more proposals are lowered a little each time.
uint32_t speculation_wanted(speculation *speculation, speculation_costs *costs,
                            speculation_source source, uint32_t most, uint32_t rows,
                            float proposal_us);
// Records that a token was sampled. Returns true if it is the next proposal in the pass.
bool speculation_accepts(speculation *speculation, int32_t token);

#endif
