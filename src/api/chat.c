// api/chat.c — the functions of wick.h for conversations, which combine src/template and src/text.
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "base/text.h"

enum { TEMPLATE_NAME_BYTES_MAX = 64 };

static const char CHATML[] =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void wick_chat_default(wick_chat *chat) { *chat = (wick_chat){0}; }

static void free_results(wick_engine *engine) {
  engine_chat *chat = &engine->chat;
  template_text_free(&engine->memory, &chat->text);
  memory_free(&engine->memory, chat->tokens);
  memory_free(&engine->memory, chat->kept);
  chat->tokens = NULL;
  chat->kept = NULL;
  chat->ending = (wick_text){"", 0};
}

void engine_free_chat(wick_engine *engine) {
  free_results(engine);
  template_destroy(engine->chat.plain.compiled);
  template_destroy(engine->chat.with_tools.compiled);
  memory_free(&engine->memory, engine->chat.given);
  engine->chat = (engine_chat){0};
}

// Fills in an error whose message has the problem, then the reason.
static wick_status fail_about(wick_error *error, const char *problem, const wick_error *reason) {
  fail_with(error, reason->status, WICK_NO_OFFSET, "the chat template %s: %s", problem,
            reason->message);
  return status_about(reason->status, error, WICK_SUBJECT_TEMPLATE, 0, 0);
}

static wick_status compile(wick_engine *engine, const char *source, size_t source_bytes,
                           chat_template **out, wick_error *error) {
  wick_error reason;
  const wick_status status = template_create(&engine->memory, source, source_bytes, out, &reason);
  return status == WICK_OK ? WICK_OK : fail_about(error, "is not valid", &reason);
}

// ---- choosing a template ----

static const gguf_string NO_SOURCE = {0};

static gguf_string source_at(const wick_engine *engine, const char *key) {
  gguf_string source;
  const gguf_directory *directory = engine_directory(engine);
  const bool is_found =
      directory != NULL && gguf_get_string(directory, key, &source, NULL) == WICK_OK;
  return is_found ? source : NO_SOURCE;
}

static bool is_name(const char *text, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i++) {
    const char c = text[i];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-') return false;
  }
  return size_bytes > 0 && size_bytes <= TEMPLATE_NAME_BYTES_MAX;
}

static bool is_same(const char *text, size_t size_bytes, const char *word) {
  return size_bytes == strlen(word) && memcmp(text, word, size_bytes) == 0;
}

// Returns the template with a name: "chatml", "default", or the name of a template of the model.
static gguf_string named_source(const wick_engine *engine, const char *name, size_t size_bytes) {
  static const char KEY[] = "tokenizer.chat_template";
  char key[sizeof KEY + 1 + TEMPLATE_NAME_BYTES_MAX];
  if (is_same(name, size_bytes, "chatml")) return (gguf_string){CHATML, strlen(CHATML)};
  if (is_same(name, size_bytes, "default")) return source_at(engine, KEY);
  text_format(key, sizeof key, "%s.%.*s", KEY, (int)size_bytes, name);
  return source_at(engine, key);
}

wick_status wick_chat_set_template(wick_engine *engine, const char *source, size_t source_bytes,
                                   wick_error *error) {
  engine_chat made = {0};
  gguf_string given = {source, source_bytes};
  if (source != NULL && is_name(source, source_bytes)) {
    given = named_source(engine, source, source_bytes);
    if (given.bytes == NULL) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                "the model has no chat template named '%.*s'. Pass Jinja text, 'chatml', or the "
                "name of one of its templates",
                (int)source_bytes, source);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_TEMPLATE, 0, 0);
    }
  }
  if (source != NULL) {
    const wick_status status =
        compile(engine, given.bytes, (size_t)given.size_bytes, &made.plain.compiled, error);
    if (status != WICK_OK) return status;
    made.given = memory_alloc(&engine->memory, (size_t)given.size_bytes + 1);
    if (made.given == NULL) {
      template_destroy(made.plain.compiled);
      return memory_fail(&engine->memory, error, "a chat template");
    }
    if (given.size_bytes != 0) memcpy(made.given, given.bytes, (size_t)given.size_bytes);
    made.plain.source = (gguf_string){made.given, given.size_bytes};
  }
  engine_free_chat(engine);
  engine->chat = made;
  return WICK_OK;
}

// Chooses the template for conversations with the tools that `json` lists, or without tools.
static wick_status choose_template(wick_engine *engine, const char *json, size_t size_bytes,
                                   engine_template **out, wick_error *error) {
  engine_chat *chat = &engine->chat;
  *out = &chat->plain;
  if (chat->given != NULL) return WICK_OK;
  chat->plain.source = source_at(engine, "tokenizer.chat_template");
  chat->with_tools.source = source_at(engine, "tokenizer.chat_template.tool_use");
  if (chat->with_tools.source.bytes == NULL || json == NULL) return WICK_OK;
  bool has_tools;
  const wick_status status =
      template_has_tools(&engine->memory, json, size_bytes, &has_tools, error);
  if (has_tools) *out = &chat->with_tools;
  return status;
}

// Chooses and compiles the template of a conversation, and passes it to the tokenizer.
static wick_status need_template(wick_engine *engine, const wick_chat *wanted, wick_error *error) {
  engine_chat *chat = &engine->chat;
  engine_template *chosen;
  wick_status status = choose_template(engine, wanted->json, wanted->json_bytes, &chosen, error);
  const gguf_string source = chosen->source;
  chat->last = chosen;
  if (status != WICK_OK) return status;
  if (source.bytes == NULL) {
    fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the model has no chat template");
    return status_about(WICK_E_NODATA, error, WICK_SUBJECT_TEMPLATE, 0, 0);
  }
  if (chosen->compiled == NULL) {
    status = compile(engine, source.bytes, (size_t)source.size_bytes, &chosen->compiled, error);
    if (status != WICK_OK) return status;
  }
  if (chat->guarded != chosen && engine->tokenizer != NULL) {
    tokenizer_guard(engine->tokenizer, source.bytes, (size_t)source.size_bytes);
    chat->guarded = chosen;
  }
  return WICK_OK;
}

// ---- replies ----

reply_format engine_reply_format(wick_engine *engine) {
  engine_template *of = engine->chat.last;
  if (of == NULL) choose_template(engine, NULL, 0, &of, NULL);
  if (of->source.bytes == NULL) return reply_format_find("", 0);
  if (!of->has_format) {
    of->format = reply_format_find(of->source.bytes, (size_t)of->source.size_bytes);
    of->has_format = true;
  }
  return of->format;
}

// ---- variables of the engine ----

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

static bool is_same_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

// Whether the conversation is already rendered: a request is prepared in slices, and submitted
// again later if memory ran out. The tokenizer may have arrived in the meantime.
static bool is_rendered(const wick_engine *engine, const wick_chat *wanted) {
  const engine_chat *chat = &engine->chat;
  const wick_chat *of = &chat->of;
  const bool is_guarded = engine->tokenizer == NULL || chat->guarded == chat->last;
  return chat->kept != NULL && is_guarded && of->now_s == wanted->now_s &&
         of->has_now == wanted->has_now && of->keeps_arguments == wanted->keeps_arguments &&
         is_same_text(of->json, of->json_bytes, wanted->json, wanted->json_bytes) &&
         is_same_text(of->prefix, of->prefix_bytes, wanted->prefix, wanted->prefix_bytes);
}

static char *copy_text(char *to, const char *text, size_t size_bytes) {
  if (size_bytes != 0) memcpy(to, text, size_bytes);
  return to + size_bytes;
}

// Returns the header that a prefix of the answer needs: gpt-oss writes messages with channels.
static const char *header_of(const char *ending, size_t size_bytes) {
  static const char NAMED[] = "<|start|>assistant";
  const size_t size = sizeof NAMED - 1;
  const bool is_named = size_bytes >= size && memcmp(ending + size_bytes - size, NAMED, size) == 0;
  return is_named ? "<|channel|>final<|message|>" : "";
}

// Stores the beginning of the reply, and the rendered conversation.
static wick_status keep(wick_engine *engine, const wick_chat *wanted, wick_error *error) {
  engine_chat *chat = &engine->chat;
  const template_text *text = &chat->text;
  size_t from = 0;
  for (size_t i = 0; i < text->span_count; i++) {
    if (text->spans[i].is_content) from = (size_t)text->spans[i].end;
  }
  const char *ending = text->bytes + from;
  chat->prefix_at = text->size_bytes - from;
  const char *header = wanted->prefix_bytes == 0 ? "" : header_of(ending, chat->prefix_at);
  const size_t ending_bytes = chat->prefix_at + strlen(header) + wanted->prefix_bytes;
  chat->kept = memory_alloc(&engine->memory, wanted->json_bytes + ending_bytes);
  if (chat->kept == NULL) return memory_fail(&engine->memory, error, "a conversation");
  char *to = copy_text(chat->kept, wanted->json, wanted->json_bytes);
  chat->ending = (wick_text){to, ending_bytes};
  to = copy_text(copy_text(to, ending, chat->prefix_at), header, strlen(header));
  copy_text(to, wanted->prefix, wanted->prefix_bytes);
  chat->of = *wanted;
  chat->of.json = chat->kept;
  chat->of.prefix = to;
  return WICK_OK;
}

static wick_status render(wick_engine *engine, const wick_chat *chat, wick_error *error) {
  if (is_rendered(engine, chat)) return WICK_OK;
  free_results(engine);
  wick_status status = need_template(engine, chat, error);
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
  status = template_render(engine->chat.last->compiled, &input, &engine->chat.text, &reason);
  memory_free(&engine->memory, own.bytes);
  if (status != WICK_OK) return fail_about(error, "rejects these messages", &reason);
  return keep(engine, chat, error);
}

wick_status wick_chat_render(wick_engine *engine, const wick_chat *chat, wick_chat_text *out,
                             wick_error *error) {
  *out = (wick_chat_text){0};
  const wick_status status = render(engine, chat, error);
  if (status != WICK_OK) return status;
  const template_text *text = &engine->chat.text;
  *out = (wick_chat_text){.text = {text->bytes, text->size_bytes},
                          .spans = text->spans,
                          .span_count = text->span_count};
  return WICK_OK;
}

// ---- tokens ----

// Whether the template already writes the token that the tokenizer would put at the beginning, as
// most templates do.
bool engine_begins_with_bos(const wick_engine *engine) {
  const tokenizer *tokenizer = engine->tokenizer;
  const template_text *text = &engine->chat.text;
  const gguf_string bos = tokenizer_text(tokenizer, tokenizer_bos(tokenizer));
  if (bos.size_bytes == 0 || text->span_count == 0 || text->spans[0].is_content) return false;
  return bos.size_bytes <= text->spans[0].end &&
         memcmp(text->bytes, bos.bytes, (size_t)bos.size_bytes) == 0;
}

wick_status engine_tokenize_prefix(wick_engine *engine, const wick_chat *chat, int32_t *tokens,
                                   size_t capacity, size_t *count, wick_error *error) {
  const engine_chat *of = &engine->chat;
  const uint32_t parse = TOKENIZE_CONTINUES | (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL;
  const size_t header = of->ending.size_bytes - of->prefix_at - chat->prefix_bytes;
  size_t more;
  *count = 0;
  if (chat->prefix_bytes == 0) return WICK_OK;
  wick_status status = tokenizer_encode(engine->tokenizer, of->ending.bytes + of->prefix_at, header,
                                        parse, tokens, capacity, count, error);
  if (status != WICK_OK) return status;
  status = tokenizer_encode(engine->tokenizer, chat->prefix, chat->prefix_bytes,
                            chat->parse_special ? parse : (uint32_t)TOKENIZE_CONTINUES,
                            tokens + *count, capacity - *count, &more, error);
  *count += more;
  return status;
}

wick_status wick_chat_tokenize(wick_engine *engine, const wick_chat *chat, const int32_t **tokens,
                               size_t *count, wick_error *error) {
  *tokens = NULL;
  *count = 0;
  wick_status status = wick_tokenizer_status(engine, error);
  if (status == WICK_OK) status = render(engine, chat, error);
  if (status != WICK_OK) return status;
  const template_text *text = &engine->chat.text;
  const uint32_t add = engine_begins_with_bos(engine) ? 0 : (uint32_t)WICK_TOKENIZE_ADD_SPECIAL;
  const uint32_t flags = add | (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL;
  const wick_span *spans = chat->parse_special ? NULL : text->spans;
  size_t more = 0;
  size_t capacity =
      text->size_bytes + engine->chat.ending.size_bytes + 16;  // usually more than a byte per token
  for (int round = 0; round < 3; round++) {
    memory_free(&engine->memory, engine->chat.tokens);
    int32_t *out = memory_alloc_array(&engine->memory, capacity, sizeof(int32_t));
    engine->chat.tokens = out;
    if (out == NULL) return memory_fail(&engine->memory, error, "tokens of a conversation");
    status = tokenizer_encode_spans(engine->tokenizer, text->bytes, text->size_bytes, spans,
                                    text->span_count, flags, out, capacity, count, error);
    const size_t left = *count < capacity ? capacity - *count : 0;
    if (status == WICK_OK) {
      status = engine_tokenize_prefix(engine, chat, out + *count, left, &more, error);
    }
    if (status != WICK_E_FULL) break;
    capacity = *count + more + engine->chat.ending.size_bytes;
  }
  *count += more;
  if (status != WICK_OK) return status;
  *tokens = engine->chat.tokens;
  return WICK_OK;
}
