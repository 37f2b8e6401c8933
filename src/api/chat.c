// api/chat.c — conversations, as wick.h offers them: rooms template and text put together.
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "base/text.h"

static const char CHATML[] =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void wick_chat_default(wick_chat *chat) { *chat = (wick_chat){0}; }

static void free_results(wick_engine *engine) {
  template_text_free(&engine->memory, &engine->chat.text);
  memory_free(&engine->memory, engine->chat.tokens);
  engine->chat.tokens = NULL;
}

void engine_free_chat(wick_engine *engine) {
  free_results(engine);
  template_destroy(engine->chat.template);
  memory_free(&engine->memory, engine->chat.source);
  engine->chat = (engine_chat){0};
}

// The reason behind words that say what it is about.
static wick_status fail_about(wick_error *error, const char *problem, const wick_error *reason) {
  return fail_with(error, reason->status, WICK_NO_OFFSET, "the chat template %s: %s", problem,
                   reason->message);
}

static wick_status compile(wick_engine *engine, const char *source, size_t source_bytes,
                           chat_template **out, wick_error *error) {
  wick_error reason;
  const wick_status status = template_create(&engine->memory, source, source_bytes, out, &reason);
  return status == WICK_OK ? WICK_OK : fail_about(error, "is not valid", &reason);
}

wick_status wick_chat_set_template(wick_engine *engine, const char *source, size_t source_bytes,
                                   wick_error *error) {
  static const char NAME[] = "chatml";
  engine_chat made = {0};
  if (source != NULL && source_bytes == strlen(NAME) && memcmp(source, NAME, source_bytes) == 0) {
    source = CHATML;
    source_bytes = strlen(CHATML);
  }
  if (source != NULL) {
    const wick_status status = compile(engine, source, source_bytes, &made.template, error);
    if (status != WICK_OK) return status;
    made.source = memory_alloc(&engine->memory, source_bytes);
    if (made.source == NULL) {
      template_destroy(made.template);
      return memory_fail(&engine->memory, error, "a chat template");
    }
    memcpy(made.source, source, source_bytes);
    made.source_bytes = source_bytes;
  }
  engine_free_chat(engine);
  engine->chat = made;
  return WICK_OK;
}

// The model's own template. WICK_E_NODATA.
static wick_status find_source(const wick_engine *engine, gguf_string *source, wick_error *error) {
  const gguf_directory *directory = engine_directory(engine);
  if (directory != NULL &&
      gguf_get_string(directory, "tokenizer.chat_template", source, error) == WICK_OK) {
    return WICK_OK;
  }
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the model has no chat template");
}

// Compiles the model's own template, unless there is one already, and lets the tokenizer know it.
static wick_status need_template(wick_engine *engine, wick_error *error) {
  engine_chat *chat = &engine->chat;
  gguf_string source = {.bytes = (const void *)chat->source, .size_bytes = chat->source_bytes};
  if (chat->source == NULL) {
    const wick_status status = find_source(engine, &source, error);
    if (status != WICK_OK) return status;
  }
  const char *bytes = (const char *)source.bytes;
  if (chat->template == NULL) {
    const wick_status status =
        compile(engine, bytes, (size_t)source.size_bytes, &chat->template, error);
    if (status != WICK_OK) return status;
  }
  if (!chat->is_guarded && engine->tokenizer != NULL) {
    tokenizer_guard(engine->tokenizer, bytes, (size_t)source.size_bytes);
    chat->is_guarded = true;
  }
  return WICK_OK;
}

// ---- replies ----

reply_format engine_reply_format(wick_engine *engine) {
  engine_chat *chat = &engine->chat;
  gguf_string source = {.bytes = (const void *)chat->source, .size_bytes = chat->source_bytes};
  wick_error error;
  if (chat->has_format) return chat->format;
  if (chat->source == NULL && find_source(engine, &source, &error) != WICK_OK) {
    return reply_format_find("", 0);
  }
  chat->format = reply_format_find((const char *)source.bytes, (size_t)source.size_bytes);
  chat->has_format = true;
  return chat->format;
}

wick_text wick_chat_ending(wick_engine *engine, bool *has_reasoning, bool *needs_special) {
  const template_text *text = &engine->chat.text;
  const reply_format format = engine_reply_format(engine);
  size_t from = 0;
  for (size_t i = 0; i < text->span_count; i++) {
    if (text->spans[i].is_content) from = (size_t)text->spans[i].end;
  }
  *has_reasoning = reply_format_has_reasoning(&format);
  *needs_special = reply_format_has_control_marks(&format);
  return (wick_text){text->bytes == NULL ? "" : text->bytes + from, text->size_bytes - from};
}

// ---- variables of the engine's own ----

static void write_token(json_writer *json, const tokenizer *tokenizer, const char *key,
                        int32_t token) {
  const gguf_string text = tokenizer_text(tokenizer, token);
  json_string(json, key, (const char *)text.bytes, (size_t)text.size_bytes);
}

static void write_own(const wick_engine *engine, json_room *text) {
  json_writer json;
  json_begin(&json, json_room_put, text);
  json_open(&json, NULL, '{');
  json_bool(&json, "add_generation_prompt", true);
  if (engine->tokenizer != NULL) {
    write_token(&json, engine->tokenizer, "bos_token", tokenizer_bos(engine->tokenizer));
    write_token(&json, engine->tokenizer, "eos_token", tokenizer_eos(engine->tokenizer));
  }
  json_close(&json, '{');
}

// ---- rendering ----

static wick_status render(wick_engine *engine, const wick_chat *chat, wick_error *error) {
  free_results(engine);
  wick_status status = need_template(engine, error);
  if (status != WICK_OK) return status;
  json_room own = {0};
  write_own(engine, &own);
  const size_t own_bytes = own.size_bytes;
  own = (json_room){.bytes = memory_alloc(&engine->memory, own_bytes)};
  if (own.bytes == NULL) return memory_fail(&engine->memory, error, "a conversation");
  write_own(engine, &own);
  const template_input input = {.variables = chat->json,
                                .variables_bytes = chat->json_bytes,
                                .own = own.bytes,
                                .own_bytes = own_bytes,
                                .now_s = chat->now_s,
                                .has_now = chat->has_now,
                                .keeps_arguments = chat->keeps_arguments};
  wick_error reason;
  status = template_render(engine->chat.template, &input, &engine->chat.text, &reason);
  memory_free(&engine->memory, own.bytes);
  return status == WICK_OK ? WICK_OK : fail_about(error, "refuses these messages", &reason);
}

wick_status wick_chat_render(wick_engine *engine, const wick_chat *chat, wick_chat_text *out,
                             wick_error *error) {
  *out = (wick_chat_text){0};
  const wick_status status = render(engine, chat, error);
  if (status != WICK_OK) return status;
  const template_text *text = &engine->chat.text;
  *out = (wick_chat_text){{text->bytes, text->size_bytes}, text->spans, text->span_count};
  return WICK_OK;
}

// ---- tokens ----

// True when the template writes the token that the tokenizer would put first, too, as most do.
static bool begins_with_bos(const wick_engine *engine) {
  const tokenizer *tokenizer = engine->tokenizer;
  const template_text *text = &engine->chat.text;
  const gguf_string bos = tokenizer_text(tokenizer, tokenizer_bos(tokenizer));
  if (bos.size_bytes == 0 || text->span_count == 0 || text->spans[0].is_content) return false;
  return bos.size_bytes <= text->spans[0].end &&
         memcmp(text->bytes, bos.bytes, (size_t)bos.size_bytes) == 0;
}

wick_status wick_chat_tokenize(wick_engine *engine, const wick_chat *chat, const int32_t **tokens,
                               size_t *count, wick_error *error) {
  *tokens = NULL;
  *count = 0;
  wick_status status = wick_tokenizer_status(engine, error);
  if (status == WICK_OK) status = render(engine, chat, error);
  if (status != WICK_OK) return status;
  const template_text *text = &engine->chat.text;
  const uint32_t add = begins_with_bos(engine) ? 0 : (uint32_t)WICK_TOKENIZE_ADD_SPECIAL;
  const uint32_t flags = add | (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL;
  const wick_span *spans = chat->parse_special ? NULL : text->spans;
  size_t capacity = text->size_bytes + 8;  // mostly a byte gives a token at most
  for (int round = 0; round < 2; round++) {
    memory_free(&engine->memory, engine->chat.tokens);
    engine->chat.tokens = memory_alloc_array(&engine->memory, capacity, sizeof(int32_t));
    if (engine->chat.tokens == NULL) {
      return memory_fail(&engine->memory, error, "tokens of a conversation");
    }
    status = tokenizer_encode_spans(engine->tokenizer, text->bytes, text->size_bytes, spans,
                                    text->span_count, flags, engine->chat.tokens, capacity, count,
                                    error);
    if (status != WICK_E_FULL) break;
    capacity = *count;
  }
  if (status != WICK_OK) return status;
  *tokens = engine->chat.tokens;
  return WICK_OK;
}
