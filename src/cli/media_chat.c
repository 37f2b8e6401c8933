// cli/media_chat.c — see media_chat.h.
#include "cli/media_chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/input.h"
#include "cli/local_time.h"
#include "cli/media_input.h"

static const char *const TYPES[] = {"image", "audio"};  // by media_kind
// A question that no user would ask: a private-use character.
static const char PROBE[] = "\xee\x80\x80";
enum { NO_MEDIA = 2, MARKER_BYTES_MAX = 256 };

static exit_code fail_memory(void) {
  report("out of memory for the conversation");
  return EXIT_MEMORY;
}

// ---- testing the template ----

typedef struct probe {
  const char *system;  // or NULL
  bool is_list;        // the content is a list of parts
  uint32_t kind;       // the kind of part before the text: a media_kind, or NO_MEDIA
} probe;

static void put_part(json_writer *json, const char *type) {
  json_open(json, NULL, '{');
  json_text(json, "type", type);
  json_close(json, '{');
}

static void put_text_part(json_writer *json, const char *text, size_t text_bytes) {
  json_open(json, NULL, '{');
  json_text(json, "type", "text");
  json_string(json, "text", text, text_bytes);
  json_close(json, '{');
}

static void write_probe(const probe *probe, input_text *out) {
  json_writer json;
  json_begin(&json, input_append, out);
  json_open(&json, NULL, '{');
  json_open(&json, "messages", '[');
  if (probe->system != NULL) {
    json_open(&json, NULL, '{');
    json_text(&json, "role", "system");
    json_text(&json, "content", probe->system);
    json_close(&json, '{');
  }
  json_open(&json, NULL, '{');
  json_text(&json, "role", "user");
  if (probe->is_list) {
    json_open(&json, "content", '[');
    if (probe->kind != NO_MEDIA) put_part(&json, TYPES[probe->kind]);
    put_text_part(&json, PROBE, strlen(PROBE));
    json_close(&json, '[');
  } else {
    json_text(&json, "content", PROBE);
  }
  json_close(&json, '{');
  json_close(&json, '[');
  json_close(&json, '{');
}

// Builds a test conversation; its JSON, which the caller frees, is NULL if memory ran out.
static wick_chat make_probe(const probe *probe) {
  input_text json = {0};
  wick_chat chat;
  write_probe(probe, &json);
  if (json.is_lost) input_free(&json);
  wick_chat_default(&chat);
  chat.json = json.bytes;
  chat.json_bytes = json.size_bytes;
  chat.now_s = local_time_now_s();
  chat.has_now = true;
  chat.keeps_arguments = probe->is_list;
  return chat;
}

// Renders a conversation. *out is NUL-terminated, and the caller frees it; it is NULL if the
// template rejects the messages.
static exit_code render(wick_engine *engine, const probe *probe, char **out) {
  wick_chat_text text;
  wick_error error;
  const wick_chat chat = make_probe(probe);
  *out = NULL;
  if (chat.json == NULL) return fail_memory();
  const wick_status status = wick_chat_render(engine, &chat, &text, &error);
  free((void *)chat.json);
  if (status == WICK_E_NOMEM) return report_error("chat", &error);
  if (status != WICK_OK) return EXIT_DONE;
  *out = calloc(text.text.size_bytes + 1, 1);
  if (*out == NULL) return fail_memory();
  memcpy(*out, text.text.bytes, text.text.size_bytes);
  return EXIT_DONE;
}

// Finds the marker that the template writes for the part in the conversation `with`, without white
// space around it: `with` and `without` end in the same text, and the marker precedes that text.
// The result is "" if no marker is found. `plain` is the conversation with a string in place of the
// list.
static void find_marker(const char *plain, const char *without, const char *with,
                        char marker[MARKER_BYTES_MAX]) {
  marker[0] = '\0';
  const char *end = without == NULL ? NULL : strstr(without, PROBE);
  const char *of_plain = plain == NULL ? NULL : strstr(plain, PROBE);
  if (end == NULL || with == NULL) return;
  // a template that does not support lists may write their JSON
  if (of_plain != NULL && strcmp(of_plain, end) != 0) return;
  const size_t end_bytes = strlen(end), with_bytes = strlen(with);
  if (with_bytes < end_bytes || strcmp(with + (with_bytes - end_bytes), end) != 0) return;
  size_t from = 0, to = with_bytes - end_bytes;
  while (from < to && without + from < end && with[from] == without[from]) from++;
  while (from < to && json_is_space((uint8_t)with[from])) from++;
  while (to > from && json_is_space((uint8_t)with[to - 1])) to--;
  if (to - from >= MARKER_BYTES_MAX) return;
  memcpy(marker, with + from, to - from);
  marker[to - from] = '\0';
}

static bool begins_with(const int32_t *tokens, size_t count, const int32_t *wanted,
                        size_t wanted_count) {
  return count >= wanted_count && memcmp(tokens, wanted, wanted_count * sizeof *tokens) == 0;
}

// Stores the tokens of the marker. *is_found: whether they occur in a conversation with one part.
static exit_code take_marker(media_chat *chat, wick_engine *engine, const probe *probe,
                             const char *marker, bool *is_found) {
  wick_error error;
  const int32_t *tokens;
  size_t count = 0, found = 0, *marker_count = &chat->marker_counts[probe->kind];
  int32_t *wanted = chat->markers[probe->kind];
  const wick_chat with = make_probe(probe);
  if (with.json == NULL) return fail_memory();
  wick_status status = wick_tokenize(engine, marker, strlen(marker), WICK_TOKENIZE_PARSE_SPECIAL,
                                     wanted, MEDIA_MARKER_TOKENS_MAX, marker_count, &error);
  if (status == WICK_OK) status = wick_chat_tokenize(engine, &with, &tokens, &count, &error);
  free((void *)with.json);
  if (status == WICK_E_NOMEM) return report_error("chat", &error);
  for (size_t i = 0; i < count && status == WICK_OK; i++) {
    found += begins_with(tokens + i, count - i, wanted, *marker_count);
  }
  *is_found = found == 1;
  return EXIT_DONE;
}

static exit_code learn_marker(media_chat *chat, wick_engine *engine, media_kind kind,
                              bool *is_found) {
  char marker[MARKER_BYTES_MAX] = "";
  const probe probes[] = {
      {.kind = NO_MEDIA}, {.is_list = true, .kind = NO_MEDIA}, {.is_list = true, .kind = kind}};
  char *texts[3] = {NULL};
  exit_code code = EXIT_DONE;
  *is_found = false;
  for (int i = 0; i < 3 && code == EXIT_DONE; i++) code = render(engine, &probes[i], &texts[i]);
  if (code == EXIT_DONE) find_marker(texts[0], texts[1], texts[2], marker);
  for (int i = 0; i < 3; i++) free(texts[i]);
  return marker[0] == '\0' ? code : take_marker(chat, engine, &probes[2], marker, is_found);
}

// Compares the tokens with those of a conversation with a different first question: the question's
// tokens begin where the two differ.
static exit_code learn_place(media_chat *chat, wick_engine *engine, const char *system) {
  wick_error error;
  const int32_t *tokens = NULL;
  const wick_chat plain = make_probe(&(probe){.system = system, .kind = NO_MEDIA});
  if (plain.json == NULL) return fail_memory();
  const wick_status status =
      wick_chat_tokenize(engine, &plain, &tokens, &chat->probe_count, &error);
  free((void *)plain.json);
  if (status != WICK_OK) return report_error("chat", &error);
  chat->probe = calloc(chat->probe_count + 1, sizeof *chat->probe);
  if (chat->probe == NULL) return fail_memory();
  memcpy(chat->probe, tokens, chat->probe_count * sizeof *tokens);
  return EXIT_DONE;
}

exit_code media_chat_learn(media_chat *chat, media_input *input, wick_engine *engine,
                           const char *system) {
  bool has[2] = {false, false};
  chat->input = input;
  chat->takes_parts = true;
  for (uint32_t i = 0; i < input->item_count; i++) has[input->items[i].kind] = true;
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO && chat->takes_parts; kind++) {
    if (!has[kind]) continue;
    const exit_code code = learn_marker(chat, engine, (media_kind)kind, &chat->takes_parts);
    if (code != EXIT_DONE) return code;
  }
  return chat->takes_parts ? EXIT_DONE : learn_place(chat, engine, system);
}

// ---- messages ----

void media_chat_put_parts(media_chat *chat, json_writer *json, const char *role, const char *text,
                          size_t text_bytes) {
  json_open(json, "content", '[');
  if (strcmp(role, "user") == 0 && !chat->has_asked) {
    chat->has_asked = true;
    for (uint32_t i = 0; i < chat->input->item_count; i++) {
      put_part(json, TYPES[chat->input->items[i].kind]);
    }
  }
  put_text_part(json, text, text_bytes);
  json_close(json, '[');
}

// ---- prompts ----

static wick_status add_item(media_input *input, uint32_t item, wick_error *error) {
  return media_prompt_add_plan(&input->prompt, &input->items[item].plan, error);
}

// Replaces each marker with its item.
static wick_status replace_markers(const media_chat *chat, const int32_t *tokens, size_t count,
                                   wick_error *error) {
  media_input *input = chat->input;
  size_t from = 0;
  uint32_t item = 0;
  wick_status status = WICK_OK;
  for (size_t i = 0; i < count && item < input->item_count && status == WICK_OK; i++) {
    const media_kind kind = input->items[item].kind;
    const size_t size = chat->marker_counts[kind];
    if (!begins_with(tokens + i, count - i, chat->markers[kind], size)) continue;
    status = media_prompt_add_tokens(&input->prompt, tokens + from, i - from, error);
    if (status == WICK_OK) status = add_item(input, item++, error);
    from = i + size;
    i = from - 1;
  }
  if (status == WICK_OK && item < input->item_count) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "the chat template includes %u of %u images and recordings", item,
                     input->item_count);
  }
  return status == WICK_OK
             ? media_prompt_add_tokens(&input->prompt, tokens + from, count - from, error)
             : status;
}

// Inserts all items before the first question.
static wick_status put_in_front(const media_chat *chat, const int32_t *tokens, size_t count,
                                wick_error *error) {
  media_input *input = chat->input;
  size_t at = 0;
  while (at < count && at < chat->probe_count && tokens[at] == chat->probe[at]) at++;
  wick_status status = media_prompt_add_tokens(&input->prompt, tokens, at, error);
  for (uint32_t i = 0; i < input->item_count && status == WICK_OK; i++) {
    status = add_item(input, i, error);
  }
  return status == WICK_OK ? media_prompt_add_tokens(&input->prompt, tokens + at, count - at, error)
                           : status;
}

exit_code media_chat_follow(media_chat *chat, wick_engine *engine, const wick_request *request,
                            generation_on_token on_token, void *context, generation *done) {
  wick_error error;
  media_input *input = chat->input;
  const int32_t *tokens;
  size_t count;
  media_prompt_free(&input->prompt);
  input->prompt = (media_prompt){.memory = &input->memory, .tokenizer = input->tokenizer};
  wick_status status =
      wick_chat_tokenize(engine, &request->conversation->chat, &tokens, &count, &error);
  if (status == WICK_OK) {
    status = chat->takes_parts ? replace_markers(chat, tokens, count, &error)
                               : put_in_front(chat, tokens, count, &error);
  }
  if (status != WICK_OK) return report_error("chat", &error);
  return media_request_follow(input, engine, request, on_token, context, done);
}
