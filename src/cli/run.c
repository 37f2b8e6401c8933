// cli/run.c — continues a prompt and streams the text.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/options.h"
#include "cli/adapter_files.h"
#include "cli/args.h"
#include "cli/generation.h"
#include "cli/grammar.h"
#include "cli/input.h"
#include "cli/media_request.h"
#include "cli/model_file.h"
#include "cli/sampling.h"
#include "cli/settings.h"
#include "platform/platform.h"

typedef struct run_options {
  const char *text, *path;
  model_settings model;
  wick_request request;
  wick_reasoning reasoning;
  args_strings stops;
  size_t stop_bytes[ARGS_STRINGS_MAX];
  bool wants_stats;
  grammar_options grammar;
  adapter_files adapters;
  media_files media;
  sampling_options sampling;
  char *scratch;  // for the text of a token, when logprobs are printed
} run_options;

enum { RUN_OPTIONS_MAX = 28 + SAMPLING_OPTIONS_MAX + MEDIA_OPTIONS_MAX, COUNT_MAX = 1000000000 };

static size_t list_options(run_options *run, args_option list[RUN_OPTIONS_MAX]) {
  wick_sampling *sampling = &run->request.sampling;
  const args_option own[] = {
      args_string("-p", &run->text, "TEXT", "the prompt (default: standard input)"),
      args_string("-f", &run->path, "FILE", "read the prompt from FILE, byte for byte"),
      args_u32("-n", &run->request.max_tokens, "N", 1, COUNT_MAX,
               "generate at most N tokens (default: until the model ends or the context is full)"),
      ARGUMENT_STOPS(&run->stops),
      ARGUMENT_LOGPROBS(&sampling->logprobs),
#define FLAG(member, name, about) args_flag(name, &run->request.member, about),
      FLAG_ARGUMENTS(FLAG)
#undef FLAG
          ARGUMENT_REASONING_BUDGET(&run->reasoning.tokens_max),
      args_flag("--no-speculation", &run->request.no_speculation,
                "decode one token per pass (the output is the same)"),
      adapter_files_option(&run->adapters),
      args_flag("--stats", &run->wants_stats, "print statistics as one JSON line on stderr"),
  };
  memcpy(list, own, sizeof own);
  const size_t count = sizeof own / sizeof own[0];
  size_t all = count + media_files_list(&run->media, list + count);
  all += sampling_list(&run->sampling, sampling, list + all);
  all += settings_list(
      &run->model, SETTINGS_ALL | SETTINGS_PRE | SETTINGS_PREDICTOR | SETTINGS_TABLES, list + all);
  return all + grammar_list(&run->grammar, list + all);
}

static void write_token_fields(const run_options *run, wick_engine *engine, json_writer *json,
                               int32_t token, float logprob) {
  wick_text text;
  wick_token_bytes(engine, token, run->scratch, &text, NULL);
  json_i64(json, "token", token);
  json_string(json, "text", text.bytes, text.size_bytes);
  json_f32(json, "logprob", logprob);
}

static void print_logprobs(const run_options *run, wick_engine *engine, const wick_event *event) {
  json_writer json;
  json_begin(&json, output_log_json, NULL);
  json_open(&json, NULL, '{');
  write_token_fields(run, engine, &json, event->token, event->logprob);
  json_open(&json, "top", '[');
  for (uint32_t i = 0; i < event->top_count; i++) {
    const wick_logprob top = wick_event_top(event, i);
    json_open(&json, NULL, '{');
    write_token_fields(run, engine, &json, top.token, top.logprob);
    json_close(&json, '{');
  }
  json_close(&json, '[');
  json_close(&json, '{');
  output_put(OUTPUT_LOG, "\n", 1);
  output_flush(OUTPUT_LOG);
}

static bool show_token(void *context, wick_engine *engine, const wick_event *event) {
  const run_options *run = context;
  if (run->scratch != NULL && event->token != WICK_TOKEN_NONE) print_logprobs(run, engine, event);
  output_put(OUTPUT_TEXT, wick_event_text(event), event->text_bytes);
  return output_flush(OUTPUT_TEXT);
}

static double round_to_thousandths(double value) {
  return (double)(int64_t)(value * 1000 + 0.5) / 1000;
}

static double rate(uint32_t tokens, double elapsed_ms) {
  return elapsed_ms > 0 ? round_to_thousandths(tokens / elapsed_ms * 1000) : 0;
}

static void print_stats(const wick_engine *engine, const generation *done, uint64_t load_us) {
  const wick_event *end = &done->end;
  // the time of the first token counts as prefill
  const uint32_t decoded = end->tokens_out > 1 ? end->tokens_out - 1 : 0;
  wick_plan plan = {0};
  wick_memory_state memory;
  wick_memory_plan(engine, &plan, NULL);
  wick_memory_get_state(engine, &memory);
  json_writer json;
  json_begin(&json, output_log_json, NULL);
  json_open(&json, NULL, '{');
  json_f64(&json, "load_ms", round_to_thousandths((double)load_us / 1e3));
  json_f64(&json, "ttft_ms", round_to_thousandths(end->ttft_ms));
  json_f64(&json, "prefill_tok_s", rate(end->tokens_prompt, end->prefill_ms));
  json_f64(&json, "decode_tok_s", rate(decoded, end->decode_ms));
  json_u64(&json, "prompt_tokens", end->tokens_prompt);
  json_u64(&json, "completion_tokens", end->tokens_out);
  json_text(&json, "finish_reason", generation_finish_name(end->finish));
  json_u64(&json, "memory_bytes_peak", memory.bytes_peak);
  json_u64(&json, "memory_bytes_planned", plan.total_bytes);
  json_u64(&json, "decode_allocations", done->decode_allocations);
  json_u64(&json, "threads", wick_engine_threads(engine));
  json_text(&json, "kernels", wick_engine_config(engine)->kernels);
  json_close(&json, '{');
  output_put(OUTPUT_LOG, "\n", 1);
  output_flush(OUTPUT_LOG);
}

static exit_code continue_prompt(run_options *run, wick_engine *engine, media_input *media,
                                 uint64_t load_us) {
  for (uint32_t i = 0; i < run->stops.count; i++) run->stop_bytes[i] = strlen(run->stops.items[i]);
  run->request.stops = run->stops.items;
  run->request.stop_bytes = run->stop_bytes;
  run->request.stop_count = run->stops.count;
  if (run->request.sampling.logprobs > 0) {
    run->scratch = malloc(wick_detokenize_bytes_max(engine, 0));
    if (run->scratch == NULL) {
      report("out of memory for the text of tokens");
      return EXIT_MEMORY;
    }
  }
  generation done;
  const exit_code code = media_request_run(media, engine, &run->request, show_token, run, &done);
  free(run->scratch);
  if (code != EXIT_DONE) return code;
  if (output_is_terminal(OUTPUT_TEXT))
    output_put(OUTPUT_TEXT, "\n", 1);  // so that the shell prompt starts on a new line
  output_flush(OUTPUT_TEXT);
  if (run->wants_stats) print_stats(engine, &done, load_us);
  return output_end();
}

static exit_code run_model(run_options *run, const char *path) {
  wick_config config;
  wick_engine *engine = NULL;
  media_input *media = NULL;
  exit_code code = settings_apply(&run->model, &config);
  const uint64_t start_us = platform_now_us();
  if (code == EXIT_DONE) {
    code = media_request_open(&run->media, path, &run->model, &config, &media);
  }
  if (code == EXIT_DONE) code = model_open(path, &config, &engine);
  if (code == EXIT_DONE) code = settings_check_threads(&run->model, engine);
  if (code == EXIT_DONE) code = adapter_files_load(&run->adapters, engine);
  run->request.adapters = run->adapters.uses;
  run->request.adapter_count = run->adapters.files.count;
  if (code == EXIT_DONE) code = media_request_encode(media, engine);
  if (code == EXIT_DONE) code = continue_prompt(run, engine, media, platform_now_us() - start_us);
  model_close(engine);
  media_request_close(media);
  return code;
}

exit_code command_run(int argc, char **argv) {
  run_options run = {.model = settings_default(), .reasoning.tokens_max = GENERATION_UNLIMITED};
  wick_request_default(&run.request);
  args_option options[RUN_OPTIONS_MAX];
  const args_spec spec = {"wick run MODEL [-p TEXT | -f FILE] [options]",
                          "Prints only the continuation, without the prompt.", options,
                          list_options(&run, options), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;

  input_text prompt;
  exit_code code = sampling_finish(&run.sampling, &run.request.sampling);
  if (code != EXIT_DONE) return code;
  code = input_read(run.text, run.path, model[0], &prompt);
  if (code != EXIT_DONE) return code;
  run.request.text = prompt.bytes;
  run.request.text_bytes = prompt.size_bytes;
  run.media.text = prompt.bytes;
  run.media.text_bytes = prompt.size_bytes;
  run.request.tokenize_flags = WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL;
  run.reasoning.ending = prompt.bytes;
  run.reasoning.ending_bytes = prompt.size_bytes;
  if (run.reasoning.tokens_max != GENERATION_UNLIMITED) run.request.reasoning = &run.reasoning;
  wick_grammar grammar;
  input_text rules = {0};
  code = grammar_read(&run.grammar, &rules, &grammar);
  if (grammar.kind != WICK_GRAMMAR_NONE) run.request.grammar = &grammar;
  if (code == EXIT_DONE) code = run_model(&run, model[0]);
  input_free(&rules);
  input_free(&prompt);
  return code;
}
