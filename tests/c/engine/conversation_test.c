// Requests that reply to a conversation: their prompts, the parts of their replies, sessions, and
// rejected input. The tokens of the replies are forced, so the tests know them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture_model.h"

enum { REPLY_BYTES = 2048, TOKENS_MAX = 200 };

#define TOOLS                                                                                  \
  "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":{\"type\":" \
  "\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}}}],"
#define HELLO(more) "{" more "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
static const char CALLS[] = "{% if 0 %}<tool_call>{% endif %}{{ messages[0].content }}|A|<think>";

typedef struct reply_record {
  char text[REPLY_BYTES];  // the parts: one letter for the kind, then the text
  size_t size_bytes;
  uint32_t last;  // the kind of the last part
  char plain[REPLY_BYTES];
  size_t plain_bytes;
  uint32_t tokens_prompt, finish, status;
  const wick_engine *engine;
  uint64_t calls_first, calls_last;
} reply_record;

static void add(reply_record *to, const char *text, size_t size_bytes) {
  if (!CHECK(to->size_bytes + size_bytes < REPLY_BYTES)) return;
  memcpy(to->text + to->size_bytes, text, size_bytes);
  to->size_bytes += size_bytes;
}

// Appends a part as a letter and its text: c content, r reasoning, n name, i id, a arguments, e
// end, b broken.
static void take(void *context, const wick_event *event, const uint8_t *after) {
  reply_record *to = context;
  const char *text = (const char *)after + event->top_count * 8;
  to->calls_last = to->engine->memory.calls;
  if (event->kind == WICK_EVENT_TOKEN || event->kind == WICK_EVENT_DONE) {
    if (to->calls_first == 0) to->calls_first = to->calls_last;
    if (event->finish == WICK_FINISH_ERROR) return;
    memcpy(to->plain + to->plain_bytes, text, event->text_bytes);
    to->plain_bytes += event->text_bytes;
    to->tokens_prompt = event->tokens_prompt;
    to->finish = event->finish;
    return;
  }
  if (event->kind < WICK_EVENT_CONTENT) return;
  const bool is_text = event->kind <= WICK_EVENT_REASONING || event->kind == WICK_EVENT_ARGUMENTS;
  char head[8];
  if (!is_text || event->kind != to->last) {
    const uint32_t call = event->call;
    const char letter = "crnaeb"[event->kind - WICK_EVENT_CONTENT];
    snprintf(head, sizeof head, is_text ? "%c:" : "%c%u:", letter, call);
    add(to, head, strlen(head));
  }
  to->last = event->kind;
  if (event->kind == WICK_EVENT_CALL_BROKEN) {
    to->status = event->status;
    CHECK(event->text_bytes > 0);
    return;
  }
  const size_t name_bytes =
      event->kind == WICK_EVENT_CALL ? event->name_bytes : (size_t)event->text_bytes;
  add(to, text, name_bytes);
  if (event->text_bytes > name_bytes) add(to, "#", 1);
  add(to, text + name_bytes, event->text_bytes - name_bytes);
}

static wick_engine *open_engine(const char *source) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  wick_error error;
  wick_status status = wick_engine_create(&config, &engine, &error);
  if (status == WICK_OK) status = fixture_load(engine, &file, 0, &error);
  if (status == WICK_OK) status = wick_chat_set_template(engine, source, strlen(source), &error);
  CHECK_EQ_INT(status, WICK_OK);
  free(file.bytes);
  return engine;
}

static wick_conversation conversation_of(const char *json) {
  return (wick_conversation){.chat = {.json = json, .json_bytes = strlen(json)}};
}

static wick_request request_of(const wick_conversation *conversation) {
  wick_request request;
  wick_request_default(&request);
  request.conversation = conversation;
  return request;
}

// Lets the engine reply with tokens, to "hi" if `conversation` is NULL. Generates `limit` of them;
// 0: all of them and the end of the turn.
static reply_record reply_tokens(wick_engine *engine, const wick_conversation *conversation,
                                 int32_t *tokens, size_t count, uint32_t limit) {
  reply_record out = {.engine = engine};
  uint32_t id;
  wick_error error = {0};
  wick_request request = request_of(conversation);
  if (conversation == NULL) {
    request.text = "hi";
    request.text_bytes = 2;
  }
  tokens[count++] = FIXTURE_END;
  request.forced = tokens;
  request.forced_count = count;
  request.max_tokens = limit;
  if (CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK)) {
    fixture_run(engine, take, &out);
  } else {
    printf("# %s\n", error.message);
  }
  return out;
}

static reply_record reply(wick_engine *engine, const wick_conversation *conversation,
                          const char *text, uint32_t limit) {
  static int32_t tokens[TOKENS_MAX];
  size_t count;
  CHECK_EQ_INT(wick_tokenize(engine, text, strlen(text), 0, tokens, TOKENS_MAX - 1, &count, NULL),
               WICK_OK);
  return reply_tokens(engine, conversation, tokens, count, limit);
}

static void check_reply(wick_engine *engine, const wick_conversation *conversation,
                        const char *text, uint32_t limit, const char *wanted) {
  reply_record out = reply(engine, conversation, text, limit);
  out.text[out.size_bytes] = '\0';
  CHECK_EQ_STR(out.text, wanted);
  CHECK_EQ_INT(out.finish, limit == 0 ? WICK_FINISH_STOP : WICK_FINISH_LENGTH);
  // the events also carry the text exactly as the model writes it
  CHECK(limit != 0 ||
        (out.plain_bytes == strlen(text) && memcmp(out.plain, text, out.plain_bytes) == 0));
  CHECK_EQ_UINT(out.calls_last, out.calls_first);
}

TEST(a_reply_is_split_into_parts) {
  wick_engine *engine = open_engine(CALLS);
  const wick_conversation with = conversation_of(HELLO(TOOLS)),
                          without = conversation_of(HELLO(""));
  static const char CALL[] =
      "Hm.</think>Look <tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1}}"
      "</tool_call>";
  check_reply(engine, &with, CALL, 0, "r:Hm.c:Lookn0:geta:{\"a\": 1}e0:");
  check_reply(engine, &without, "Hm.</think>Yes.", 0, "r:Hm.c:Yes.");
  check_reply(engine, &with, "Hm.", 0, "r:Hm.");
  check_reply(
      engine, &with,
      "</think><tool_call>{\"name\": \"get\", \"id\": \"x1\", \"arguments\": {}}</tool_call>\n"
      "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 2}}</tool_call>",
      0, "n0:get#x1a:{}e0:n1:geta:{\"a\": 2}e1:");
  wick_engine_destroy(engine);
}

TEST(without_tags_everything_is_content) {
  wick_engine *engine = open_engine("{{ messages[0].content }}");
  const wick_conversation hello = conversation_of(HELLO(""));
  check_reply(engine, &hello, " <think>Hm.</think>", 0, "c: <think>Hm.</think>");
  wick_conversation none = conversation_of(HELLO(TOOLS));
  none.tool_choice = "\"none\"";
  none.tool_choice_bytes = strlen(none.tool_choice);
  check_reply(engine, &none, "<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>", 0,
              "c:<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>");
  wick_engine_destroy(engine);
}

// Tools are found in any JSON that the template accepts, wherever the variable is.
TEST(tools_are_a_template_variable) {
  wick_engine *engine = open_engine(CALLS);
  static const char CALL[] =
      "</think><tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>";
  static const struct {
    const char *json;
    bool calls;
  } CASES[] = {
      {"{\"messages\" : [{\"content\":\"\\ud800 \\\" {\"}] , " TOOLS "\"a\":1}", true},
      {HELLO("\"a\":{\"tools\":[]}," TOOLS "\"b\":[\"tools\",{}],"), true},
      {HELLO("\"tools\":[]," TOOLS), true},
      {HELLO(TOOLS "\"tools\":null,"), false},
      {HELLO("\"tools\" : [ \n],"), false},
      {"{\"messages\":[{" TOOLS "\"content\":\"hi\"}],\"b\":\",\\\"tools\\\":[{}]\"}", false},
      {HELLO("\"tool_choice\" : \"none\" ," TOOLS), false},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const wick_conversation of = conversation_of(CASES[i].json);
    check_reply(engine, &of, CALL, 0,
                CASES[i].calls ? "n0:geta:{}e0:"
                               : "c:<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>");
  }
  wick_engine_destroy(engine);
}

// Without the tokenizer the template lacks its special tokens, and the tokenizer cannot escape them
// in content.
TEST(a_conversation_is_rendered_again_once_the_model_is_loaded) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  const wick_chat chat = conversation_of(HELLO("")).chat;
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  wick_chat_text early, late;
  static const char SOURCE[] = "[{{ eos_token }}]{{ messages[0].content }}";
  CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK);
  CHECK_EQ_INT(wick_chat_set_template(engine, SOURCE, strlen(SOURCE), NULL), WICK_OK);
  CHECK_EQ_INT(wick_chat_render(engine, &chat, &early, NULL), WICK_OK);
  const size_t before = early.text.size_bytes;
  CHECK_EQ_INT(fixture_load(engine, &file, 0, NULL), WICK_OK);
  CHECK_EQ_INT(wick_chat_render(engine, &chat, &late, NULL), WICK_OK);
  CHECK(late.text.size_bytes > before);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(an_invalid_call_is_content) {
  wick_engine *engine = open_engine(CALLS);
  const wick_conversation with = conversation_of(HELLO(TOOLS));
  static const char TEXT[] =
      "</think>a <tool_call>{\"name\": \"get\", \"arguments\": {\"a\": ?}}</tool_call> <think>";
  check_reply(engine, &with, TEXT, 0,
              "c:an0:geta:{\"a\": b0:c: <tool_call>{\"name\": \"get\", \"arguments\": {\"a\": "
              "?}}</tool_call> <think>");
  // at the end of the turn, an incomplete call counts as text; a call cut by the token limit
  // remains a call
  static const char CUT[] = "</think><tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1";
  const reply_record out = reply(engine, &with, CUT, 0);
  CHECK_EQ_INT(out.status, WICK_E_TRUNCATED);
  check_reply(engine, &with, CUT, 0,
              "n0:geta:{\"a\": 1b0:c:<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1");
  check_reply(engine, &with, CUT, sizeof CUT - 1 - 2, "n0:geta:{\"a\": 1");
  wick_engine_destroy(engine);
}

// Text that may be the start of a tag is held back; here it is longer than the event buffer.
TEST(held_back_text_is_delivered_completely) {
  wick_engine *engine = open_engine(CALLS);
  const wick_conversation with = conversation_of(HELLO(TOOLS));
  char text[160] = "<tool_call>", wanted[200] = "r:";
  memset(text + strlen(text), 'x', 120);
  strcat(text, "</think>ok");
  strncat(wanted, text, strlen(text) - strlen("</think>ok"));
  strcat(wanted, "c:ok");
  check_reply(engine, &with, text, 0, wanted);
  wick_engine_destroy(engine);
}

// A reply that the limit cuts inside a character ends before it; one that the model ends there
// shows that something is missing.
TEST(an_incomplete_character_at_the_end_is_omitted_or_replaced) {
  wick_engine *engine = open_engine("{{ messages[0].content }}");
  const wick_conversation hello = conversation_of(HELLO(""));
  check_reply(engine, &hello, "a\xc3\xa9", 2, "c:a");
  for (int is_text = 0; is_text < 2; is_text++) {
    int32_t tokens[4];
    size_t count;
    CHECK_EQ_INT(wick_tokenize(engine, "a\xc3\xa9", 3, 0, tokens, 4, &count, NULL), WICK_OK);
    CHECK_EQ_UINT(count, 3);
    const reply_record out = reply_tokens(engine, is_text != 0 ? NULL : &hello, tokens, 2, 0);
    CHECK_EQ_STR(out.plain, "a\xef\xbf\xbd");
    CHECK_EQ_STR(out.text, is_text != 0 ? "" : "c:a\xef\xbf\xbd");
  }
  wick_engine_destroy(engine);
}

TEST(the_prompt_is_the_conversation_plus_its_prefix) {
  wick_engine *engine = open_engine(CALLS);
  wick_conversation hello = conversation_of(HELLO(""));
  const int32_t *tokens;
  size_t count, more;
  CHECK_EQ_INT(wick_chat_tokenize(engine, &hello.chat, &tokens, &count, NULL), WICK_OK);
  CHECK_EQ_UINT(reply(engine, &hello, "x", 0).tokens_prompt, count);
  hello.chat.prefix = "So</think>the";
  hello.chat.prefix_bytes = strlen(hello.chat.prefix);
  CHECK_EQ_INT(wick_chat_tokenize(engine, &hello.chat, &tokens, &more, NULL), WICK_OK);
  CHECK_EQ_UINT(more, count + 10);  // "th" and "in" are single tokens
  CHECK_EQ_UINT(reply(engine, &hello, "x", 0).tokens_prompt, more);
  check_reply(engine, &hello, " end", 0, "c: end");
  const wick_chat plain = conversation_of(HELLO("")).chat;
  CHECK_EQ_INT(wick_chat_tokenize(engine, &plain, &tokens, &more, NULL), WICK_OK);
  CHECK_EQ_UINT(more, count);
  wick_engine_destroy(engine);
}

// Reasoning tags only count at the beginning of a reply. Content may mention them.
TEST(a_prefix_may_mention_reasoning_tags) {
  static const char PLAIN[] = "{% if 0 %}<tool_call><think>{% endif %}{{ messages[0].content }}|A|";
  static const struct {
    const char *source, *prefix, *wanted;
  } CASES[] = {{PLAIN, "The tag <think> opens", "c: it"},
               {PLAIN, "The tags <think> and </think>, or <think>", "c: it"},
               {PLAIN, " <think>Hm", "r:it"},
               {PLAIN, "<think>Hm</think>Say <think>", "c: it"},
               {CALLS, "Hm, <think>", "r:it"},
               {CALLS, "Hm</think>", "c: it"},
               {CALLS, "Hm</think>Say </think> or <think>", "c: it"}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    wick_engine *engine = open_engine(CASES[i].source);
    wick_conversation of = conversation_of(HELLO(""));
    of.chat.prefix = CASES[i].prefix;
    of.chat.prefix_bytes = strlen(CASES[i].prefix);
    check_reply(engine, &of, " it", 0, CASES[i].wanted);
    wick_engine_destroy(engine);
  }
}

// Lets the engine continue `prefix` with content that matches a JSON schema.
static void check_continued(const char *source, const char *prefix, const char *schema,
                            const char *wanted) {
  wick_engine *engine = open_engine(source);
  wick_conversation of = conversation_of(HELLO(""));
  const wick_grammar grammar = {
      .kind = WICK_GRAMMAR_JSON_SCHEMA, .text = schema, .text_bytes = strlen(schema)};
  of.chat.prefix = prefix;
  of.chat.prefix_bytes = strlen(prefix);
  wick_request request = request_of(&of);
  reply_record out = {.engine = engine};
  uint32_t id;
  request.grammar = &grammar;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  fixture_run(engine, take, &out);
  CHECK_EQ_STR(out.text, wanted);
  wick_engine_destroy(engine);
}

// A string in the JSON may contain the tag.
TEST(content_begins_after_the_first_end_of_reasoning) {
  check_continued(CALLS, "Hm</think>\n\"</think>", "{\"enum\":[\"</think>ok\"]}", "c:ok\"");
}

TEST(constrained_content_continues_its_prefix) {
  check_continued("{{ messages[0].content }}", "\"o", "{\"enum\":[\"ok\"]}", "c:k\"");
}

TEST(a_session_is_reused_for_the_next_turn) {
  wick_engine *engine = open_engine("{% for one in messages %}[{{ one.content }}]{% endfor %}");
  wick_error error;
  uint32_t session, id, count;
  const int32_t *tokens;
  CHECK_EQ_INT(wick_session_create(engine, &session, &error), WICK_OK);
  static const struct {
    const char *json;
    uint32_t read;  // prompt tokens, including those that the session already had
  } TURNS[] = {{"{\"messages\":[{\"content\":\"ab\"}]}", 4},
               {"{\"messages\":[{\"content\":\"ab\"},{\"content\":\"c\"}]}", 7},
               {"{\"messages\":[{\"content\":\"ax\"}]}", 4},
               {"{\"messages\":[{\"content\":\"ax\"}]}", 4}};
  for (size_t i = 0; i < sizeof TURNS / sizeof *TURNS; i++) {
    const wick_conversation turn = conversation_of(TURNS[i].json);
    wick_request request = request_of(&turn);
    reply_record out = {.engine = engine};
    request.session = session;
    request.max_tokens = 1;
    request.ignore_end = true;
    CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
    CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_BUSY);
    fixture_run(engine, take, &out);
    CHECK_EQ_UINT(out.tokens_prompt, TURNS[i].read);
    CHECK_EQ_INT(wick_session_tokens(engine, session, &tokens, &count, &error), WICK_OK);
    CHECK_EQ_UINT(count, TURNS[i].read + 1);
  }
  wick_engine_destroy(engine);
}

static void check_refused(wick_engine *engine, const wick_request *request, wick_status status,
                          wick_subject subject) {
  wick_error error = {0};
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, request, &id, &error), status);
  if (!CHECK_EQ_INT(error.subject, subject)) printf("# %s\n", error.message);
}

TEST(a_rejected_conversation_leaves_its_session_unchanged) {
  wick_engine *engine = open_engine("{% if 0 %}<tool_call>{% endif %}{{ messages[0].content }}");
  const wick_conversation hello = conversation_of(HELLO("")), calls = conversation_of(HELLO(TOOLS));
  wick_conversation other = conversation_of("{\"messages\":[{\"content\":\"hello\"}]}");
  const wick_grammar bad = {.kind = WICK_GRAMMAR_REGEX, .text = "(", .text_bytes = 1};
  wick_request request = request_of(&hello);
  reply_record out = {.engine = engine};
  uint32_t session, count;
  const int32_t *tokens;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  request.session = session;
  request.max_tokens = 3;
  request.ignore_end = true;
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  fixture_run(engine, take, &out);
  request.conversation = &other;
  request.grammar = &bad;
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_GRAMMAR);
  request.grammar = NULL;
  request.sampling.temperature = -1;
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TEMPERATURE);
  request.conversation = &calls;
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TEMPERATURE);
  CHECK_EQ_INT(wick_session_tokens(engine, session, &tokens, &count, NULL), WICK_OK);
  CHECK_EQ_UINT(count, 2 + 3);
  wick_engine_destroy(engine);
}

TEST(errors_have_a_subject) {
  wick_engine *engine = open_engine(CALLS);
  static const char TWINS[] = HELLO("\"tools\":[{\"name\":\"a\"},{\"name\":\"a\"}],");
  static const char SCHEMA[] = HELLO(
      "\"tools\":[{\"name\":\"a\",\"parameters\":{\"type\":\"object\",\"properties\":{\"b\":{"
      "\"uniqueItems\":1}}}}],");
  wick_conversation of = conversation_of(HELLO(TOOLS));
  wick_request request = request_of(&of);
  of.tool_choice = "{\"function\":{\"name\":\"put\"}}";
  of.tool_choice_bytes = strlen(of.tool_choice);
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TOOL_CHOICE);
  of.chat = conversation_of(HELLO("\"tools\":[],")).chat;
  of.tool_choice = "\"required\"";
  of.tool_choice_bytes = strlen(of.tool_choice);
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TOOL_CHOICE);
  of = conversation_of(TWINS);
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TOOLS);
  of = conversation_of(SCHEMA);
  uint32_t id;
  // the call is optional
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, NULL), WICK_OK);
  of.tool_choice = "\"required\"";
  of.tool_choice_bytes = strlen(of.tool_choice);
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_TOOLS);
  of = conversation_of(HELLO(TOOLS));
  const wick_grammar bad = {.kind = WICK_GRAMMAR_REGEX, .text = "(", .text_bytes = 1};
  request.grammar = &bad;
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_GRAMMAR);
  const wick_grammar inner = {.kind = (wick_grammar_kind)5, .text = "{}", .text_bytes = 2};
  request.grammar = &inner;
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_GRAMMAR);
  request.grammar = NULL;
  of = conversation_of("{");
  check_refused(engine, &request, WICK_E_FORMAT, WICK_SUBJECT_TEMPLATE);
  request.text = "x", request.text_bytes = 1;
  of = conversation_of(HELLO(""));
  check_refused(engine, &request, WICK_E_ARG, WICK_SUBJECT_PROMPT);
  CHECK_EQ_INT(wick_chat_set_template(engine, NULL, 0, NULL), WICK_OK);
  request.text_bytes = 0;
  check_refused(engine, &request, WICK_E_NODATA, WICK_SUBJECT_TEMPLATE);
  wick_engine_destroy(engine);
}

enum { CROWD = 9 };

typedef struct crowd {
  uint32_t ids[CROWD];
  reply_record replies[CROWD];
} crowd;

static void take_of_crowd(void *context, const wick_event *event, const uint8_t *after) {
  crowd *of = context;
  for (uint32_t i = 0; i < CROWD; i++) {
    if (of->ids[i] == event->request) take(&of->replies[i], event, after);
  }
}

static void submit_sampled(wick_engine *engine, crowd *of, uint32_t i) {
  static const char *const JSON[] = {HELLO(TOOLS), HELLO(TOOLS "\"tool_choice\":\"required\","),
                                     HELLO("")};
  const wick_conversation conversation = conversation_of(JSON[i % 3]);
  const wick_reasoning reasoning = {.tokens_max = i};
  wick_request request = request_of(&conversation);
  request.reasoning = &reasoning;
  request.sampling.temperature = 1;
  request.sampling.seed = i;
  request.max_tokens = 90;
  of->replies[i].engine = engine;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &of->ids[i], NULL), WICK_OK);
}

TEST(concurrent_conversations_get_the_same_replies_as_separate_ones) {
  static crowd alone, together;
  wick_engine *engine = open_engine(CALLS);
  for (uint32_t i = 0; i < CROWD; i++) {
    submit_sampled(engine, &alone, i);
    fixture_run(engine, take_of_crowd, &alone);
  }
  for (uint32_t i = 0; i < CROWD; i++) submit_sampled(engine, &together, i);
  fixture_run(engine, take_of_crowd, &together);
  for (uint32_t i = 0; i < CROWD; i++) {
    CHECK(alone.replies[i].finish != 0 && alone.replies[i].size_bytes > 0);
    CHECK_EQ_STR(together.replies[i].text, alone.replies[i].text);
    CHECK_EQ_STR(together.replies[i].plain, alone.replies[i].plain);
  }
  wick_engine_destroy(engine);
}

// The grammar of a conversation is compiled in slices, the last of which submits it.
TEST(a_conversation_can_be_submitted_in_slices) {
  wick_engine *engine = open_engine(CALLS);
  const wick_conversation of = conversation_of(HELLO(TOOLS));
  const wick_request request = request_of(&of);
  wick_engine_compile_in_slices(engine);
  uint32_t id, slices = 1;
  wick_error error;
  wick_status status = wick_request_submit(engine, &request, &id, &error);
  for (; slices < 100 && status == WICK_E_BUSY; slices++) {
    CHECK_EQ_INT(error.subject, WICK_SUBJECT_GRAMMAR);
    status = wick_request_submit(engine, &request, &id, &error);
  }
  CHECK_EQ_INT(status, WICK_OK);
  wick_engine_destroy(engine);
}

TEST(running_out_of_memory_leaks_nothing) {
  wick_engine *engine = open_engine(CALLS);
  const wick_conversation with = conversation_of(HELLO(TOOLS));
  const wick_request request = request_of(&with);
  const uint64_t before = engine->memory.blocks_now;
  uint32_t failures = 0, id;
  wick_status status = WICK_E_NOMEM;
  for (uint64_t k = 1; k < 3000 && status != WICK_OK; k++) {
    wick_error error = {0};
    engine->memory.fail_at_call = engine->memory.calls + k;
    status = wick_request_submit(engine, &request, &id, &error);
    failures += status == WICK_E_NOMEM;
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
  }
  engine->memory.fail_at_call = 0;
  CHECK(failures > 20 && status == WICK_OK && before > 0);
  wick_engine_destroy(engine);  // reports leaks
}
