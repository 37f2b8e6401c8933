// Engines that cannot be used as drafts, with the exact text of each reason. Accepted drafts
// propose tokens.
#include "fixture_model.h"
#include "model_builder.h"

enum { CONTEXT = 64, CHANGED = 77 };

typedef struct built_engine {
  built_vocabulary vocabulary;
  bool is_encoder, changes_token;
} built_engine;

static wick_engine *open_built(built_engine how) {
  const built_choice choice = {how.vocabulary, BUILT_LLAMA, GGML_TYPE_F32, 2, CONTEXT};
  const uint8_t no = 0;
  static model_builder model;
  wick_error error = {0};
  wick_engine *engine = NULL;
  builder_init(&model, &choice);
  if (how.is_encoder) {
    value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &no, 1);
  }
  if (how.changes_token) {
    value_set_item(builder_find(&model, "tokenizer.ggml.tokens"), CHANGED, "another", 7);
  }
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = CONTEXT;
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) return NULL;
  CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  free(file.bytes);
  return engine;
}

static void check_refused(wick_engine *engine, wick_engine *draft, wick_status wanted,
                          const char *message) {
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_set_draft(engine, draft, &error), wanted);
  CHECK_EQ_INT(error.status, wanted);
  CHECK_EQ_STR(error.message, message);
}

static void ignore_event(void *context, const wick_event *event, const uint8_t *after) {
  (void)context, (void)event, (void)after;
}

TEST(unsuitable_drafts_are_rejected_with_a_reason) {
  static const char
      ENCODER[] = "an encoder cannot have a draft model or be one",
      BUSY[] = "the model already has a draft model, or requests are running on the draft model";
  wick_engine *model = open_built((built_engine){.vocabulary = BUILT_SPM});
  wick_engine *draft = open_built((built_engine){.vocabulary = BUILT_SPM});
  wick_engine *third = open_built((built_engine){.vocabulary = BUILT_SPM});
  wick_engine *encoder = open_built((built_engine){BUILT_SPM, .is_encoder = true});
  wick_engine *other = open_built((built_engine){BUILT_SPM, .changes_token = true});
  wick_engine *larger = open_built((built_engine){.vocabulary = BUILT_BPE});
  check_refused(model, encoder, WICK_E_UNSUPPORTED, ENCODER);
  check_refused(encoder, draft, WICK_E_UNSUPPORTED, ENCODER);
  check_refused(encoder, encoder, WICK_E_UNSUPPORTED, ENCODER);
  check_refused(model, model, WICK_E_ARG, "a model cannot be its own draft");
  check_refused(model, other, WICK_E_MISMATCH,
                "token 77 of the draft model differs from the model's");
  check_refused(model, larger, WICK_E_MISMATCH,
                "the draft model has 267 tokens; the model has 274");
  check_refused(larger, model, WICK_E_MISMATCH,
                "the draft model has 274 tokens; the model has 267");
  const int32_t prompt[] = {1, 20, 30};
  const wick_request request = fixture_request(prompt, 3, 3);
  uint32_t id;
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(third, &request, &id, &error), WICK_OK);
  check_refused(model, third, WICK_E_BUSY, BUSY);
  CHECK_EQ_INT(wick_request_cancel(third, id), WICK_OK);
  // rejections changed nothing: a valid draft is accepted now, but only once
  CHECK_EQ_INT(wick_engine_set_draft(model, draft, &error), WICK_OK);
  check_refused(model, other, WICK_E_BUSY, BUSY);
  check_refused(other, draft, WICK_E_BUSY, BUSY);
  check_refused(other, model, WICK_E_BUSY, BUSY);
  wick_engine *const all[] = {model, draft, third, encoder, other, larger};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wick_engine_destroy(all[i]);
}

// If nothing in the prompt repeats, the draft makes the proposals; it has the same weights here.
TEST(a_draft_makes_proposals_for_requests_of_its_engine) {
  enum { WANTED = 4 };  // three equal tokens would count as repeated text
  const int32_t prompt[] = {1, 20, 30};
  wick_engine *engine = open_built((built_engine){.vocabulary = BUILT_SPM});
  wick_engine *draft = open_built((built_engine){.vocabulary = BUILT_SPM});
  wick_request request = fixture_request(prompt, 3, WANTED);
  request.sampling.temperature = 0;
  request.always_speculates = true;
  wick_stats stats;
  wick_error error = {0};
  uint32_t id;
  REQUIRE(CHECK_EQ_INT(wick_engine_set_draft(engine, draft, &error), WICK_OK));
  REQUIRE(CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK));
  fixture_run(engine, ignore_event, NULL);
  wick_stats_get(engine, &stats);
  CHECK_EQ_UINT(stats.tokens_out, WANTED);
  CHECK_EQ_UINT(stats.draft_failed, 0);
  CHECK(stats.tokens_accepted > 0);
  CHECK_EQ_UINT(stats.tokens_accepted, stats.tokens_proposed);
  wick_engine_destroy(engine);
  wick_engine_destroy(draft);
}
