// api/conversation.c — a conversation as a request: its prompt, the constraints of its reply, and
// the parsing of the reply.
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "grammar/grammar.h"
#include "reply/forms.h"
#include "reply/parser.h"

typedef struct conversation {
  wick_request request;  // the request of wick_request_submit, completed
  wick_grammar grammar;
  wick_reasoning reasoning;
  reply_wish wish;
  wick_text choice;  // of tools, as JSON
  bool is_parallel;
  char *text;  // of the grammar
} conversation;

static const wick_text AUTO = {"\"auto\"", 6}, NO_CALLS = {"\"none\"", 6};

static bool is_text(wick_text a, wick_text b) {
  return a.size_bytes == b.size_bytes && memcmp(a.bytes, b.bytes, a.size_bytes) == 0;
}

static wick_status refuse(wick_subject subject, const char *why, wick_error *error) {
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%s", why);
  return status_about(WICK_E_ARG, error, subject, 0, 0);
}

// ---- the caller's settings ----

static wick_text trimmed(const char *bytes, size_t size_bytes) {
  while (size_bytes > 0 && json_is_space((uint8_t)*bytes)) bytes++, size_bytes--;
  while (size_bytes > 0 && json_is_space((uint8_t)bytes[size_bytes - 1])) size_bytes--;
  return (wick_text){bytes, size_bytes};
}

// Returns a member of the variables as raw JSON, the last one if several have this name; if `bytes`
// is NULL, there is none. The template has parsed the JSON, so it is valid.
static wick_text member_of(const wick_chat *chat, wick_text name) {
  wick_text key = {0}, found = {0};
  size_t from = 0;  // the offset of the member's value
  uint32_t depth = 0;
  for (size_t at = 0; at < chat->json_bytes; at++) {
    const char c = chat->json[at];
    if (c == '"') {
      const size_t begin = ++at;
      while (at < chat->json_bytes && chat->json[at] != '"') at += chat->json[at] == '\\' ? 2 : 1;
      if (from == 0) key = (wick_text){chat->json + begin, at - begin};
    }
    if (depth == 1 && c == ':') from = at + 1;
    if (depth == 1 && (c == ',' || c == '}')) {
      if (from != 0 && is_text(key, name)) found = trimmed(chat->json + from, at - from);
      from = 0;
    }
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
  }
  return found.bytes != NULL && *found.bytes == 'n' ? (wick_text){0} : found;
}

static wick_status read_tools(const wick_conversation *asked, conversation *made,
                              wick_error *error) {
  static const wick_text TOOLS = {"tools", 5}, CHOICE = {"tool_choice", 11},
                         PARALLEL = {"parallel_tool_calls", 19};
  const wick_chat *chat = &asked->chat;
  const wick_text tools = member_of(chat, TOOLS);
  wick_text *choice = &made->choice;
  made->is_parallel = !asked->one_call;
  *choice = trimmed(asked->tool_choice, asked->tool_choice_bytes);
  if (choice->size_bytes == 0) {
    *choice = member_of(chat, CHOICE);
    const wick_text parallel = member_of(chat, PARALLEL);
    made->is_parallel = parallel.bytes == NULL || *parallel.bytes != 'f';
  }
  if (choice->size_bytes == 0) *choice = AUTO;
  const bool is_empty =
      tools.bytes == NULL || trimmed(tools.bytes + 1, tools.size_bytes - 1).size_bytes == 1;
  if (is_text(*choice, NO_CALLS)) return WICK_OK;
  if (is_empty && !is_text(*choice, AUTO)) {
    return refuse(WICK_SUBJECT_TOOL_CHOICE, "tool_choice needs tools", error);
  }
  if (!is_empty) made->wish.tools = tools;
  return WICK_OK;
}

// ---- the prompt ----

// Renders the conversation, whose text is kept. Its tokens follow when its grammar is compiled.
static wick_status render(wick_engine *engine, const wick_chat *chat, const wick_request *request,
                          wick_error *error) {
  wick_chat_text text;
  const wick_status status =
      request->tokens == NULL ? wick_tokenizer_status(engine, error) : WICK_OK;
  return status == WICK_OK ? wick_chat_render(engine, chat, &text, error) : status;
}

// Returns the number of tokens that the session and the conversation have in common. The request
// keeps the remaining ones: at least one, because the reply needs its logits.
static uint32_t find_common(const session *session, wick_request *request) {
  const int32_t *had = session->tokens, *tokens = request->tokens;
  uint32_t same = 0;
  while (same < session->count && same + 1 < request->token_count && had[same] == tokens[same]) {
    same++;
  }
  const bool is_cut =
      (same < session->count && had[same] < 0) || (same < request->token_count && tokens[same] < 0);
  while (is_cut && same > 0 && tokens[same - 1] < 0) same--;  // do not split an image
  request->tokens += same;
  request->token_count -= same;
  return same;
}

// ---- the reply ----

static void write_grammar(const conversation *made, const wick_grammar *content, json_room *out) {
  const reply_wish *wish = &made->wish;
  json_writer json;
  json_begin(&json, json_room_put, out);
  reply_grammar_begin(&json, &wish->format);
  if (wish->tools.bytes != NULL) {
    json_member(&json, "tools");
    json_room_put(out, wish->tools.bytes, wish->tools.size_bytes);
    json_member(&json, "tool_choice");
    json_room_put(out, made->choice.bytes, made->choice.size_bytes);
    json_bool(&json, "parallel_tool_calls", made->is_parallel);
  }
  json_bool(&json, "has_begun", wish->has_begun);
  if (content != NULL) {
    json_open(&json, "content", '{');
    json_u64(&json, "kind", content->kind);
    json_string(&json, "text", content->text, content->text_bytes);
    json_close(&json, '{');
  }
  json_string(&json, "ending", wish->ending.bytes, wish->ending.size_bytes);
  json_close(&json, '{');
}

// Returns the part of the content that is in the prompt. The beginning of a reply may close the
// reasoning first. Content that mentions reasoning is not part of the reply's beginning.
static wick_text begin_content(reply_wish *wish, const wick_chat *chat) {
  const reply_thought *thought = &REPLY_THOUGHTS[wish->format.thought];
  const size_t close_bytes = strlen(thought->close);
  const char *end = wish->ending.bytes + wish->ending.size_bytes;
  wick_text begun = {end - chat->prefix_bytes, chat->prefix_bytes};
  size_t at = close_bytes;
  while (at <= begun.size_bytes &&
         memcmp(begun.bytes + at - close_bytes, thought->close, close_bytes) != 0) {
    at++;
  }
  const bool is_closed = at <= begun.size_bytes;
  if (!is_closed) at = 0;
  const wick_text text = trimmed(begun.bytes + at, begun.size_bytes - at);
  if (is_closed) begun = (wick_text){text.bytes, (size_t)(end - text.bytes)};
  const size_t opens_at = is_closed ? 0 : strlen(thought->open);
  if (parser_find_last(text.bytes, text.size_bytes, thought->open) > opens_at) {
    wish->ending.size_bytes -= begun.size_bytes;
  }
  return begun;
}

// Builds the grammar of the reply: its reasoning, its content and its calls. Required calls follow
// the prefix.
static wick_status limit_reply(wick_engine *engine, wick_text begun, const wick_grammar *content,
                               conversation *made, wick_error *error) {
  const bool may_follow = made->wish.tools.bytes == NULL || is_text(made->choice, AUTO);
  json_room room = {0};
  write_grammar(made, content, &room);
  made->text = memory_alloc(&engine->memory, room.size_bytes);
  if (made->text == NULL) return memory_fail(&engine->memory, error, "a grammar's text");
  made->grammar = (wick_grammar){.kind = GRAMMAR_REPLY,
                                 .text = made->text,
                                 .text_bytes = room.size_bytes,
                                 .begun = begun.bytes,
                                 .begun_bytes = may_follow ? begun.size_bytes : 0};
  made->request.grammar = &made->grammar;
  room = (json_room){.bytes = made->text};
  write_grammar(made, content, &room);
  return WICK_OK;
}

static wick_status make_reply(wick_engine *engine, const wick_conversation *asked,
                              conversation *made, wick_error *error) {
  wick_request *request = &made->request;
  const wick_grammar *given = request->grammar;
  const wick_grammar *content = asked->is_grammar_whole ? NULL : given;
  reply_wish *wish = &made->wish;
  wish->format = engine_reply_format(engine);
  wish->has_parts = true;
  wish->ending = engine->chat.ending;
  const wick_text begun = begin_content(wish, &asked->chat);
  if (content != NULL) wish->content = content->kind;
  const bool has_reasoning = reply_format_has_reasoning(&wish->format);
  const bool has_tools = wish->tools.bytes != NULL;
  if (request->reasoning != NULL && has_reasoning) {
    made->reasoning = *request->reasoning;
    made->reasoning.ending = wish->ending.bytes;
    made->reasoning.ending_bytes = wish->ending.size_bytes;
    request->reasoning = &made->reasoning;
  } else {
    request->reasoning = NULL;
  }
  wish->is_plain = !has_tools && !has_reasoning;
  if (!wish->is_plain) {
    request->print_special = has_tools || reply_format_has_control_marks(&wish->format);
    const bool is_limited = content != NULL || (has_tools && given == NULL);
    return is_limited ? limit_reply(engine, begun, content, made, error) : WICK_OK;
  }
  if (content != NULL) {
    made->grammar = *content;
    made->grammar.begun = asked->chat.prefix;
    made->grammar.begun_bytes = asked->chat.prefix_bytes;
    request->grammar = &made->grammar;
  }
  return WICK_OK;
}

// Makes the request of a conversation. WICK_E_BUSY: its grammar is not compiled yet. The result is
// valid until the next wick_chat_* call; the caller frees its text.
static wick_status make(wick_engine *engine, const wick_request *request, conversation *made,
                        wick_error *error) {
  const wick_conversation *asked = request->conversation;
  *made = (conversation){.request = *request, .wish.has_begun = asked->chat.prefix_bytes > 0};
  made->request.conversation = NULL;
  if (request->grammar != NULL && request->grammar->kind == WICK_GRAMMAR_NONE) {
    made->request.grammar = NULL;
  }
  if (request->text_bytes != 0) {
    return refuse(WICK_SUBJECT_PROMPT, "a conversation has its own text", error);
  }
  wick_status status = STATUS_CHECK_RESERVED("wick_conversation", asked->reserved, error);
  wick_request *own = &made->request;
  if (status == WICK_OK) status = render(engine, &asked->chat, own, error);
  if (status == WICK_OK) status = read_tools(asked, made, error);
  if (status == WICK_OK) status = make_reply(engine, asked, made, error);
  if (status == WICK_OK) status = engine_prepare_grammar(engine, own, error);
  if (status != WICK_OK || own->tokens != NULL) return status;
  return wick_chat_tokenize(engine, &asked->chat, &own->tokens, &own->token_count, error);
}

// ---- submitting ----

static bool is_refused(wick_status status, wick_subject subject) {
  const bool is_of_tools = subject == WICK_SUBJECT_TOOLS || subject == WICK_SUBJECT_TOOL_CHOICE;
  return status != WICK_OK && status != WICK_E_NOMEM &&
         (is_of_tools || subject == WICK_SUBJECT_GRAMMAR);
}

static wick_status submit(wick_engine *engine, const conversation *made, const media_list *media,
                          uint32_t *id, wick_error *error) {
  return media == NULL ? engine_submit_tokens(engine, &made->request, &made->wish, id, error)
                       : engine_submit(engine, &made->request, media, &made->wish, id, error);
}

static wick_status submit_made(wick_engine *engine, conversation *made, const media_list *media,
                               uint32_t *id, wick_error *error) {
  wick_status status = submit(engine, made, media, id, error);
  // Optional calls that cannot be constrained are left unconstrained.
  const bool is_of_tools =
      made->grammar.kind == GRAMMAR_REPLY && made->wish.content == WICK_GRAMMAR_NONE;
  if (!is_of_tools || !is_refused(status, error->subject)) return status;
  if (made->is_parallel && is_text(made->choice, AUTO)) {
    made->request.grammar = NULL;
    return submit(engine, made, media, id, error);
  }
  if (error->subject == WICK_SUBJECT_GRAMMAR) error->subject = WICK_SUBJECT_TOOLS;
  return status;
}

// Submits a request on a session. When it is accepted, the session drops tokens that are not part
// of the conversation.
static wick_status submit_on_session(wick_engine *engine, conversation *made,
                                     const media_list *media, uint32_t *id, wick_error *error) {
  session *session;
  const wick_status found =
      session_find_idle(&engine->sessions, made->request.session, &session, error);
  if (session == NULL) return found;
  const uint32_t count = session->count, media_count = session->media.count;
  const uint32_t same = session->count = find_common(session, &made->request);
  media_list *spans = &session->media;
  while (spans->count > 0 && spans->places[spans->count - 1].first >= same) spans->count--;
  const wick_status status = submit_made(engine, made, media, id, error);
  session->count = count;
  spans->count = media_count;
  if (status == WICK_OK) session_cut(&engine->sessions, session, same);
  return status;
}

wick_status engine_submit_conversation(wick_engine *engine, const wick_request *request,
                                       const media_list *media, uint32_t *id, wick_error *error) {
  conversation made;
  wick_error refusal = {0};
  wick_status status = make(engine, request, &made, &refusal);
  if (status == WICK_OK) {
    status = request->session == 0 ? submit_made(engine, &made, media, id, &refusal)
                                   : submit_on_session(engine, &made, media, id, &refusal);
  }
  memory_free(&engine->memory, made.text);
  return status == WICK_OK ? WICK_OK : engine_repeat_error(&refusal, error);
}
