// reply/parser.c — the queue, text between tags, and events.
#include "reply/parser.h"

#include <string.h>

#include "base/text.h"

enum {
  FEED_BYTES = 4096,
  SPACE_HELD_BYTES_MAX = 256,
  WORD_CUT_BYTES = 4,   // for a tag that is an ordinary word
  CUT_BYTES_MAX = 1024  // for a call that was cut off before its name was known
};

// Roles of tags.
enum { ROLE_CALL, ROLE_CALLS_END, ROLE_CHANNEL, ROLE_THOUGHT, ROLE_THOUGHT_END, ROLE_WRAPPER };

bool text_is_equal(const reply_text *text, const char *wanted) {
  return text->size_bytes == strlen(wanted) && memcmp(text->bytes, wanted, text->size_bytes) == 0;
}

// ---- events ----

static void send(reply_parser *p, size_t count) {
  const reply_event event = {.kind = p->out_kind,
                             .call = p->out_kind < REPLY_CALL_BEGINS ? 0 : p->calls,
                             .text = p->out,
                             .text_bytes = count,
                             .id = ""};
  if (count > 0) p->sink(p->sink_context, &event);
  memmove(p->out, p->out + count, p->out_count - count);
  p->out_count -= count;
}

// Returns the length of the collected text up to its last whole character.
static size_t whole_characters(const reply_parser *p) {
  const uint8_t *bytes = (const uint8_t *)p->out;
  for (size_t back = 1; back <= 3 && back <= p->out_count; back++) {
    uint32_t code = 0;
    const size_t at = p->out_count - back;
    if (bytes[at] < 0x80) break;
    if (bytes[at] >= 0xc0) return utf8_decode(bytes + at, back, &code) < 0 ? at : p->out_count;
  }
  return p->out_count;
}

void parser_show(reply_parser *p) { send(p, p->out_count); }

void parser_put(reply_parser *p, reply_event_kind kind, const uint8_t *bytes, size_t size_bytes) {
  if (p->is_silent && kind == REPLY_CALL_ARGUMENTS) return;
  if (kind != p->out_kind) parser_show(p);
  p->out_kind = kind;
  for (size_t i = 0; i < size_bytes; i++) {
    if (p->out_count == OUT_BYTES) {
      const size_t whole = whole_characters(p);
      send(p, whole > 0 ? whole : p->out_count);
    }
    p->out[p->out_count++] = (char)bytes[i];
  }
}

void parser_put_text(reply_parser *p, const char *text) {
  parser_put(p, REPLY_CALL_ARGUMENTS, (const uint8_t *)text, strlen(text));
}

void parser_put_escaped(reply_parser *p, uint8_t byte) {
  char escaped[6];
  const size_t count = escape_byte(byte, escaped);
  parser_put(p, REPLY_CALL_ARGUMENTS, (const uint8_t *)escaped, count);
}

void parser_put_string(reply_parser *p, const void *bytes, size_t size_bytes) {
  parser_put_text(p, "\"");
  for (size_t i = 0; i < size_bytes; i++) parser_put_escaped(p, ((const uint8_t *)bytes)[i]);
  parser_put_text(p, "\"");
}

uint64_t parser_base_bytes(const reply_parser *p) { return p->taken_bytes - (p->count - p->base); }

void parser_fail(reply_parser *p, wick_status status, const char *what) {
  if (p->status != WICK_OK) return;
  parser_show(p);
  const bool is_cut = status == WICK_E_TRUNCATED;
  const uint64_t at = p->taken_bytes - (p->count - p->at) - (is_cut ? 0 : 1);
  p->status =
      fail_with(&p->error, status, at, "the reply's call %u (%.*s), byte %llu: %s", p->calls,
                (int)p->name.size_bytes, p->name.bytes, (unsigned long long)at, what);
  p->error.numbers[0] = p->begun ? p->call_at : parser_base_bytes(p);
  p->error.numbers[1] = p->calls;
}

// ---- text ----

// Whether a byte may be between calls: white space or, in Llama's calls without tags, a semicolon.
static bool is_gap(const reply_parser *p, size_t at) {
  return json_is_space(p->held[at]) || (p->held[at] == ';' && p->has_bare && p->is_fresh);
}

void parser_give(reply_parser *p, size_t end) {
  const reply_event_kind kind = p->is_reasoning ? REPLY_REASONING : REPLY_CONTENT;
  while (p->trims && p->base < end &&
         (p->calls > 0 ? is_gap(p, p->base) : json_is_space(p->held[p->base]))) {
    p->base++;
  }
  if (p->base >= end) return;
  p->trims = false;
  p->is_fresh = false;
  parser_put(p, kind, p->held + p->base, end - p->base);
  p->base = end;
}

void parser_enter_text(reply_parser *p, bool is_reasoning) {
  p->place = PLACE_TEXT;
  p->is_reasoning = is_reasoning;
  p->certain = p->at;
  marks_restart(is_reasoning ? &p->reasoning : &p->content);
}

static void enter_after_mark(reply_parser *p, bool is_reasoning) {
  p->base = p->at;
  p->trims = is_reasoning || !p->is_exact;
  parser_enter_text(p, is_reasoning);
}

// Returns the text that is certain, except for white space at its end, where a tag may follow.
static void give_certain(reply_parser *p, size_t end) {
  for (; p->certain < end; p->certain++) {
    const bool is_open = p->tools == NULL && !p->is_reasoning && !p->is_fresh;
    const bool is_over = is_open || p->certain - p->base >= SPACE_HELD_BYTES_MAX;
    if (!is_gap(p, p->certain) || is_over) parser_give(p, p->certain + 1);
  }
}

static void take_mark(reply_parser *p, const reply_mark *mark) {
  switch (mark->role) {
    case ROLE_CALL:
      call_enter(p, mark->text);
      break;
    case ROLE_CALLS_END:
      p->base = p->at;
      parser_enter_text(p, false);
      break;
    case ROLE_CHANNEL:
      channels_enter(p, mark->text, mark->size_bytes);
      break;
    case ROLE_THOUGHT:
      enter_after_mark(p, true);
      break;
    case ROLE_THOUGHT_END:
      enter_after_mark(p, false);
      p->is_fresh = true;
      break;
    default:
      enter_after_mark(p, false);
      break;
  }
}

// Whether a call without a tag may begin here.
static bool is_bare_place(const reply_parser *p, uint8_t byte) {
  return (byte == '{' || byte == '[') && p->is_fresh && !p->is_prose && !p->is_reasoning &&
         p->content.pending == 0 && p->tools != NULL;
}

// Whether the whole reply may be a call, in a format of a different model.
static bool is_whole_place(const reply_parser *p, uint8_t byte) {
  return (byte == '{' || byte == '`') && p->is_fresh && p->calls == 0 && !p->is_prose &&
         !p->is_reasoning && !p->is_limited && !p->has_bare && p->content.pending == 0 &&
         p->tools != NULL;
}

// Whether a tag is recognised here. At the beginning of the text, a tag opens reasoning, and a
// stray end of a call is dropped; elsewhere the text only mentions these tags.
static bool counts(const reply_parser *p, const reply_mark *mark) {
  if (mark->role == ROLE_THOUGHT) return p->is_fresh;
  return mark->role != ROLE_CALLS_END || (p->is_fresh && p->calls > 0);
}

// Whether a call is within reasoning. If so, only the end of the reasoning shows that it was not a
// call.
static bool waits_for_close(reply_parser *p, const reply_mark *mark) {
  if (!p->is_reasoning || p->is_ending) return false;
  const bool is_call = mark != NULL && mark->role == ROLE_CALL;
  if (is_call && !p->awaits_close) {
    give_certain(p, p->at - mark->size_bytes);
    p->awaits_close = true;
  }
  const bool is_closed = mark != NULL && !is_call;
  if (is_closed || p->at - p->base > REPLY_HELD_BYTES_MAX) p->awaits_close = false;
  return p->awaits_close;
}

static void text_step(reply_parser *p, uint8_t byte) {
  if (p->is_limited && !p->is_fresh && !p->is_reasoning) {
    parser_give(p, p->at);
    p->certain = p->at;
    return;
  }
  if (is_bare_place(p, byte)) {
    p->at--;
    call_enter(p, "");
    if (p->place == PLACE_CALL) return;
    p->at++;
  }
  if (is_whole_place(p, byte)) {
    p->at--;
    call_enter_whole(p, byte);
    return;
  }
  reply_marks *marks = p->is_reasoning ? &p->reasoning : &p->content;
  const reply_mark *mark = marks_step(marks, byte);
  if (waits_for_close(p, mark)) return;
  if (mark != NULL) {
    give_certain(p, p->at - mark->size_bytes);
    if (counts(p, mark)) {
      take_mark(p, mark);
      return;
    }
  }
  give_certain(p, p->at - marks->pending);
}

// ---- the queue ----

static void compact(reply_parser *p) {
  if (p->base == 0 || (p->base < p->count && p->base < FEED_BYTES)) return;
  if (p->base < p->count && p->base < p->count - p->base) return;
  memmove(p->held, p->held + p->base, p->count - p->base);
  p->at -= p->base;
  p->count -= p->base;
  p->certain = p->certain > p->base ? p->certain - p->base : 0;
  p->base = 0;
}

static bool reserve(reply_parser *p, size_t more) {
  if (p->capacity - p->count >= more) return true;
  size_t wanted = p->capacity == 0 ? 2 * (size_t)FEED_BYTES : 2 * p->capacity;
  while (wanted - p->count < more) wanted *= 2;
  uint8_t *held = memory_resize(p->memory, p->held, wanted);
  if (held == NULL) {
    p->status = memory_fail(p->memory, &p->error, "a reply");
    return false;
  }
  p->held = held;
  p->capacity = wanted;
  return true;
}

static void pump(reply_parser *p) {
  while (p->at < p->count && p->status == WICK_OK) {
    const uint8_t byte = p->held[p->at++];
    p->steps++;
    switch (p->place) {
      case PLACE_TEXT:
        text_step(p, byte);
        break;
      case PLACE_HEADER:
        channels_step(p, byte);
        break;
      default:
        call_step(p, byte);
        break;
    }
  }
}

static wick_status answer(reply_parser *p, wick_error *error) {
  if (p->status != WICK_OK && error != NULL) *error = p->error;
  return p->status;
}

wick_status reply_parser_feed(reply_parser *p, const char *text, size_t size_bytes, reply_sink sink,
                              void *context, wick_error *error) {
  p->sink = sink;
  p->sink_context = context;
  while (size_bytes > 0 && p->status == WICK_OK) {
    const size_t piece = size_bytes < FEED_BYTES ? size_bytes : FEED_BYTES;
    compact(p);
    if (!reserve(p, piece)) break;
    memcpy(p->held + p->count, text, piece);
    p->count += piece;
    p->taken_bytes += piece;
    pump(p);
    text += piece;
    size_bytes -= piece;
  }
  send(p, whole_characters(p));
  return answer(p, error);
}

// ---- the end ----

// Parses again the text that only the end of the reply can classify: calls in reasoning that was
// not closed, and a reply that is a single call.
static void read_held(reply_parser *p) {
  p->is_ending = true;
  if (p->place == PLACE_TEXT && p->awaits_close) {
    p->awaits_close = false;
    p->at = p->certain;
    parser_enter_text(p, true);
  } else if (!call_confirm_whole(p)) {
    return;
  }
  pump(p);
}

static bool is_header(const uint8_t *text, size_t size_bytes) {
  static const char RECIPIENT[] = "to=";
  while (size_bytes > 0 && json_is_space(*text)) text++, size_bytes--;
  const size_t compared = size_bytes < 3 ? size_bytes : 3;
  return size_bytes == 0 || *text == '<' || memcmp(text, RECIPIENT, compared) == 0;
}

// Returns the length of the partial tag at the end of the text, if any. An ending that can also
// occur in ordinary text does not count: a word, a closing bracket, or a single punctuation
// character after a space.
static size_t fragment_bytes(const reply_parser *p) {
  const size_t size = p->is_reasoning ? p->reasoning.pending : p->content.pending;
  const size_t from = p->count - size;
  const bool is_letters = (uint8_t)((p->held[from] | 32) - 'a') < 26;
  if (size == 0 || (size == 1 && p->held[from] == ']')) return 0;
  if (is_letters) return p->is_fresh && size >= WORD_CUT_BYTES ? size : 0;
  const bool is_word = !p->is_fresh && from > 0 && p->held[from - 1] == ' ';
  return size > 1 || !is_word ? size : 0;
}

// Returns the number of bytes at the end that belong to a tag or call that was cut off.
static size_t cut_bytes(const reply_parser *p) {
  const size_t held = p->count - p->base;
  if (p->place == PLACE_TEXT) return p->is_limited ? 0 : fragment_bytes(p);
  if (p->place == PLACE_HEADER) return is_header(p->held + p->base, held) ? held : 0;
  return held <= CUT_BYTES_MAX && call_is_certain(p) ? held : 0;
}

wick_status reply_parser_end(reply_parser *p, reply_sink sink, void *context, wick_error *error) {
  p->sink = sink;
  p->sink_context = context;
  read_held(p);
  if (p->begun) parser_fail(p, WICK_E_TRUNCATED, "the text ends within the arguments");
  const size_t cut = cut_bytes(p);
  if (cut > 0 && p->place == PLACE_CALL && call_is_known(p)) {
    parser_fail(p, WICK_E_TRUNCATED, "the text ends before the arguments");
  }
  size_t end = p->count - cut;
  while (cut > 0 && end > p->base && json_is_space(p->held[end - 1])) end--;
  if (p->status == WICK_OK) parser_give(p, end);
  parser_show(p);
  return answer(p, error);
}

bool reply_parser_is_reasoning(const reply_parser *p) {
  return p->place == PLACE_TEXT && p->is_reasoning && p->status == WICK_OK;
}

bool reply_parser_is_whole(const reply_parser *p) { return p->out_count == 0; }

uint64_t reply_parser_steps(const reply_parser *p) { return p->steps; }

// ---- beginning ----

static void add_marks(reply_parser *p) {
  const reply_thought *thought = &REPLY_THOUGHTS[p->format.thought];
  bool has_channels = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    const reply_form *form = &REPLY_FORMS[i];
    if ((p->format.forms >> i & 1) == 0) continue;
    if (form->arguments == ARGUMENTS_CHANNELS) {
      has_channels = true;
      marks_add(&p->content, form->open, ROLE_CHANNEL);
      marks_add(&p->reasoning, form->open, ROLE_CHANNEL);
    } else if (p->tools != NULL || (form->flags & FORM_RECIPIENT) != 0) {
      marks_add(&p->content, form->open, ROLE_CALL);
    }
    if (p->tools == NULL || form->arguments == ARGUMENTS_CHANNELS) continue;
    if (!has_channels) marks_add(&p->reasoning, form->open, ROLE_CALL);
    if (form->close != NULL) marks_add(&p->content, form->close, ROLE_CALLS_END);
    if ((form->flags & FORM_BARE) != 0) p->has_bare = true;
  }
  marks_add(&p->content, thought->open, ROLE_THOUGHT);
  marks_add(&p->content, thought->close, ROLE_THOUGHT_END);
  marks_add(&p->reasoning, thought->close, ROLE_THOUGHT_END);
  for (uint32_t i = 0; i < REPLY_WRAPPER_COUNT; i++) {
    if ((p->format.wrappers >> i & 1) == 0) continue;
    marks_add(&p->content, REPLY_WRAPPERS[i].mark, ROLE_WRAPPER);
    if (has_channels) marks_add(&p->reasoning, REPLY_WRAPPERS[i].mark, ROLE_THOUGHT_END);
  }
  marks_add(&p->header, "<|message|>", ROLE_CHANNEL);
}

size_t parser_find_last(const char *text, size_t size_bytes, const char *wanted) {
  const size_t count = strlen(wanted);
  for (size_t end = size_bytes; end >= count && count > 0; end--) {
    if (memcmp(text + end - count, wanted, count) == 0) return end;
  }
  return 0;
}

// Models that specify a recipient may omit the tag before the first recipient.
static void begin_with_recipient(reply_parser *p) {
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    const reply_form *form = &REPLY_FORMS[i];
    const bool is_own = (p->format.own >> i & 1) != 0;
    if (is_own && (form->flags & FORM_RECIPIENT) != 0) call_enter(p, form->open);
  }
}

// Sets the state of the reply after the generation prompt.
static void begin_after(reply_parser *p, const char *prompt, size_t size_bytes) {
  const reply_thought *thought = &REPLY_THOUGHTS[p->format.thought];
  const size_t opened = parser_find_last(prompt, size_bytes, thought->open);
  const size_t closed = parser_find_last(prompt, size_bytes, thought->close);
  p->is_fresh = true;
  parser_enter_text(p, false);
  if (opened > closed) enter_after_mark(p, true);
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    const reply_form *form = &REPLY_FORMS[i];
    const size_t open_bytes = strlen(form->open);
    const size_t end = parser_find_last(prompt, size_bytes, form->open);
    if ((p->format.forms >> i & 1) == 0 || end == 0 || form->open[0] == '\0') continue;
    if (form->arguments == ARGUMENTS_CHANNELS) {
      channels_enter(p, prompt + end - open_bytes, size_bytes - end + open_bytes);
      return;
    }
    if (end == size_bytes) {
      call_enter(p, form->open);
      return;
    }
  }
  begin_with_recipient(p);
}

void reply_parser_limit(reply_parser *p, bool has_begun, wick_grammar_kind content) {
  if (has_begun && !p->is_reasoning) p->is_fresh = false;
  p->is_limited = content != WICK_GRAMMAR_NONE;
  p->is_exact = p->is_limited && content != WICK_GRAMMAR_JSON_SCHEMA;
  if (p->is_exact && !p->is_reasoning) p->trims = false;
  if (p->is_limited) p->format.forms &= p->format.own;
}

wick_status reply_parser_create(memory_gate *memory, const reply_format *format, wick_text tools,
                                wick_text generation_prompt, reply_parser **out,
                                wick_error *error) {
  reply_parser *p = memory_alloc_zeroed(memory, sizeof *p);
  if (p == NULL) return memory_fail(memory, error, "a parser of replies");
  p->memory = memory;
  p->format = *format;
  if (tools.bytes != NULL) {
    const wick_status status = reply_tools_create(memory, tools, &p->tools, error);
    if (status != WICK_OK) {
      reply_parser_destroy(p);
      return status;
    }
  }
  add_marks(p);
  begin_after(p, generation_prompt.bytes, generation_prompt.size_bytes);
  if (!reserve(p, FEED_BYTES)) {
    const wick_status status = answer(p, error);
    reply_parser_destroy(p);
    return status;
  }
  *out = p;
  return WICK_OK;
}

void reply_parser_destroy(reply_parser *p) {
  if (p == NULL) return;
  reply_tools_destroy(p->tools);
  if (p->held != NULL) memory_free(p->memory, p->held);
  memory_free(p->memory, p);
}
