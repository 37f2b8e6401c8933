// component/media_parts.c — see media_parts.h.
#include "media_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "media/formats.h"

// ---- sets ----

static bool keep(wick_engine *engine, media_set *set, uint32_t number, refusal *refused) {
  uint32_t *numbers = realloc(set->numbers, (set->count + 1) * sizeof *set->numbers);
  if (numbers == NULL) {
    wick_media_remove(engine, number);
    return refuse_memory(refused, "the images");
  }
  set->numbers = numbers;
  set->numbers[set->count++] = number;
  return true;
}

void media_set_free(wick_engine *engine, media_set *set) {
  for (uint32_t i = 0; i < set->count; i++) wick_media_remove(engine, set->numbers[i]);
  free(set->numbers);
  *set = (media_set){0};
}

uint32_t media_set_next(const wick_engine *engine, const media_set *set) {
  wick_media_info info;
  wick_error error;
  uint32_t at = 0;
  while (at < set->count &&
         wick_media_get_info(engine, set->numbers[at], &info, &error) == WICK_OK && info.is_ready) {
    at++;
  }
  return at;
}

// ---- checks ----

static bool is_type(const body *read, uint32_t part, const char *type) {
  return body_is(read, body_find(read, part, "type"), type);
}

static bool is_medium(const body *read, uint32_t part) {
  return is_type(read, part, "image_url") || is_type(read, part, "input_audio");
}

// Returns the URL of a part, which is {"url": ...} or the URL itself.
static uint32_t url_of(const body *read, uint32_t part) {
  const uint32_t image = body_find(read, part, "image_url");
  return body_is_text(read, image) ? image : body_find(read, image, "url");
}

static bool check_image(const body *read, uint32_t part, const char *at, refusal *refused) {
  char name[REFUSAL_PARAM_BYTES];
  const uint32_t url = url_of(read, part);
  snprintf(name, sizeof name, "%s.image_url", at);
  if (!body_is_text(read, url)) {
    return refuse(refused, 400, "invalid_value", name, "%s must have a url", at);
  }
  const wick_text text = body_text(read, url);
  return (text.size_bytes >= 5 && strncasecmp(text.bytes, "data:", 5) == 0) ||
         refuse(refused, 400, "unsupported_value", name,
                "%s must have a data URL: this server does not fetch URLs", at);
}

static bool check_audio(const body *read, uint32_t part, const char *at, refusal *refused) {
  char name[REFUSAL_PARAM_BYTES];
  const uint32_t audio = body_find(read, part, "input_audio");
  snprintf(name, sizeof name, "%s.input_audio", at);
  return (body_is_text(read, body_find(read, audio, "data")) &&
          body_is_text(read, body_find(read, audio, "format"))) ||
         refuse(refused, 400, "invalid_value", name, "%s must have data and a format", at);
}

static bool check_part(const body *read, uint32_t part, const char *at, refusal *refused) {
  const uint32_t type = body_find(read, part, "type");
  if (body_is(read, type, "text") && body_is_text(read, body_find(read, part, "text"))) return true;
  if (body_is(read, type, "image_url")) return check_image(read, part, at, refused);
  if (body_is(read, type, "input_audio")) return check_audio(read, part, at, refused);
  if (!body_is_text(read, type) || body_is(read, type, "text")) {
    return refuse_value(refused, at, "a part with a type and a text");
  }
  const wick_text kind = body_text(read, type);
  return refuse(refused, 400, "unsupported_value", at,
                "%s is of type %.*s: text, image_url and input_audio are supported", at,
                (int)(kind.size_bytes < 40 ? kind.size_bytes : 40), kind.bytes);
}

bool media_check_parts(const body *read, uint32_t content, const char *name, refusal *refused) {
  BODY_EACH(read, part, content) {
    char at[REFUSAL_PARAM_BYTES];
    snprintf(at, sizeof at, "%s[%u]", name, (unsigned)body_node(read, part)->index);
    if (!check_part(read, part, at, refused)) return false;
  }
  return true;
}

// ---- bytes ----

// Returns the value of a base64 digit; 64 for other characters.
static uint32_t base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return (uint32_t)(c - 'A');
  if (c >= 'a' && c <= 'z') return (uint32_t)(c - 'a') + 26;
  if (c >= '0' && c <= '9') return (uint32_t)(c - '0') + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : 64;
}

// Decodes base64. Returns false if the text is invalid.
static bool base64_put(buffer *out, const char *text, size_t size_bytes) {
  while (size_bytes > 0 && text[size_bytes - 1] == '=') size_bytes--;
  uint8_t *to = (uint8_t *)buffer_reserve(out, size_bytes / 4 * 3 + 3);
  uint32_t bits = 0;
  size_t count = 0;
  for (size_t i = 0; to != NULL && i < size_bytes; i++) {
    const uint32_t value = base64_value(text[i]);
    if (value == 64) return false;
    bits = bits << 6 | value;
    if (i % 4 != 0) to[count++] = (uint8_t)(bits >> (6 - i % 4 * 2));
  }
  if (to != NULL) buffer_grow(out, count);
  return size_bytes % 4 != 1;
}

// Decodes data:TYPE;base64,DATA, or just DATA.
static bool take_bytes(wick_text text, bool is_url, const char *at, buffer *out, refusal *refused) {
  static const char END[] = ";base64";
  if (is_url) {
    const char *comma = memchr(text.bytes, ',', text.size_bytes);
    const size_t head = comma == NULL ? 0 : (size_t)(comma - text.bytes);
    const size_t end_bytes = sizeof END - 1;
    if (head < end_bytes || strncasecmp(comma - end_bytes, END, end_bytes) != 0) {
      return refuse(refused, 400, "invalid_value", at, "%s: the data URL must be in base64", at);
    }
    text = (wick_text){comma + 1, text.size_bytes - head - 1};
  }
  if (text.size_bytes / 4 * 3 > MEDIA_FILE_BYTES_MAX + 2u) {
    return refuse(refused, 400, "invalid_value", at, "%s: the file has more than %u bytes", at,
                  (unsigned)MEDIA_FILE_BYTES_MAX);
  }
  if (!base64_put(out, text.bytes, text.size_bytes)) {
    return refuse(refused, 400, "invalid_value", at, "%s: the data is not base64", at);
  }
  return !out->has_failed || refuse_memory(refused, "the images");
}

// ---- media ----

static bool refuse_at(refusal *refused, const char *at, const wick_error *error) {
  wick_error placed = *error;
  snprintf(placed.message, sizeof placed.message, "%s: %s", at, error->message);
  return refuse_error(refused, &placed, "messages", NULL);
}

static bool add_image(wick_engine *engine, const buffer *file, const char *at, uint32_t *number,
                      refusal *refused) {
  uint32_t width, height;
  size_t first;
  wick_error error;
  if (!ppm_parse((const uint8_t *)file->bytes, file->size_bytes, &width, &height, &first)) {
    return refuse(refused, 400, "unsupported_value", at,
                  "%s: this host decodes only PPM images (P6, 8 bits)", at);
  }
  const uint64_t wanted = (uint64_t)width * height * 3;
  const size_t found = first < file->size_bytes ? file->size_bytes - first : 0;
  if (found < wanted) {
    return refuse(refused, 400, "invalid_value", at, "%s: PPM image has only %zu of %llu bytes", at,
                  found, (unsigned long long)wanted);
  }
  const uint8_t *rgb = (const uint8_t *)file->bytes + first;
  return wick_media_add_image(engine, rgb, width, height, number, &error) == WICK_OK ||
         refuse_at(refused, at, &error);
}

static bool add_audio(wick_engine *engine, const buffer *file, const char *at, uint32_t *number,
                      refusal *refused) {
  wav_file wav;
  wick_error error;
  const char *why = wav_parse((const uint8_t *)file->bytes, file->size_bytes, &wav);
  if (why != NULL) {
    return refuse(refused, 400, "unsupported_value", at,
                  "%s: this host decodes only WAV recordings at 16 kHz: %s", at, why);
  }
  float *samples = calloc((size_t)wav.count + 1, sizeof *samples);
  if (samples == NULL) {
    return refuse_memory(refused, "a recording");
  }
  for (uint64_t i = 0; i < wav.count; i++) samples[i] = wav_sample(&wav, i);
  const wick_status status = wick_media_add_audio(engine, samples, wav.count, number, &error);
  free(samples);
  if (status == WICK_E_NONFINITE) error.status = WICK_E_ARG;  // caused by the client's samples
  return status == WICK_OK || refuse_at(refused, at, &error);
}

static bool take_part(wick_engine *engine, const body *read, uint32_t part, const char *at,
                      media_set *to, refusal *refused) {
  const bool is_image = is_type(read, part, "image_url");
  const uint32_t audio = body_find(read, part, "input_audio");
  const uint32_t node = is_image ? url_of(read, part) : body_find(read, audio, "data");
  buffer file = {0};
  uint32_t number = 0;
  if (!wick_media_has(engine, is_image ? WICK_MEDIA_IMAGE : WICK_MEDIA_AUDIO)) {
    return refuse(refused, 400, "unsupported_value", at,
                  "%s: %s need an mmproj file that supports them", at,
                  is_image ? "images" : "recordings");
  }
  const bool is_taken = take_bytes(body_text(read, node), is_image, at, &file, refused) &&
                        (is_image ? add_image : add_audio)(engine, &file, at, &number, refused);
  buffer_free(&file);
  return is_taken && keep(engine, to, number, refused);
}

// Rejects a prompt whose media alone exceed the context, before they are encoded.
static bool check_context(wick_engine *engine, const media_set *set, refusal *refused) {
  wick_plan plan;
  wick_media_info info;
  wick_error error;
  uint64_t tokens = 0;
  if (wick_memory_plan(engine, &plan, &error) != WICK_OK) return true;
  for (uint32_t i = 0; i < set->count; i++) {
    if (wick_media_get_info(engine, set->numbers[i], &info, &error) == WICK_OK) {
      tokens += info.tokens;
    }
  }
  return tokens <= plan.context_tokens ||
         refuse(refused, 400, "context_length_exceeded", "messages",
                "prompt: images and recordings have %llu tokens, limit is %u (context)",
                (unsigned long long)tokens, (unsigned)plan.context_tokens);
}

// Returns the first medium at or after a part; 0 if there is none.
static uint32_t next_medium(const body *read, uint32_t part) {
  while (part != 0 && !is_medium(read, part)) part = body_node(read, part)->next;
  return part;
}

static uint32_t first_medium(const body *read, uint32_t message) {
  const json_node *content = body_node(read, body_find(read, message, "content"));
  return content->kind == JSON_ARRAY ? next_medium(read, content->first) : 0;
}

bool media_is_in(const body *read, uint32_t messages) {
  BODY_EACH(read, message, messages) {
    if (first_medium(read, message) != 0) return true;
  }
  return false;
}

bool media_take_parts(wick_engine *engine, const body *read, uint32_t messages, media_set *to,
                      refusal *refused) {
  BODY_EACH(read, message, messages) {
    for (uint32_t part = first_medium(read, message); part != 0;
         part = next_medium(read, body_node(read, part)->next)) {
      char at[REFUSAL_PARAM_BYTES];
      snprintf(at, sizeof at, "messages[%u].content[%u]", (unsigned)body_node(read, message)->index,
               (unsigned)body_node(read, part)->index);
      if (!take_part(engine, read, part, at, to, refused)) return false;
    }
  }
  return check_context(engine, to, refused);
}

// ---- messages ----

static wick_text text_of(const body *read, uint32_t part, const char *marker) {
  return is_medium(read, part) ? (wick_text){marker, strlen(marker)}
                               : body_text(read, body_find(read, part, "text"));
}

static void put_text_part(json_writer *json, wick_text text) {
  json_open(json, NULL, '{');
  json_text(json, "type", "text");
  json_string(json, "text", text.bytes, text.size_bytes);
  json_close(json, '{');
}

// Writes the content as a string. Only adjacent texts are separated by a line break.
static void put_text_content(json_writer *json, buffer *out, const body *read, uint32_t content,
                             const char *marker) {
  buffer text = {0};
  bool follows_text = false;
  BODY_EACH(read, part, content) {
    const wick_text one = text_of(read, part, marker);
    if (follows_text && !is_medium(read, part)) buffer_put(&text, "\n", 1);
    buffer_put(&text, one.bytes, one.size_bytes);
    follows_text = !is_medium(read, part);
  }
  json_string(json, "content", text.bytes == NULL ? "" : text.bytes, text.size_bytes);
  out->has_failed = out->has_failed || text.has_failed;
  buffer_free(&text);
}

// Writes the content as a list. The last part, which templates ignore, prevents the engine from
// joining the list into a string.
static void put_list_content(json_writer *json, const body *read, uint32_t content,
                             const char *marker) {
  json_open(json, "content", '[');
  if (body_is_text(read, content)) put_text_part(json, body_text(read, content));
  BODY_EACH(read, part, content) put_text_part(json, text_of(read, part, marker));
  json_open(json, NULL, '{');
  json_text(json, "type", "none");
  json_close(json, '{');
  json_close(json, '[');
}

void media_put_messages(json_writer *json, buffer *out, const body *read, uint32_t messages,
                        const char *marker, media_form form) {
  json_open(json, "messages", '[');
  BODY_EACH(read, message, messages) {
    const uint32_t content = body_find(read, message, "content");
    const bool is_list = body_node(read, content)->kind == JSON_ARRAY;
    json_open(json, NULL, '{');
    BODY_EACH(read, node, message) {
      if (node == content && (is_list || form == MEDIA_AS_LISTS)) continue;
      json_member(json, (const char *)body_node(read, node)->key.bytes);
      body_put_source(read, node, out);
    }
    if (form == MEDIA_AS_LISTS) put_list_content(json, read, content, marker);
    if (form == MEDIA_AS_TEXTS && is_list) put_text_content(json, out, read, content, marker);
    json_close(json, '{');
  }
  json_close(json, '[');
}

wick_status media_tokenize(wick_engine *engine, const wick_chat *chat, const media_set *set,
                           wick_request *request, wick_error *error) {
  const wick_media_prompt prompt = {.chat = chat,
                                    .marker = set->marker,
                                    .marker_bytes = strlen(set->marker),
                                    .media = set->numbers,
                                    .media_count = set->count};
  return wick_media_tokenize(engine, &prompt, &request->tokens, &request->token_count, error);
}

bool media_is_other_form(wick_status status, const wick_error *error) {
  return status == WICK_E_ARG && error->subject == WICK_SUBJECT_PROMPT;
}
