// Requests with a reasoning limit: where the end tag is inserted, that the output is the same with
// other requests, and that decoding allocates nothing.
#include <stdio.h>

#include "fixture_model.h"
#include "swap_keeper.h"

enum { OUT_TOKENS = 80, TEXT_BYTES_MAX = 640, RUNS = 8 };

#include "said.h"

static wick_request request_of(const wick_reasoning *reasoning) {
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = "What is it? ";
  wanted.text_bytes = 12;
  wanted.max_tokens = OUT_TOKENS;
  wanted.reasoning = reasoning;
  wanted.no_speculation = true;
  wanted.ignore_end = true;
  return wanted;
}

static wick_reasoning limit_of(uint32_t tokens, const char *ending) {
  return (wick_reasoning){.tokens_max = tokens, .ending = ending, .ending_bytes = strlen(ending)};
}

// ---- where reasoning ends ----

// Returns the reply of a model that generates these bytes, one token each, until the limit applies.
static said say(const char *bytes, const wick_reasoning *reasoning, bool logprob) {
  wick_engine *engine = open_engine(0, NULL);
  int32_t forced[OUT_TOKENS];
  wick_request wanted = request_of(reasoning);
  wanted.forced = forced;
  wanted.forced_count = strlen(bytes);
  wanted.max_tokens = (uint32_t)wanted.forced_count;
  wanted.sampling.logprob = logprob;
  for (size_t i = 0; i < wanted.forced_count; i++) forced[i] = (uint8_t)bytes[i];
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  fixture_run(engine, take_event, together);
  wick_engine_destroy(engine);
  CHECK(together[0].has_ended);
  return together[0];
}

// The end tag has six tokens in this vocabulary, which replace the model's own tokens.
TEST(reasoning_ends_at_its_limit) {
  static const struct {
    uint32_t tokens;
    const char *ending, *bytes, *text;
  } CASES[] = {
      {0, "<think>\n", "abcdefghijkl", "</think>ghijkl"},
      {1, "<think>\n", "abcdefghijkl", "a</think>hijkl"},
      {5, "<think>\n", "abcdefghijkl", "abcde</think>l"},
      {50, "<think>\n", "abcdefghijkl", "abcdefghijkl"},
      // the reply opens the reasoning
      {3, "", "<think>abcdefghijkl", "<think>abc</think>jkl"},
      {3, "assistant\n", " \n<think>abcdefghijkl", " \n<think>abc</think>jkl"},
      {0, "", "<think>abcdefghijkl", "<think></think>ghijkl"},
      // the model ends the reasoning; the start of its end tag counts
      {10, "<think>", "ab</think> cdefghijkl", "ab</think> cdefghijkl"},
      {8, "<think>", "ab</think> cdefghijkl", "ab</thin</think>fghijkl"},
      // the reasoning begins again
      {12, "<think>", "ab</think> <think>cdefghijklmno", "ab</think> <think>cde</think>lmno"},
      // other text is not limited
      {2, "", "ab <think>cdefghijkl", "ab <think>cdefghijkl"},
      {2, "<think></think>", "abcdefghijkl", "abcdefghijkl"},
      // half an end tag before the limit
      {3, "<think>", "a</bcdefghijklm", "a</</think>hijklm"},
      // a character is completed first
      {2, "<think>", "a\xc3\xa9xcdefghijkl", "a\xc3\xa9</think>hijkl"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    const wick_reasoning reasoning = limit_of(CASES[i].tokens, CASES[i].ending);
    for (int logprob = 0; logprob < 2; logprob++) {
      const said reply = say(CASES[i].bytes, &reasoning, logprob == 1);
      CHECK_EQ_UINT(reply.count, strlen(CASES[i].bytes));
      CHECK_EQ_STR(reply.text, CASES[i].text);
    }
  }
}

// ---- next to other requests ----

// No two prompts share a prefix, and the limits start at 0.
static wick_request request_at(uint32_t which, const wick_reasoning *reasoning) {
  static const char PROMPT[] = "abababab, what is it? abababab, what is it? <think>";
  wick_request wanted = request_of(reasoning);
  wanted.text = PROMPT + which;
  wanted.text_bytes = sizeof PROMPT - 1 - which;
  wanted.sampling.seed = which;
  wanted.sampling.logprob = which % 2 == 0;
  wanted.sampling.temperature = which % 3 == 2 ? 0 : 1.5f;
  return wanted;
}

static wick_reasoning limit_at(uint32_t which) { return limit_of(which * 5, "<think>"); }

// Returns the number of tokens before the end tag.
static uint32_t tokens_before_mark(const said *of) {
  static const int32_t MARK[] = {'<', '/', 258, 260, 'k', '>'};
  uint32_t at = 0;
  while (at + 6 < of->count && memcmp(of->tokens + at, MARK, sizeof MARK) != 0) at++;
  return at;
}

static void run_alone(void) {
  for (uint32_t i = 0; i < RUNS; i++) {
    wick_engine *engine = open_engine(0, NULL);
    const wick_reasoning reasoning = limit_at(i);
    const wick_request wanted = request_at(i, &reasoning);
    for (uint32_t j = 0; j < RUNS; j++) alone[j].id = UINT32_MAX;
    submit(engine, &wanted, &alone[i]);
    fixture_run(engine, take_event, alone);
    wick_engine_destroy(engine);
    CHECK(alone[i].has_ended);
    // a character may be completed, which takes at most three more tokens
    const uint32_t tokens = tokens_before_mark(&alone[i]);
    CHECK(tokens >= i * 5 && tokens <= i * 5 + 3);
  }
}

static wick_stats run_together(uint32_t kv_tokens, const wick_swap_host *swap, bool proposes) {
  wick_engine *engine = open_engine(kv_tokens, swap);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_reasoning reasoning = limit_at(i);
    wick_request wanted = request_at(i, &reasoning);
    wanted.always_speculates = proposes;
    wanted.no_speculation = !proposes;
    submit(engine, &wanted, &together[i]);
  }
  fixture_run(engine, take_event, together);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  wick_engine_destroy(engine);
  for (uint32_t i = 0; i < RUNS; i++) check_same(&together[i], &alone[i]);
  return stats;
}

TEST(output_is_the_same_with_any_other_requests) {
  run_alone();
  CHECK_EQ_UINT(run_together(8192, NULL, false).preempted, 0);
  CHECK(run_together(224, NULL, false).preempted > 0);
  CHECK(run_together(224, &KEEPER, false).swapped_in > 0);
  const wick_stats stats = run_together(0, NULL, true);
  CHECK(stats.tokens_proposed > 0 && stats.tokens_accepted > 0);
}

TEST(each_completion_has_its_own_limit) {
  for (uint32_t limit = 0; limit < 8; limit += 7) {
    wick_engine *engine = open_engine(0, NULL);
    const wick_reasoning reasoning = limit_of(limit, "<think>");
    wick_request wanted = request_at(1, &reasoning);
    wanted.completions = 3;
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[0]);
    for (uint32_t i = 1; i < 3; i++) {
      together[i].id = together[0].id + i;
      together[i].engine = engine;
    }
    fixture_run(engine, take_event, together);
    wick_engine_destroy(engine);
    for (uint32_t i = 0; i < 3; i++) {
      engine = open_engine(0, NULL);
      wanted.completions = 1;
      wanted.sampling.seed = 1 + i;
      memset(alone, 0, sizeof alone);
      submit(engine, &wanted, &alone[0]);
      fixture_run(engine, take_event, alone);
      wick_engine_destroy(engine);
      CHECK(strstr(together[i].text, "</think>") != NULL);
      check_same(&together[i], &alone[0]);
    }
  }
}

// A session's pages contain the end tag like sampled tokens: the following output is the same
// whether the session continues or is forked.
TEST(a_session_contains_the_end_tag) {
  wick_engine *engine = open_engine(0, NULL);
  wick_error error = {0};
  uint32_t session, child, count;
  const int32_t *tokens;
  const wick_reasoning reasoning = limit_of(3, "<think>");
  REQUIRE(wick_session_create(engine, &session, &error) == WICK_OK);
  wick_request wanted = request_at(1, &reasoning);
  wanted.session = session;
  wanted.max_tokens = 20;
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  fixture_run(engine, take_event, together);
  REQUIRE(wick_session_fork(engine, session, &child, &error) == WICK_OK);
  REQUIRE(wick_session_tokens(engine, session, &tokens, &count, &error) == WICK_OK);
  CHECK(count > 20);
  CHECK_EQ_MEM(tokens + count - 20, together[0].tokens, 20 * sizeof *tokens);
  for (uint32_t i = 0; i < 2; i++) {
    wick_request next = request_of(&reasoning);
    next.session = i == 0 ? session : child;
    memset(&together[i], 0, sizeof together[i]);
    submit(engine, &next, &together[i]);
    fixture_run(engine, take_event, together);
  }
  CHECK(strstr(together[0].text, "</think>") != NULL);
  check_same(&together[1], &together[0]);
  wick_engine_destroy(engine);
}

// ---- grammars, memory, errors ----

static said run_with(const wick_grammar *grammar, const wick_reasoning *reasoning) {
  wick_engine *engine = open_engine(0, NULL);
  wick_request wanted = request_at(1, reasoning);
  wanted.ignore_end = false;
  wanted.grammar = grammar;
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  fixture_run(engine, take_event, together);
  wick_engine_destroy(engine);
  return together[0];
}

static wick_grammar regex(const char *text) {
  return (wick_grammar){.kind = WICK_GRAMMAR_REGEX, .text = text, .text_bytes = strlen(text)};
}

// The end tag is subject to the grammar like other text, and is omitted where it is not allowed.
TEST(a_grammar_still_applies_after_the_end_tag) {
  const wick_reasoning reasoning = limit_of(4, "<think>");
  const wick_grammar open = regex("[a-z]+</think>[0-9]{6}");
  said reply = run_with(&open, &reasoning);
  CHECK_EQ_UINT(reply.finish, WICK_FINISH_STOP);
  const char *mark = strstr(reply.text, "</think>");
  REQUIRE(mark != NULL);
  CHECK_EQ_UINT(strlen(mark), 8 + 6);
  CHECK(mark >= reply.text + 1 && mark <= reply.text + 8);  // tokens of up to two letters
  const wick_grammar closed = regex("[a-z]{30}");
  reply = run_with(&closed, &reasoning);
  CHECK_EQ_UINT(reply.text_bytes, 30);
}

// The opening tag of the reasoning may be forced text.
TEST(a_limit_applies_after_forced_text) {
  const wick_reasoning reasoning = limit_of(0, "");
  const wick_grammar grammar = regex("<think>[a-z]*</think>[0-9]{4}");
  wick_engine *engine = open_engine(0, NULL);
  for (int logprob = 0; logprob < 2; logprob++) {
    wick_request wanted = request_at(1, &reasoning);
    wanted.grammar = &grammar;
    wanted.sampling.logprob = logprob == 1;
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[0]);
    fixture_run(engine, take_event, together);
    together[0].text[15] = '\0';
    CHECK_EQ_STR(together[0].text, "<think></think>");
  }
  wick_engine_destroy(engine);
}

TEST(a_limit_allocates_nothing_while_decoding) {
  const wick_reasoning reasoning = limit_of(20, "<think>");
  const said reply = run_with(NULL, &reasoning);
  CHECK(reply.count > 26);
  CHECK_EQ_UINT(reply.calls_first, reply.calls_last);
}

// With a byte vocabulary, the header of a message has more tokens than one jump can append.
TEST(an_end_tag_with_too_many_tokens_is_rejected) {
  static const char HARMONY[] = "<|start|>assistant<|channel|>analysis<|message|>";
  wick_engine *engine = open_engine(0, NULL);
  wick_error error = {0};
  wick_memory_state before, after;
  const wick_reasoning reasoning = limit_of(4, "<|start|>assistant");
  const wick_request wanted = request_of(&reasoning);
  uint32_t id;
  REQUIRE(wick_chat_set_template(engine, HARMONY, sizeof HARMONY - 1, &error) == WICK_OK);
  wick_memory_get_state(engine, &before);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), WICK_E_UNSUPPORTED);
  CHECK(strstr(error.message, "<|end|>") != NULL);
  wick_memory_get_state(engine, &after);
  CHECK_EQ_UINT(after.blocks_now, before.blocks_now);
  wick_engine_destroy(engine);
}
