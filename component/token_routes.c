// component/token_routes.c — the routes of llama.cpp's server that count tokens and render prompts:
// POST /tokenize, /detokenize and /apply-template, GET /props. vLLM's names for the first two are
// also accepted.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "facts.h"
#include "messages.h"
#include "prompts.h"
#include "server.h"

static const field fields_tokenize[] = {
    FIELDS_TOKENIZE(PLAIN_FIELD){NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_detokenize[] = {
    FIELDS_DETOKENIZE(PLAIN_FIELD){NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_template[] = {
    FIELDS_TEMPLATE(PLAIN_FIELD){NULL, FIELD_IGNORED, 0, 0, NULL}};

static bool check(const body *read, const field *fields, refusal *refused) {
  const field_tables tables = {fields, NULL, ""};
  return fields_check(read, BODY_ROOT, &tables, refused);
}

static bool refuse_missing(const char *name, refusal *refused) {
  return refuse(refused, REFUSE_MISSING(name), name);
}

static bool give(answer *to) {
  answer_give(to, "application/json");
  to->is_done = true;
  return true;
}

static uint32_t context_of(const server *of) {
  wick_plan plan;
  wick_error error;
  return wick_memory_plan(of->engine, &plan, &error) == WICK_OK ? plan.context_tokens : 0;
}

// ---- conversations ----

// Reads the conversation of a body into `json`, which the caller frees.
static bool take_chat(const body *read, wick_chat *chat, buffer *json, refusal *refused) {
  const uint32_t messages = body_find(read, BODY_ROOT, "messages");
  const uint32_t tools = body_find(read, BODY_ROOT, "tools");
  if (!messages_check(read, refused) || !messages_check_tools(read, tools, refused)) return false;
  if (media_is_in(read, messages)) {
    return refuse(refused, 400, "unsupported_value", "messages",
                  "messages: images and recordings are not supported on this route");
  }
  messages_put(json, read, body_node(read, tools)->count > 0 ? tools : 0, NULL, MEDIA_AS_TEXTS);
  wick_chat_default(chat);
  chat->json = json->bytes;
  chat->json_bytes = json->size_bytes;
  chat->now_s = (int64_t)time(NULL);
  chat->has_now = true;
  return !json->has_failed || refuse(refused, 503, "nomem", NULL, "Out of memory");
}

bool template_begin(server *of, body *read, answer *to, refusal *refused) {
  wick_chat chat;
  wick_chat_text text;
  wick_error error;
  buffer json = {0};
  bool is_right = check(read, fields_template, refused) && take_chat(read, &chat, &json, refused);
  if (is_right && wick_chat_render(of->engine, &chat, &text, &error) != WICK_OK) {
    is_right = refuse_error(refused, &error, "messages", NULL);
  }
  if (is_right) {
    json_writer out;
    json_begin(&out, buffer_put, &to->out);
    json_open(&out, NULL, '{');
    json_string(&out, "prompt", text.text.bytes, text.text.size_bytes);
    json_close(&out, '{');
  }
  buffer_free(&json);
  return is_right && give(to);
}

// ---- tokens ----

typedef struct token_span {
  const int32_t *ids;
  size_t count;
} token_span;

// The tokens are valid until the next call of the template engine.
static bool tokenize_chat(const server *of, const body *read, token_span *out, refusal *refused) {
  wick_chat chat;
  wick_error error;
  buffer json = {0};
  bool is_right = take_chat(read, &chat, &json, refused);
  if (is_right &&
      wick_chat_tokenize(of->engine, &chat, &out->ids, &out->count, &error) != WICK_OK) {
    is_right = refuse_error(refused, &error, "messages", NULL);
  }
  buffer_free(&json);
  return is_right;
}

static bool tokenize_text(const server *of, body *read, token_span *out, refusal *refused) {
  const uint32_t content = body_find(read, BODY_ROOT, "content");
  const uint32_t text = content != 0 ? content : body_find(read, BODY_ROOT, "prompt");
  if (text == 0) return refuse_missing("content", refused);
  uint32_t adds = body_find(read, BODY_ROOT, "add_special");
  if (adds == 0) adds = body_find(read, BODY_ROOT, "add_special_tokens");
  const uint32_t parses = body_find(read, BODY_ROOT, "parse_special");
  // llama.cpp's server adds no special tokens by default, but vLLM does
  const bool is_of_vllm = body_find(read, BODY_ROOT, "prompt") != 0;
  uint32_t flags = 0;
  if (adds == 0 ? is_of_vllm : body_is_true(read, adds)) flags |= WICK_TOKENIZE_ADD_SPECIAL;
  if (parses == 0 || body_is_true(read, parses)) flags |= WICK_TOKENIZE_PARSE_SPECIAL;
  return prompts_tokenize(of->engine, read, body_text(read, text), flags, &out->ids, &out->count,
                          refused);
}

// Writes a token with its text, or with its bytes if they are not UTF-8.
static void put_piece(json_writer *json, const server *of, int32_t token) {
  char scratch[TOKEN_BYTES_MAX];
  const wick_text piece = token_bytes(of->engine, token, scratch);
  json_open(json, NULL, '{');
  json_i64(json, "id", token);
  if (utf8_is_valid(piece.bytes, piece.size_bytes)) {
    json_string(json, "piece", piece.bytes, piece.size_bytes);
  } else {
    json_open(json, "piece", '[');
    for (size_t i = 0; i < piece.size_bytes; i++) json_u64(json, NULL, (uint8_t)piece.bytes[i]);
    json_close(json, '[');
  }
  json_close(json, '{');
}

bool tokenize_begin(server *of, body *read, answer *to, refusal *refused) {
  token_span tokens = {0};
  const bool is_chat = body_find(read, BODY_ROOT, "messages") != 0;
  if (!check(read, fields_tokenize, refused) ||
      !(is_chat ? tokenize_chat(of, read, &tokens, refused)
                : tokenize_text(of, read, &tokens, refused))) {
    return false;
  }
  const bool has_pieces = body_is_true(read, body_find(read, BODY_ROOT, "with_pieces"));
  json_writer json;
  json_begin(&json, buffer_put, &to->out);
  json_open(&json, NULL, '{');
  json_open(&json, "tokens", '[');
  for (size_t i = 0; i < tokens.count; i++) {
    if (has_pieces) put_piece(&json, of, tokens.ids[i]);
    if (!has_pieces) json_i64(&json, NULL, tokens.ids[i]);
  }
  json_close(&json, '[');
  json_u64(&json, "count", tokens.count);
  json_u64(&json, "max_model_len", context_of(of));
  json_close(&json, '{');
  return give(to);
}

#define ID_MAX 9007199254740991.0  // a larger number is not an integer in JavaScript

static bool refuse_tokens(refusal *refused) { return refuse_value(refused, "tokens", WORDS_IDS); }

static bool take_tokens(const server *of, body *read, token_span *out, refusal *refused) {
  const uint32_t list = body_find(read, BODY_ROOT, "tokens");
  const uint32_t vocab = wick_tokenizer_vocab(of->engine);
  if (list == 0) return refuse_missing("tokens", refused);
  if (body_node(read, list)->kind != JSON_ARRAY) return refuse_tokens(refused);
  if (body_node(read, list)->count == 0) return true;
  for (uint32_t item = body_node(read, list)->first; item != 0;
       item = body_node(read, item)->next) {
    const double id = body_node(read, item)->kind == JSON_NUMBER ? body_number(read, item) : -1;
    if (id < 0 || id > ID_MAX || id != floor(id)) return refuse_tokens(refused);
  }
  for (uint32_t item = body_node(read, list)->first; item != 0;
       item = body_node(read, item)->next) {
    const double id = body_number(read, item);
    if (id < vocab) continue;
    char at[40];
    snprintf(at, sizeof at, "tokens[%u]", (unsigned)body_node(read, item)->index);
    return refuse(refused, REFUSE_HIGH_ID(at), at, (unsigned)vocab,
                  (unsigned)(id < UINT32_MAX ? id : UINT32_MAX));
  }
  return body_take_tokens(read, list, &out->ids, &out->count, refuse_tokens, refused);
}

bool detokenize_begin(server *of, body *read, answer *to, refusal *refused) {
  token_span tokens = {0};
  buffer text = {0};
  const bool is_right = check(read, fields_detokenize, refused) &&
                        take_tokens(of, read, &tokens, refused) &&
                        prompts_put_text(of->engine, tokens.ids, tokens.count, &text, refused);
  if (is_right) {
    json_writer json;
    json_begin(&json, buffer_put, &to->out);
    json_open(&json, NULL, '{');
    json_string(&json, "content", text.bytes, text.size_bytes);
    json_string(&json, "prompt", text.bytes, text.size_bytes);
    json_close(&json, '{');
  }
  to->out.has_failed = to->out.has_failed || text.has_failed;
  buffer_free(&text);
  return is_right && give(to);
}

// ---- /props ----

static void put_text(json_writer *json, const char *name, const facts *model, uint32_t node) {
  const wick_text text = body_text(&model->read, node);
  json_string(json, name, text.bytes, node == 0 ? 0 : text.size_bytes);
}

bool give_props(const server *of, const http_request *request, answer *to, refusal *refused) {
  (void)request;
  facts model;
  const bool is_read = facts_read(of->engine, &model, refused);
  if (is_read) {
    const body *read = &model.read;
    json_writer json;
    json_begin(&json, buffer_put, &to->out);
    json_open(&json, NULL, '{');
    json_open(&json, "default_generation_settings", '{');
    json_u64(&json, "n_ctx", context_of(of));
    json_close(&json, '{');
    json_text(&json, "model_alias", of->model);
    put_text(&json, "chat_template", &model, body_find(read, BODY_ROOT, "chat_template"));
    put_text(&json, "bos_token", &model,
             body_find(read, facts_of_tokenizer(&model, "bos"), "text"));
    put_text(&json, "eos_token", &model,
             body_find(read, facts_of_tokenizer(&model, "eos"), "text"));
    json_open(&json, "modalities", '{');
    json_bool(&json, "vision", wick_media_has(of->engine, WICK_MEDIA_IMAGE));
    json_bool(&json, "audio", wick_media_has(of->engine, WICK_MEDIA_AUDIO));
    json_close(&json, '{');
    json_close(&json, '{');
  }
  facts_end(&model);
  return is_read && give(to);
}
