// cli/template.c — renders a conversation as a prompt with the model's chat template or a different
// template. Needs a vocabulary, but no weights.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/local_time.h"
#include "cli/model_file.h"

typedef struct template_options {
  const char *text, *path, *template_path;
  bool prints_tokens, has_lines, parse_special, keeps_arguments;
} template_options;

static wick_chat chat_of(const template_options *given, const char *json, size_t json_bytes) {
  wick_chat chat;
  wick_chat_default(&chat);
  chat.json = json;
  chat.json_bytes = json_bytes;
  chat.now_s = local_time_now_s();
  chat.has_now = true;
  chat.parse_special = given->parse_special;
  chat.keeps_arguments = given->keeps_arguments;
  return chat;
}

static wick_status print_tokens(wick_engine *engine, const wick_chat *chat, wick_error *error) {
  const int32_t *tokens;
  size_t count;
  const wick_status status = wick_chat_tokenize(engine, chat, &tokens, &count, error);
  if (status != WICK_OK) return status;
  for (size_t i = 0; i < count; i++) {
    output_format(OUTPUT_TEXT, "%s%d", i == 0 ? "" : " ", (int)tokens[i]);
  }
  output_put(OUTPUT_TEXT, "\n", 1);
  return WICK_OK;
}

static wick_status print_text(wick_engine *engine, const wick_chat *chat, wick_error *error) {
  wick_chat_text text;
  const wick_status status = wick_chat_render(engine, chat, &text, error);
  if (status == WICK_OK) output_put(OUTPUT_TEXT, text.text.bytes, text.text.size_bytes);
  return status;
}

// Prints one line of JSON for one conversation: {text, spans: [end, is_content, ...], tokens} or
// {error, message}.
static void print_line(wick_engine *engine, const template_options *given, const wick_chat *chat) {
  wick_error error;
  wick_chat_text text;
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '{');
  wick_status status = wick_chat_render(engine, chat, &text, &error);
  if (status == WICK_OK) {
    json_string(&json, "text", text.text.bytes, text.text.size_bytes);
    json_open(&json, "spans", '[');
    for (size_t i = 0; i < text.span_count; i++) {
      json_u64(&json, NULL, text.spans[i].end);
      json_u64(&json, NULL, text.spans[i].is_content);
    }
    json_close(&json, '[');
  }
  if (status == WICK_OK && given->prints_tokens) {
    const int32_t *tokens;
    size_t count;
    status = wick_chat_tokenize(engine, chat, &tokens, &count, &error);
    json_open(&json, "tokens", '[');
    for (size_t i = 0; i < count; i++) json_i64(&json, NULL, tokens[i]);
    json_close(&json, '[');
  }
  if (status != WICK_OK) {
    json_text(&json, "error", wick_status_name(status));
    json_text(&json, "message", error.message);
  }
  json_close(&json, '{');
  output_put(OUTPUT_TEXT, "\n", 1);
}

static void print_lines(wick_engine *engine, const template_options *given,
                        const input_text *input) {
  for (size_t at = 0; at < input->size_bytes;) {
    const char *line = input->bytes + at;
    const char *end = memchr(line, '\n', input->size_bytes - at);
    const size_t line_bytes = end == NULL ? input->size_bytes - at : (size_t)(end - line);
    const wick_chat chat = chat_of(given, line, line_bytes);
    if (line_bytes > 0) print_line(engine, given, &chat);
    at += line_bytes + 1;
  }
}

static exit_code print_all(wick_engine *engine, const template_options *given,
                           const input_text *input) {
  wick_error error;
  if (given->has_lines) {
    print_lines(engine, given, input);
    return output_end();
  }
  const wick_chat chat = chat_of(given, input->bytes, input->size_bytes);
  const wick_status status = given->prints_tokens ? print_tokens(engine, &chat, &error)
                                                  : print_text(engine, &chat, &error);
  return status == WICK_OK ? output_end() : report_error("template", &error);
}

exit_code command_template(int argc, char **argv) {
  template_options given = {0};
  const args_option options[] = {
      args_string("-p", &given.text, "JSON", "the conversation (default: standard input)"),
      args_string("-f", &given.path, "FILE", "read the conversation from a file"),
      args_string("--template", &given.template_path, "FILE",
                  "use this Jinja template instead of the model's"),
      args_flag("--tokens", &given.prints_tokens, "print token ids instead of text"),
      args_flag("--lines", &given.has_lines,
                "read one conversation per line, and print text, spans and tokens of each as JSON"),
      args_flag("--parse-special", &given.parse_special, "allow control tokens in the messages"),
      args_flag("--keep-arguments", &given.keeps_arguments,
                "pass messages and tool call arguments unchanged"),
  };
  const args_spec spec = {
      "wick template MODEL [-p JSON | -f FILE] [options]",
      "The conversation is a JSON object: {\"messages\": [{\"role\": \"user\", \"content\": "
      "\"Hello\"}],\n\"tools\": [...], ...}. A GGUF file without tensors is enough.",
      options, sizeof options / sizeof options[0], 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;

  input_text input;
  exit_code code = input_read(given.text, given.path, model[0], &input);
  if (code != EXIT_DONE) return code;
  wick_engine *engine;
  code = model_open_vocabulary(model[0], NULL, &engine);
  if (code == EXIT_DONE) {
    code = input_use_template(engine, given.template_path, model[0]);
    if (code == EXIT_DONE) code = print_all(engine, &given, &input);
    model_close(engine);
  }
  input_free(&input);
  return code;
}
