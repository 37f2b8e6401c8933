// cli/chat.c — a conversation with the model's chat template: each line of standard input is a
// question. Input and answers are plain text: control tokens in them have no effect.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/options.h"
#include "cli/adapter_files.h"
#include "cli/args.h"
#include "cli/generation.h"
#include "cli/input.h"
#include "cli/local_time.h"
#include "cli/media_chat.h"
#include "cli/model_file.h"
#include "cli/sampling.h"
#include "cli/settings.h"

typedef struct chat_options {
  const char *question, *system, *template_path;
  bool parse_special;
  adapter_files adapters;
  model_settings model;
  wick_request request;
  uint32_t reasoning_budget;  // GENERATION_UNLIMITED: no limit
  media_files media;
  sampling_options sampling;
} chat_options;

typedef struct conversation {
  const chat_options *options;
  wick_engine *engine;
  input_text messages;  // JSON objects with commas between them
  input_text answer;
  bool was_reasoning;  // the previous part was reasoning
  media_chat media;
} conversation;

enum { CHAT_OPTIONS_MAX = 15 + SAMPLING_OPTIONS_MAX + MEDIA_OPTIONS_MAX, COUNT_MAX = 1000000000 };

static void add_message(conversation *talk, const char *role, const char *text, size_t text_bytes) {
  json_writer json;
  if (talk->messages.size_bytes > 0) input_append(&talk->messages, ",", 1);
  json_begin(&json, input_append, &talk->messages);
  json_open(&json, NULL, '{');
  json_text(&json, "role", role);
  media_chat_put(&talk->media, &json, role, text, text_bytes);
  json_close(&json, '{');
}

// Shows a part of the answer. Reasoning is written to standard error and not added to the
// conversation, because templates would omit it anyway.
static bool show_part(void *context, wick_engine *engine, const wick_event *event) {
  (void)engine;
  conversation *talk = context;
  const bool is_reasoning = event->kind == WICK_EVENT_REASONING;
  const output_stream to = is_reasoning ? OUTPUT_LOG : OUTPUT_TEXT;
  if (!is_reasoning && event->kind != WICK_EVENT_CONTENT) return true;
  if (!is_reasoning) input_append(&talk->answer, wick_event_text(event), event->text_bytes);
  if (!is_reasoning && talk->was_reasoning) output_put(OUTPUT_LOG, "\n", 1);
  talk->was_reasoning = is_reasoning;
  output_put(to, wick_event_text(event), event->text_bytes);
  return output_flush(OUTPUT_LOG) && output_flush(OUTPUT_TEXT);
}

// Generates the answer and adds it to the conversation.
static exit_code answer(conversation *talk) {
  input_text json = {0};
  const wick_reasoning reasoning = {.tokens_max = talk->options->reasoning_budget};
  wick_conversation asked = {0};
  wick_request request = talk->options->request;
  generation done;
  input_append(&json, "{\"messages\":[", 13);
  input_append(&json, talk->messages.bytes, talk->messages.size_bytes);
  input_append(&json, "]}", 2);
  exit_code code = EXIT_DONE;
  if (json.is_lost || talk->messages.is_lost || talk->answer.is_lost) {
    report("out of memory for the conversation");
    code = EXIT_MEMORY;
  } else {
    asked.chat = (wick_chat){.json = json.bytes,
                             .json_bytes = json.size_bytes,
                             .now_s = local_time_now_s(),
                             .has_now = true,
                             .parse_special = talk->options->parse_special,
                             .keeps_arguments = media_chat_takes_parts(&talk->media)};
    request.conversation = &asked;
    if (reasoning.tokens_max != GENERATION_UNLIMITED) request.reasoning = &reasoning;
    talk->answer.size_bytes = 0;
    code = media_chat_run(&talk->media, talk->engine, &request, show_part, talk, &done);
  }
  input_free(&json);
  if (code != EXIT_DONE) return code;
  output_put(OUTPUT_TEXT, "\n", 1);
  output_flush(OUTPUT_TEXT);
  add_message(talk, "assistant", talk->answer.bytes, talk->answer.size_bytes);
  return EXIT_DONE;
}

static exit_code ask(conversation *talk, const char *text, size_t text_bytes) {
  add_message(talk, "user", text, text_bytes);
  return answer(talk);
}

// Reads a line without its newline; returns false at the end of the input, or if the line cannot be
// read.
static bool read_line(input_text *line, exit_code *code) {
  line->size_bytes = 0;
  if (output_is_terminal(STDIN_FILENO)) {
    output_put(OUTPUT_LOG, "> ", 2);
    output_flush(OUTPUT_LOG);
  }
  for (;;) {
    char c;
    size_t got;
    if (!input_read_fd(STDIN_FILENO, &c, 1, &got)) {
      report("cannot read standard input: %s", strerror(errno));
      *code = EXIT_FILE;
      return false;
    }
    if (got == 0) return line->size_bytes > 0;
    if (c == '\n') return true;
    input_append(line, &c, 1);
  }
}

static exit_code converse(conversation *talk) {
  const chat_options *options = talk->options;
  input_text line = {0};
  exit_code code = EXIT_DONE;
  if (options->system != NULL)
    add_message(talk, "system", options->system, strlen(options->system));
  if (options->question != NULL) {
    code = ask(talk, options->question, strlen(options->question));
  } else {
    while (code == EXIT_DONE && read_line(&line, &code)) {
      if (line.size_bytes > 0) code = ask(talk, line.bytes, line.size_bytes);
    }
  }
  input_free(&line);
  input_free(&talk->messages);
  input_free(&talk->answer);
  return code == EXIT_DONE ? output_end() : code;
}

static exit_code chat_with(chat_options *options, const char *path) {
  wick_config config;
  media_input *media = NULL;
  conversation talk = {.options = options};
  if (options->question == NULL && strcmp(path, "-") == 0) {
    report("standard input is the model already: give the question with -p");
    return EXIT_USAGE;
  }
  exit_code code = settings_apply(&options->model, &config);
  if (code == EXIT_DONE) {
    code = media_request_open(&options->media, path, &options->model, &config, &media);
  }
  if (code == EXIT_DONE) code = model_open(path, &config, &talk.engine);
  if (code == EXIT_DONE) code = settings_check_threads(&options->model, talk.engine);
  if (code == EXIT_DONE) code = adapter_files_load(&options->adapters, talk.engine);
  options->request.adapters = options->adapters.uses;
  options->request.adapter_count = options->adapters.files.count;
  if (code == EXIT_DONE) code = input_use_template(talk.engine, options->template_path, path);
  if (code == EXIT_DONE) code = media_request_encode(media, talk.engine);
  if (code == EXIT_DONE) code = media_chat_begin(&talk.media, media, talk.engine, options->system);
  if (code == EXIT_DONE) code = converse(&talk);
  model_close(talk.engine);
  media_chat_end(&talk.media);
  media_request_close(media);
  return code;
}

exit_code command_chat(int argc, char **argv) {
  chat_options given = {.model = settings_default(), .reasoning_budget = GENERATION_UNLIMITED};
  wick_request_default(&given.request);
  args_option options[CHAT_OPTIONS_MAX] = {
      args_string("-p", &given.question, "TEXT",
                  "ask one question (default: lines of standard input)"),
      args_string("--system", &given.system, "TEXT",
                  "begin the conversation with this system message"),
      args_string("--template", &given.template_path, "FILE",
                  "use this Jinja template instead of the model's"),
      args_flag("--parse-special", &given.parse_special, "allow control tokens in the input"),
      args_u32("-n", &given.request.max_tokens, "N", 1, COUNT_MAX,
               "generate at most N tokens per answer"),
      ARGUMENT_REASONING_BUDGET(&given.reasoning_budget),
      adapter_files_option(&given.adapters),
  };
  size_t count = 7;
  count += media_files_list(&given.media, options + count);
  count += sampling_list(&given.sampling, &given.request.sampling, options + count);
  count += settings_list(&given.model, SETTINGS_ALL | SETTINGS_PREDICTOR | SETTINGS_TABLES,
                         options + count);
  const args_spec spec = {"wick chat MODEL [-p TEXT] [options]",
                          "Chats with the model's chat template.", options, count, 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  const exit_code code = sampling_finish(&given.sampling, &given.request.sampling);
  return code == EXIT_DONE ? chat_with(&given, model[0]) : code;
}
