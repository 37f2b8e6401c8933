// How the number of proposals depends on the length of the match, on earlier results and on the
// cost of passes, and when proposing pauses and resumes.
#include "schedule/speculation.h"

#include "check.h"

enum { TEXT_MAX = 4096 };

// A text that grows token by token, with the proposals for it.
typedef struct written {
  int32_t tokens[TEXT_MAX];
  uint32_t count, proposed, accepted, passes, looked;
  float cost;  // of all passes, in units of a one-row pass
  float row;   // the cost of each row after the first
  speculation speculation;
  speculation_costs costs;
} written;

static written text;

static float pass_of(uint32_t rows) {
  const float cost = 1.0f + text.row * (float)(rows - 1);
  speculation_costs_took(&text.costs, rows, (uint64_t)(1000.0f * cost));
  return cost;
}

// Sets the cost of each row after the first, in units of a one-row pass.
static void begin(float row) {
  text = (written){.row = row};
  for (uint32_t i = 0; i < 20 * SPECULATION_ROWS_MAX; i++) pass_of(1 + i % SPECULATION_ROWS_MAX);
}

static uint32_t wanted_now(uint32_t most) {
  speculation *s = &text.speculation;
  s->found = s->count = s->accepted = s->seen = 0;
  if (!speculation_is_awake(s, SPECULATION_LOOKUP)) return 0;
  text.looked++;
  s->source = SPECULATION_LOOKUP;
  speculation_look_up(s, text.tokens, text.count, most);
  return speculation_wanted(s, &text.costs, SPECULATION_LOOKUP, s->found, 1, 0.0f);
}

// Writes the tokens with as many proposals as requested; returns the maximum in a pass.
static uint32_t write_tokens(const int32_t *tokens, uint32_t count) {
  speculation *s = &text.speculation;
  uint32_t most = 0, at = 0;
  while (at < count) {
    s->count = wanted_now(SPECULATION_TOKENS_MAX);
    if (s->count > most) most = s->count;
    text.proposed += s->count;
    text.passes++;
    text.cost += pass_of(1 + s->count);
    bool goes_on = true;
    while (goes_on && at < count) {
      const int32_t came = tokens[at++];
      text.tokens[text.count++] = came;
      goes_on = speculation_accepts(s, came);
    }
    text.accepted += s->accepted;
  }
  return most;
}

static void fill_new(int32_t *tokens, uint32_t count, int32_t first) {
  for (uint32_t i = 0; i < count; i++) tokens[i] = first + (int32_t)i;
}

TEST(longer_matches_give_more_proposals) {
  int32_t passage[200];
  fill_new(passage, 200, 1);
  begin(0.4f);
  write_tokens(passage, 200);
  CHECK_EQ_UINT(text.proposed, 0);
  const uint32_t few = write_tokens(passage, 4);
  const uint32_t more = write_tokens(passage + 4, 20);
  const uint32_t most = write_tokens(passage + 24, 176);
  CHECK(few <= 3);
  CHECK(more > few);
  CHECK_EQ_UINT(most, SPECULATION_TOKENS_MAX);
  CHECK(text.accepted > 170);
  CHECK(text.cost < 200.0f + 200.0f * 0.55f);
}

// If a row costs more than a pass, no proposal pays off, but one is tried occasionally.
TEST(proposals_depend_on_the_cost_of_passes) {
  int32_t passage[200];
  fill_new(passage, 200, 1);
  begin(1.2f);
  write_tokens(passage, 200);
  write_tokens(passage, 100);
  CHECK_EQ_UINT(text.proposed, 0);
  text.cost = 0.0f;
  for (uint32_t i = 0; i < 10; i++) write_tokens(passage, 200);
  CHECK(text.proposed > 0);
  CHECK(text.cost < 2000.0f * 1.03f);
}

// Repeats three words, each time followed by a different one.
static uint32_t fill_deceiving(int32_t *tokens, uint32_t rounds, int32_t first) {
  for (uint32_t i = 0; i < rounds; i++) {
    for (uint32_t j = 0; j < 3; j++) tokens[4 * i + j] = (int32_t)j + 1;
    tokens[4 * i + 3] = first + (int32_t)i;
  }
  return 4 * rounds;
}

TEST(wrong_proposals_cost_little_and_correct_ones_resume) {
  int32_t tokens[800];
  begin(0.3f);
  write_tokens(tokens, fill_deceiving(tokens, 200, 100));
  const uint32_t at_first = text.proposed - text.accepted;
  // for 800 tokens
  CHECK(text.cost < (float)text.count * 1.03f);
  text.proposed = text.accepted = 0;
  write_tokens(tokens, fill_deceiving(tokens, 200, 1000));
  CHECK(text.proposed - text.accepted <= at_first);
  // then the end repeats, and no pause prevents proposals
  text.cost = 0.0f;
  write_tokens(tokens + 600, 200);
  CHECK(text.cost < 200.0f * 0.7f);
}

TEST(lookups_become_rarer_if_nothing_is_found) {
  int32_t tokens[1000];
  fill_new(tokens, 1000, 1);
  begin(0.4f);
  write_tokens(tokens, 1000);
  CHECK(text.looked < 300);
  CHECK(text.looked > 100);
  text.cost = 0.0f;
  write_tokens(tokens, 100);
  CHECK(text.cost < 75.0f);
}

// ---- which tokens are proposed ----

// Two passages share more than a few tokens and then differ: a copy of the first continues like the
// first, although the second is closer.
TEST(the_longest_match_is_followed) {
  int32_t both[80];
  fill_new(both, 40, 1);
  fill_new(both + 40, 40, 1);
  both[9] = 500;
  both[49] = 600;
  both[35] = 700;
  begin(0.4f);
  write_tokens(both, 80);
  text.proposed = text.accepted = 0;
  write_tokens(both, 40);
  CHECK(text.accepted > 25);
  CHECK(text.proposed - text.accepted <= 1);
}

// Records with equal names and different values; proposals end before a value.
TEST(proposals_end_where_matches_disagree) {
  enum { NAMES = 7, RECORDS = 60 };
  int32_t tokens[(NAMES + 1) * RECORDS];
  for (uint32_t i = 0; i < RECORDS * (NAMES + 1); i++) {
    const uint32_t field = i % (NAMES + 1);
    tokens[i] = field < NAMES ? (int32_t)field + 1 : 100 + (int32_t)i;
  }
  begin(0.4f);
  write_tokens(tokens, 5 * (NAMES + 1));
  text.proposed = text.accepted = 0;
  write_tokens(tokens + 5 * (NAMES + 1), (RECORDS - 5) * (NAMES + 1));
  CHECK(text.accepted > 45 * (RECORDS - 5) / 10);
  CHECK(text.proposed - text.accepted < 20);
}

// Two matches continue in the same way and a third does not, so the third is used only for the
// first token.
TEST(a_match_that_disagreed_is_no_longer_used) {
  static const int32_t tokens[] = {1, 2, 3, 50, 51, 52, 53, 60, 1, 2, 3, 4, 5, 6,
                                   7, 8, 1, 2,  3,  4,  5,  6,  7, 9, 1, 2, 3};
  speculation s = {0};
  speculation_look_up(&s, tokens, sizeof tokens / sizeof *tokens, 4);
  REQUIRE(CHECK_EQ_UINT(s.found, 4));
  for (int32_t i = 0; i < 4; i++) CHECK_EQ_INT(s.proposed[i], 4 + i);
  // 3, 4, 5 and 6 tokens match; for the first, one of two other matches disagrees
  CHECK(s.kinds[0] != s.kinds[1]);
  CHECK_EQ_UINT(s.kinds[1], s.kinds[2]);
  speculation alone = {0};
  speculation_look_up(&alone, tokens + 8, 19, 4);  // without the third match
  CHECK(alone.kinds[0] != s.kinds[0]);
  for (uint32_t i = 1; i < 4; i++) CHECK_EQ_UINT(alone.kinds[i], s.kinds[i]);
}

// A copy in which every twelfth token differs, such as a name: proposals continue right after it.
TEST(proposals_continue_after_a_changed_token) {
  int32_t passage[360];
  fill_new(passage, 360, 1);
  begin(0.4f);
  write_tokens(passage, 360);
  for (uint32_t i = 5; i < 360; i += 12) passage[i] = 1000 + (int32_t)i;
  text.passes = 0;
  write_tokens(passage, 360);
  // Each of 30 changes costs one pass that ends with it and one up to the next change. With three
  // plain passes and two of few rows per change it would be 150.
  CHECK(text.passes < 100);
}

TEST(proposals_continue_after_a_longer_change) {
  int32_t passage[400], copy[400];
  fill_new(passage, 400, 1);
  begin(0.4f);
  write_tokens(passage, 400);
  uint32_t count = 0;
  for (uint32_t i = 0; i < 360; i++) {
    if (i % 20 == 9) copy[count++] = 1000 + (int32_t)i;  // two tokens replace one
    copy[count++] = i % 20 == 9 ? 2000 + (int32_t)i : passage[i];
  }
  text.passes = 0;
  write_tokens(copy, count);
  CHECK(text.passes < 110);  // 18 changes
}

// ---- the cost of passes ----

// Returns the number of proposals after a match of MATCH_MAX tokens.
static uint32_t wanted_when_sure(void) {
  int32_t passage[40];
  fill_new(passage, 40, 1);
  text.count = 0;
  for (uint32_t i = 0; i < 60; i++) text.tokens[text.count++] = passage[i % 40];
  text.speculation = (speculation){0};
  return wanted_now(SPECULATION_TOKENS_MAX);
}

static void pass_takes(uint32_t rows, uint64_t us, uint32_t times) {
  for (uint32_t i = 0; i < times; i++) speculation_costs_took(&text.costs, rows, us);
}

TEST(a_machine_that_becomes_slower_or_faster_does_not_reduce_proposals) {
  begin(0.5f);
  const uint32_t before = wanted_when_sure();
  CHECK(before > 3);
  pass_takes(1, 3000, 50);
  CHECK(wanted_when_sure() >= before);
  pass_takes(1, 500, 50);
  CHECK(wanted_when_sure() >= before);
}

// Passes without rows, or with more rows than proposals can cause, are ignored.
TEST(passes_with_too_few_or_too_many_rows_are_ignored) {
  speculation_costs costs = {0};
  const speculation_costs none = costs;
  speculation_costs_took(&costs, 0, 1000);
  speculation_costs_took(&costs, SPECULATION_ROWS_MAX + 1, 1000);
  CHECK_EQ_MEM(&costs, &none, sizeof costs);
  CHECK_EQ_F32(speculation_cost_us(&costs, 1), 0);
  speculation_costs_took(&costs, 1, 1000);
  CHECK_EQ_F32(speculation_cost_us(&costs, 1), 1000);
  const speculation_costs one = costs;
  speculation_costs_took(&costs, 0, 50);
  speculation_costs_took(&costs, SPECULATION_ROWS_MAX + 1, 50);
  CHECK_EQ_MEM(&costs, &one, sizeof costs);
  CHECK_EQ_F32(speculation_cost_us(&costs, SPECULATION_ROWS_MAX), 0);
  speculation_costs_took(&costs, SPECULATION_ROWS_MAX, 1000);
  CHECK(speculation_cost_us(&costs, SPECULATION_ROWS_MAX) > 0);
}

// A few slow passes of many rows do not change the cost of one row.
TEST(rarely_measured_row_counts_do_not_change_the_base_cost) {
  begin(0.5f);
  pass_takes(SPECULATION_ROWS_MAX, 20000, 4);
  CHECK(speculation_cost_us(&text.costs, 1) >= 999.0f);
  CHECK(speculation_cost_us(&text.costs, 1) <= 1001.0f);
}

// Other load on the CPU slows all passes of several rows in the same way.
TEST(the_cost_of_several_rows_predicts_other_row_counts) {
  begin(0.4f);
  const float before = speculation_cost_us(&text.costs, 12);
  pass_takes(8, 9500, 20);
  CHECK(speculation_cost_us(&text.costs, 12) > 2.0f * before);
  CHECK(speculation_cost_us(&text.costs, 1) < 1001.0f);
  CHECK_EQ_UINT(wanted_when_sure(), 0);
  pass_takes(8, 3800, 20);
  CHECK(speculation_cost_us(&text.costs, 12) < 1.1f * before);
}

TEST(proposals_are_retried_after_slow_passes) {
  begin(0.5f);
  for (uint32_t i = 0; i < 30 * SPECULATION_TOKENS_MAX; i++) {
    pass_takes(2 + i % SPECULATION_TOKENS_MAX, 40000, 1);
    pass_takes(1, 1000, 1);
  }
  CHECK_EQ_UINT(wanted_when_sure(), 0);
  uint32_t plain = 0;
  while (wanted_when_sure() == 0 && plain < 10000) {
    pass_takes(1, 1000, 1);
    plain++;
  }
  CHECK(plain > 100);
  CHECK(plain < 3000);
}

TEST(unmeasured_row_counts_are_estimated_from_measured_ones) {
  text = (written){0};
  CHECK_EQ_UINT(wanted_when_sure(), 0);  // one-row passes are measured first, as the base
  pass_takes(1, 1000, 1);
  CHECK(wanted_when_sure() > 0);
  pass_takes(4, 4500, 30);
  CHECK_EQ_UINT(wanted_when_sure(), 0);  // each row is assumed to cost the same as the first ones
  pass_takes(9, 3000, 20);
  CHECK(wanted_when_sure() > 3);
}

// A pass of several rows already costs more, so another row for one of four decoding requests gains
// less.
TEST(requests_that_decode_with_others_propose_less) {
  begin(0.4f);
  speculation *s = &text.speculation;
  const uint32_t alone = wanted_when_sure();
  const uint32_t beside = speculation_wanted(s, &text.costs, SPECULATION_LOOKUP, s->found, 4, 0.0f);
  CHECK(beside <= SPECULATION_ROWS_MAX - 4);
  CHECK(beside < alone);
}

// ---- a draft model ----

static uint32_t draft_round(uint32_t right) {
  speculation *s = &text.speculation;
  s->found = s->count = s->accepted = s->seen = 0;
  s->source = SPECULATION_DRAFT;
  if (!speculation_is_awake(s, SPECULATION_DRAFT)) return 0;
  const uint32_t count = speculation_wanted(s, &text.costs, SPECULATION_DRAFT, 7, 1, 100.0f);
  s->found = s->count = count;
  for (uint32_t i = 0; i < count; i++) {
    s->proposed[i] = 5;
    if (!speculation_accepts(s, i < right ? 5 : 6)) break;
  }
  return count;
}

TEST(a_draft_model_that_is_wrong_pauses_and_resumes) {
  begin(0.3f);
  uint32_t rounds_with = 0;
  for (uint32_t round = 0; round < 1000; round++) rounds_with += draft_round(0) != 0;
  CHECK(rounds_with < 50);
  CHECK(rounds_with > 5);
  uint32_t right = 0;
  for (uint32_t round = 0; round < 1000; round++) right += draft_round(7);
  CHECK(right > 3000);
}
