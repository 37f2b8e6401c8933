// component/token_routes.c — the routes of llama.cpp's server that count tokens and render prompts:
// POST /tokenize, /detokenize and /apply-template, GET /props. vLLM's names for the first two are
// also accepted.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "chat_route.h"
#include "facts.h"
#include "prompts.h"
#include "server.h"
#include "shape.h"

static bool refuse_missing(const char *name, refusal *refused) {
  return refuse(refused, REFUSE_MISSING(name), name);
}

static uint32_t context_of(const server *of) {
  wick_plan plan;
  wick_error error;
  return wick_memory_plan(of->engine, &plan, &error) == WICK_OK ? plan.context_tokens : 0;
}

// ---- conversations ----

// Reads the conversation of a body into `json`, which the caller frees.
static bool take_chat(const body *read, wick_chat *chat, buffer *json, refusal *refused) {
  const uint32_t messages = body_field(read, "messages");
  const uint32_t tools = body_field(read, "tools");
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
  return !json->has_failed || refuse_memory(refused, NULL);
}

bool template_begin(server *of, body *read, answer *to, refusal *refused) {
  wick_chat chat;
  wick_chat_text text;
  wick_error error;
  buffer json = {0};
  bool is_right = take_chat(read, &chat, &json, refused);
  if (is_right && wick_chat_render(of->engine, &chat, &text, &error) != WICK_OK) {
    is_right = refuse_error(refused, &error, "messages", NULL);
  }
  if (is_right) shape_put(&to->out, "{'prompt':%t}", text.text);
  buffer_free(&json);
  return is_right && answer_give_json(to);
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
  const uint32_t content = body_field(read, "content");
  const uint32_t text = content != 0 ? content : body_field(read, "prompt");
  if (text == 0) return refuse_missing("content", refused);
  uint32_t adds = body_field(read, "add_special");
  if (adds == 0) adds = body_field(read, "add_special_tokens");
  const uint32_t parses = body_field(read, "parse_special");
  // llama.cpp's server adds no special tokens by default, but vLLM does
  const bool is_of_vllm = body_field(read, "prompt") != 0;
  uint32_t flags = 0;
  if (adds == 0 ? is_of_vllm : body_is_true(read, adds)) flags |= WICK_TOKENIZE_ADD_SPECIAL;
  if (parses == 0 || body_is_true(read, parses)) flags |= WICK_TOKENIZE_PARSE_SPECIAL;
  return prompts_tokenize(of->engine, read, body_text(read, text), flags, &out->ids, &out->count,
                          refused);
}

// Writes a token with its text, or with its bytes if they are not UTF-8.
static void put_piece(buffer *out, const server *of, int32_t token) {
  char scratch[TOKEN_BYTES_MAX];
  const wick_text piece = token_bytes(of->engine, token, scratch);
  const bool is_text = utf8_is_valid(piece.bytes, piece.size_bytes);
  shape_put(out, is_text ? "{'id':%d,'piece':%t}" : "{'id':%d,'piece':%y}", token, piece);
}

bool tokenize_begin(server *of, body *read, answer *to, refusal *refused) {
  token_span tokens = {0};
  const bool is_chat = body_field(read, "messages") != 0;
  if (!(is_chat ? tokenize_chat(of, read, &tokens, refused)
                : tokenize_text(of, read, &tokens, refused))) {
    return false;
  }
  const bool has_pieces = body_flag(read, "with_pieces");
  shape_put(&to->out, "{'tokens':[");
  for (size_t i = 0; i < tokens.count; i++) {
    if (i > 0) buffer_put_text(&to->out, ",");
    if (has_pieces) put_piece(&to->out, of, tokens.ids[i]);
    if (!has_pieces) shape_put(&to->out, "%d", tokens.ids[i]);
  }
  shape_put(&to->out, "],'count':%U,'max_model_len':%u}", (uint64_t)tokens.count, context_of(of));
  return answer_give_json(to);
}

#define ID_MAX 9007199254740991.0  // a larger number is not an integer in JavaScript

static bool is_id(const body *read, uint32_t node) {
  const double id = body_node(read, node)->kind == JSON_NUMBER ? body_number(read, node) : -1;
  return id >= 0 && id <= ID_MAX && id == floor(id);
}

static bool take_tokens(const server *of, body *read, token_list *out, refusal *refused) {
  const uint32_t list = body_field(read, "tokens");
  const uint32_t vocab = wick_tokenizer_vocab(of->engine);
  if (list == 0) return refuse_missing("tokens", refused);
  bool is_right = body_node(read, list)->kind == JSON_ARRAY;
  BODY_EACH(read, item, list) is_right = is_right && is_id(read, item);
  if (!is_right) return refuse_value(refused, "tokens", WORDS_IDS);
  BODY_EACH(read, item, list) {
    const double id = body_number(read, item);
    if (id < vocab) {
      if (!prompts_add_id(read, (int32_t)id, out, refused)) return false;
      continue;
    }
    char at[40];
    snprintf(at, sizeof at, "tokens[%u]", (unsigned)body_node(read, item)->index);
    return refuse(refused, REFUSE_HIGH_ID(at), at, (unsigned)vocab,
                  (unsigned)(id < UINT32_MAX ? id : UINT32_MAX));
  }
  return true;
}

bool detokenize_begin(server *of, body *read, answer *to, refusal *refused) {
  token_list tokens = {0};
  buffer text = {0};
  const bool is_right = take_tokens(of, read, &tokens, refused) &&
                        prompts_put_text(of->engine, tokens.ids, tokens.count, &text, refused);
  if (is_right) shape_put(&to->out, "{'content':%b,'prompt':%b}", &text, &text);
  to->out.has_failed = to->out.has_failed || text.has_failed;
  buffer_free(&text);
  return is_right && answer_give_json(to);
}

// ---- /props ----

static wick_text text_of(const facts *model, uint32_t node) {
  return node == 0 ? (wick_text){"", 0} : body_text(&model->read, node);
}

bool give_props(const server *of, const http_request *request, answer *to, refusal *refused) {
  (void)request;
  facts model;
  const bool is_read = facts_read(of->engine, &model, refused);
  if (is_read) {
    const body *read = &model.read;
    const uint32_t bos = facts_of_tokenizer(&model, "bos"), eos = facts_of_tokenizer(&model, "eos");
    shape_put(&to->out,
              "{'default_generation_settings':{'n_ctx':%u},'model_alias':%s,'chat_template':%t,"
              "'bos_token':%t,'eos_token':%t,'modalities':{'vision':%?,'audio':%?}}",
              context_of(of), of->model, text_of(&model, body_field(read, "chat_template")),
              text_of(&model, body_find(read, bos, "text")),
              text_of(&model, body_find(read, eos, "text")),
              wick_media_has(of->engine, WICK_MEDIA_IMAGE),
              wick_media_has(of->engine, WICK_MEDIA_AUDIO));
  }
  facts_end(&model);
  return is_read && answer_give_json(to);
}
