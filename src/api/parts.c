// api/parts.c — see parts.h.
#include "api/parts.h"

#include <string.h>

#include "api/insides.h"

uint32_t engine_media_width(const wick_engine *engine) {
  return engine->model == NULL ? 0 : media_width(engine->model);
}

typedef struct flat_prompt {
  int32_t *tokens;
  size_t count;
  media_list media;
} flat_prompt;

static size_t part_tokens(const prompt_part *part) {
  return part->media != NULL ? part->media->count : part->token_count;
}

static wick_status add_media(wick_engine *engine, const media_rows *rows, flat_prompt *flat,
                             wick_error *error) {
  media_span *span;
  wick_status status = media_span_create(&engine->memory, engine->model,
                                         engine->config.batch_tokens, rows, &span, error);
  if (status != WICK_OK) return status;
  status = media_list_add(&engine->memory, &flat->media, span, (uint32_t)flat->count, error);
  for (uint32_t i = 0; i < span->is.count; i++)
    flat->tokens[flat->count++] = media_token(&span->is, i);
  media_span_release(&engine->memory, span);
  return status;
}

static wick_status flatten(wick_engine *engine, const prompt_part *parts, size_t count,
                           flat_prompt *flat, wick_error *error) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) total += part_tokens(&parts[i]);
  if (total > engine->context_tokens) {
    fail_with(
        error, WICK_E_FULL, WICK_NO_OFFSET,
        "the prompt is too long: it has %llu tokens, which exceeds the available context size "
        "of %u",
        (unsigned long long)total, engine->context_tokens);
    return status_about(WICK_E_FULL, error, WICK_SUBJECT_CONTEXT, total, engine->context_tokens);
  }
  flat->tokens = memory_alloc_array(&engine->memory, (size_t)total + 1, sizeof(int32_t));
  if (flat->tokens == NULL) return memory_fail(&engine->memory, error, "the prompt");
  wick_status status = WICK_OK;
  for (size_t i = 0; i < count && status == WICK_OK; i++) {
    const prompt_part *part = &parts[i];
    if (part->media != NULL) {
      status = add_media(engine, part->media, flat, error);
    } else if (part->token_count != 0) {
      memcpy(flat->tokens + flat->count, part->tokens, part->token_count * sizeof(int32_t));
      flat->count += part->token_count;
    }
  }
  return status;
}

wick_status engine_submit_parts(wick_engine *engine, const wick_request *request,
                                const prompt_part *parts, size_t count, uint32_t *id,
                                wick_error *error) {
  if (engine->scheduler == NULL) return engine_submit(engine, request, NULL, NULL, id, error);
  const bool follows = request->conversation != NULL && request->session != 0;
  if (request->tokens != NULL || request->text_bytes != 0 || follows) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "a prompt of parts cannot have other text or tokens%s",
              follows ? ", or a session" : "");
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, 0, 0);
  }
  flat_prompt flat = {0};
  wick_status status = flatten(engine, parts, count, &flat, error);
  if (status == WICK_OK) {
    wick_request whole = *request;
    whole.tokens = flat.tokens;
    whole.token_count = flat.count;
    status = request->conversation == NULL
                 ? engine_submit(engine, &whole, &flat.media, NULL, id, error)
                 : engine_submit_conversation(engine, &whole, &flat.media, id, error);
  }
  media_list_clear(&engine->memory, &flat.media);
  memory_free(&engine->memory, flat.tokens);
  return status;
}
