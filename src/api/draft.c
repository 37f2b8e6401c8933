// api/draft.c — lets the model of a second engine propose tokens for the requests of the first
// engine.
#include <string.h>

#include "api/insides.h"

static wick_status check_loaded(const wick_engine *engine, const char *which, wick_error *error) {
  if (engine->scheduler != NULL && model_is_ready(engine->model)) return WICK_OK;
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "%s model is not loaded", which);
}

// Proposals are token ids, so each id must mean the same text in both models.
static wick_status compare_tokens(const wick_engine *engine, const wick_engine *draft,
                                  uint8_t *scratch, uint8_t *draft_scratch, wick_error *error) {
  for (uint32_t id = 0; id < tokenizer_vocab(engine->tokenizer); id++) {
    const uint8_t *bytes, *draft_bytes;
    const size_t size = tokenizer_piece(engine->tokenizer, (int32_t)id, true, scratch, &bytes);
    const size_t draft_size =
        tokenizer_piece(draft->tokenizer, (int32_t)id, true, draft_scratch, &draft_bytes);
    if (size == draft_size && memcmp(bytes, draft_bytes, size) == 0) continue;
    return fail_with(error, WICK_E_MISMATCH, WICK_NO_OFFSET,
                     "token %u of the draft model differs from the model's", id);
  }
  return WICK_OK;
}

static wick_status check_vocabulary(wick_engine *engine, const wick_engine *draft,
                                    wick_error *error) {
  const uint32_t vocab = engine->model->config.vocab, draft_vocab = draft->model->config.vocab;
  if (vocab != draft_vocab ||
      tokenizer_vocab(engine->tokenizer) != tokenizer_vocab(draft->tokenizer)) {
    return fail_with(error, WICK_E_MISMATCH, WICK_NO_OFFSET,
                     "the draft model has %u tokens; the model has %u", draft_vocab, vocab);
  }
  const size_t size = tokenizer_piece_bytes_max(engine->tokenizer);
  const size_t draft_size = tokenizer_piece_bytes_max(draft->tokenizer);
  uint8_t *scratch = memory_alloc(&engine->memory, size + draft_size);
  if (scratch == NULL) {
    return memory_fail(&engine->memory, error, "two tokens");
  }
  const wick_status status = compare_tokens(engine, draft, scratch, scratch + size, error);
  memory_free(&engine->memory, scratch);
  return status;
}

wick_status wick_engine_set_draft(wick_engine *engine, wick_engine *draft, wick_error *error) {
  wick_status status = check_loaded(engine, "the", error);
  if (status == WICK_OK) status = check_loaded(draft, "the draft", error);
  if (status != WICK_OK) return status;
  const scheduler_stats stats = scheduler_get_stats(draft->scheduler);
  if (engine->model->is_encoder || draft->model->is_encoder) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "an encoder cannot have a draft model or be one");
  }
  if (engine == draft) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "a model cannot be its own draft");
  }
  if (engine->drafter != NULL || draft->is_draft || draft->drafter != NULL ||
      stats.running + stats.waiting != 0) {
    return fail_with(
        error, WICK_E_BUSY, WICK_NO_OFFSET,
        "the model already has a draft model, or requests are running on the draft model");
  }
  status = check_vocabulary(engine, draft, error);
  if (status != WICK_OK) return status;
  engine_check_kernels(draft);  // wick_step is never called for the draft engine
  if (draft->load_error.status != WICK_OK) return engine_refuse_again(draft, error);
  const drafter_parts parts = {.memory = &draft->memory,
                               .model = draft->model,
                               .store = draft->store,
                               .forward = draft->forward,
                               .now_us = draft->now_us,
                               .batch_tokens = draft->config.batch_tokens,
                               .context_tokens = draft->context_tokens};
  status = drafter_create(&parts, &engine->drafter, error);
  if (status != WICK_OK) return status;
  draft->is_draft = true;
  scheduler_set_drafter(engine->scheduler, engine->drafter);
  return status;
}
