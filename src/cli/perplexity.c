// cli/perplexity.c — measures how well a model predicts text, and how far its distribution diverges
// from the distribution of another run (with different KV types or weights), token by token.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "bench/quality.h"
#include "bench/stats.h"
#include "cli/adapter_files.h"
#include "cli/args.h"
#include "cli/generation.h"
#include "cli/input.h"
#include "cli/model_file.h"
#include "cli/settings.h"
#include "platform/platform.h"

typedef struct perplexity_options {
  const char *path;       // -f
  const char *reference;  // --kl
  const char *save;       // --save
  bool has_special;       // --special
  bool as_llama;          // --llama
  adapter_files adapters;
  model_settings model;
} perplexity_options;

// The text, split into windows.
typedef struct perplexity_text {
  int32_t *tokens;  // [count]
  size_t count;
  int32_t *window;  // [window_tokens]: the current window
  uint32_t window_tokens;
  int32_t bos;    // first token of each window, or WICK_TOKEN_NONE
  bool as_llama;  // only full windows, and only their second half is predicted
} perplexity_text;

// Sums over the positions of all windows.
typedef struct perplexity_sums {
  const int32_t *next;  // the token that follows each position of the current window
  uint32_t first_counted, window_count;
  FILE *reference;       // rows of float32 [vocab], in order, or NULL
  output_file *save;     // or NULL
  float *reference_row;  // [vocab]
  double *log_softmax;   // [vocab]
  double *kl;            // [tokens]
  size_t positions;      // number of positions with logits
  size_t predicted;      // positions with a next token to predict
  size_t agreed;         // positions with the same most likely token as the reference
  double nll_nats;
  size_t count;          // number of tokens in all windows
  uint64_t reported_us;  // when progress was last reported
  const char *failure;   // why the measurement failed, or NULL
  const adapter_files *adapters;
} perplexity_sums;

static void compare_row(perplexity_sums *sums, const float *logits, uint32_t vocab) {
  if (fread(sums->reference_row, sizeof(float), vocab, sums->reference) != vocab) {
    sums->failure = "the reference has fewer positions than the text";
    return;
  }
  bench_quality quality;
  if (quality_check(sums->reference_row, vocab, logits, vocab, 1e30, &quality) != WICK_OK) {
    sums->failure = quality.message;
    return;
  }
  sums->kl[sums->positions] = quality.kl_nats;
  sums->agreed += quality.top1_agrees;
}

// Reports progress, because a run may take minutes.
static void report_progress(perplexity_sums *sums) {
  enum { REPORT_US = 10 * 1000 * 1000 };
  const uint64_t now_us = platform_now_us();
  if (now_us - sums->reported_us < REPORT_US) return;
  sums->reported_us = now_us;
  report("%zu of %zu tokens", sums->positions, sums->count);
}

// Implements wick_request.on_logits.
static void take_row(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  perplexity_sums *sums = context;
  if (sums->failure != NULL) return;
  if (sums->save != NULL) output_file_write(sums->save, logits, vocab * sizeof *logits);
  if (sums->reference != NULL) compare_row(sums, logits, vocab);
  sums->positions++;
  report_progress(sums);
  if (position < sums->first_counted || position + 1 >= sums->window_count) return;
  if (log_softmax_f64(logits, vocab, sums->log_softmax) != WICK_OK) {
    sums->failure = "logits are not finite";
    return;
  }
  sums->nll_nats -= sums->log_softmax[sums->next[position]];
  sums->predicted++;
}

static exit_code run_window(wick_engine *engine, const perplexity_text *text,
                            perplexity_sums *sums) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = text->window;
  request.token_count = sums->window_count;
  request.adapters = sums->adapters->uses;
  request.adapter_count = sums->adapters->files.count;
  request.max_tokens = 1;
  request.ignore_end = true;
  request.on_logits = take_row;
  request.on_logits_context = sums;
  generation done;
  exit_code code = generation_run(engine, &request, NULL, NULL, &done);
  if (code == EXIT_DONE && sums->save != NULL) code = output_file_check(sums->save);
  if (code != EXIT_DONE || sums->failure == NULL) return code;
  report("perplexity: %s", sums->failure);
  return EXIT_FILE;
}

static bool puts_bos(const perplexity_text *text) {
  return text->bos != WICK_TOKEN_NONE && !text->as_llama && text->window_tokens > 1;
}

// Fills the window that begins with token `at` of the text. Returns the number of text tokens in
// it; a BOS before them takes one position.
static uint32_t fill_window(const perplexity_text *text, size_t at, perplexity_sums *sums) {
  const bool is_put = at > 0 && puts_bos(text);
  const uint32_t room = text->window_tokens - is_put;
  const uint32_t taken = text->count - at < room ? (uint32_t)(text->count - at) : room;
  if (is_put) text->window[0] = text->bos;
  memcpy(text->window + is_put, text->tokens + at, taken * sizeof *text->window);
  if (text->as_llama && text->bos != WICK_TOKEN_NONE) text->window[0] = text->bos;
  sums->window_count = taken + is_put;
  sums->next = text->window + 1;
  sums->first_counted = text->as_llama ? text->window_tokens / 2 : 0;
  return taken;
}

static exit_code run_windows(wick_engine *engine, const perplexity_text *text,
                             perplexity_sums *sums) {
  const size_t rest = text->as_llama ? text->count % text->window_tokens : 0;
  const size_t end = text->count - rest;
  sums->count = end;
  if (puts_bos(text) && end > text->window_tokens) {
    const size_t room = text->window_tokens - 1;
    sums->count += (end - text->window_tokens + room - 1) / room;
  }
  sums->reported_us = platform_now_us();
  for (size_t at = 0; at < end;) {
    at += fill_window(text, at, sums);
    const exit_code code = run_window(engine, text, sums);
    if (code != EXIT_DONE) return code;
  }
  return EXIT_DONE;
}

static void print_result(const perplexity_sums *sums) {
  const double nll = sums->nll_nats / (double)sums->predicted;
  output_printf(OUTPUT_TEXT, "{\"tokens\":%zu,\"nll_nats\":%.6f,\"perplexity\":%.4f",
                sums->positions, nll, math_exp(nll));
  if (sums->reference != NULL) {
    double sum = 0, p99 = 0;
    for (size_t i = 0; i < sums->positions; i++) sum += sums->kl[i];
    stat_percentile(sums->kl, sums->positions, 990, sums->kl + sums->positions, &p99);
    output_printf(
        OUTPUT_TEXT, ",\"kl_nats_mean\":%.8f,\"kl_nats_p99\":%.8f,\"top1_agreement\":%.4f",
        sum / (double)sums->positions, p99, (double)sums->agreed / (double)sums->positions);
  }
  output_format(OUTPUT_TEXT, "}\n");
}

static exit_code tokenize_text(wick_engine *engine, const input_text *source, uint32_t flags,
                               perplexity_text *text) {
  wick_error error;
  const size_t capacity = source->size_bytes + 8;
  text->tokens = malloc(capacity * sizeof *text->tokens);
  if (text->tokens == NULL) {
    report("out of memory for %zu tokens", capacity);
    return EXIT_MEMORY;
  }
  const wick_status status = wick_tokenize(engine, source->bytes, source->size_bytes, flags,
                                           text->tokens, capacity, &text->count, &error);
  if (status != WICK_OK) return report_error("perplexity", &error);
  const size_t least = text->as_llama ? text->window_tokens : 2;
  if (text->count >= least) return EXIT_DONE;
  report("the text has %zu tokens, but at least %zu are needed", text->count, least);
  return EXIT_USAGE;
}

// Returns the token that the model requires before every text. An empty text is tokenized as this
// token and the token required after every text, if the model has them.
static int32_t find_bos(wick_engine *engine) {
  enum { SAMPLE_TOKENS = 8 };
  int32_t specials[2], sample[SAMPLE_TOKENS];
  size_t special_count = 0, count = 0;
  wick_error error;
  if (wick_tokenize(engine, "", 0, WICK_TOKENIZE_ADD_SPECIAL, specials, 2, &special_count,
                    &error) != WICK_OK ||
      wick_tokenize(engine, "a", 1, WICK_TOKENIZE_ADD_SPECIAL, sample, SAMPLE_TOKENS, &count,
                    &error) != WICK_OK) {
    return WICK_TOKEN_NONE;
  }
  if (special_count == 0 || count == 0) return WICK_TOKEN_NONE;
  const bool is_last_alone = special_count == 1 && sample[count - 1] == specials[0];
  return is_last_alone ? WICK_TOKEN_NONE : specials[0];
}

static bool make_room(perplexity_sums *sums, uint32_t vocab, perplexity_text *text) {
  // a BOS in each window adds at most one position for every two tokens
  const size_t positions = 2 * text->count;
  text->window = malloc(text->window_tokens * sizeof *text->window);
  sums->reference_row = malloc(vocab * sizeof(float));
  sums->log_softmax = malloc(vocab * sizeof(double));
  sums->kl = malloc(2 * positions * sizeof(double));  // and as much space to sort them
  return text->window != NULL && sums->reference_row != NULL && sums->log_softmax != NULL &&
         sums->kl != NULL;
}

static exit_code measure(const perplexity_options *given, wick_engine *engine,
                         const input_text *source, perplexity_sums *sums) {
  perplexity_text text = {.as_llama = given->as_llama};
  wick_plan plan = {0};
  wick_error error;
  wick_model_info info = {0};
  exit_code code = EXIT_DONE;
  if (wick_memory_plan(engine, &plan, &error) != WICK_OK ||
      wick_model_get_info(engine, &info, &error) != WICK_OK) {
    code = report_error(given->path, &error);
  }
  const uint32_t flags =
      WICK_TOKENIZE_ADD_SPECIAL | (given->has_special ? (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL : 0);
  text.window_tokens = plan.context_tokens;
  if (code == EXIT_DONE) code = tokenize_text(engine, source, flags, &text);
  if (code == EXIT_DONE && !make_room(sums, info.vocab, &text)) {
    report("out of memory");
    code = EXIT_MEMORY;
  }
  text.bos = find_bos(engine);
  if (code == EXIT_DONE) code = run_windows(engine, &text, sums);
  if (code == EXIT_DONE) print_result(sums);
  free(text.tokens);
  free(text.window);
  free(sums->reference_row);
  free(sums->log_softmax);
  free(sums->kl);
  return code;
}

static exit_code measure_with_files(const perplexity_options *given, wick_engine *engine,
                                    const input_text *text) {
  perplexity_sums sums = {.adapters = &given->adapters};
  output_file save = {.path = given->save};
  if (given->reference != NULL) sums.reference = fopen(given->reference, "rb");
  if (given->reference != NULL && sums.reference == NULL) {
    report("cannot open %s: %s", given->reference, strerror(errno));
    return EXIT_FILE;
  }
  if (given->save != NULL) sums.save = &save;
  exit_code code = measure(given, engine, text, &sums);
  if (sums.reference != NULL) fclose(sums.reference);
  if (sums.save == NULL) return code;
  return output_file_end(&save, code);
}

static exit_code run_perplexity(perplexity_options *given, const char *path) {
  wick_config config;
  wick_engine *engine = NULL;
  input_text text = {0};
  if (given->reference != NULL && given->save != NULL &&
      strcmp(given->reference, given->save) == 0) {
    report("--kl and --save name the same file: %s", given->save);
    return EXIT_USAGE;
  }
  exit_code code = input_read(NULL, given->path, path, &text);
  if (code == EXIT_DONE) code = settings_apply(&given->model, &config);
  if (code == EXIT_DONE) code = model_open(path, &config, &engine);
  if (code == EXIT_DONE) code = settings_check_threads(&given->model, engine);
  if (code == EXIT_DONE) code = adapter_files_load(&given->adapters, engine);
  if (code == EXIT_DONE) code = measure_with_files(given, engine, &text);
  model_close(engine);
  input_free(&text);
  return code == EXIT_DONE ? output_end() : code;
}

exit_code command_perplexity(int argc, char **argv) {
  perplexity_options given = {.model = settings_default()};
  args_option options[12] = {
      args_string("-f", &given.path, "FILE", "read the text from FILE (default: standard input)"),
      args_string("--kl", &given.reference, "REF.f32",
                  "read another run's logits, and print the divergence from them"),
      args_string("--save", &given.save, "FILE", "write this run's logits, for --kl"),
      args_flag("--special", &given.has_special,
                "parse special tokens in the text, as in a chat (else plain text)"),
      args_flag("--llama", &given.as_llama,
                "count like llama-perplexity: full windows, the second half of each"),
      adapter_files_option(&given.adapters),
  };
  const args_spec spec = {
      "wick perplexity MODEL -f FILE [options]",
      "The text is split into windows of the context's size, each with a BOS if the model requires "
      "one.\n"
      "Divergence: KL(reference || this), in nats.",
      options,
      6 + settings_list(&given.model, SETTINGS_ALL | SETTINGS_TABLES | SETTINGS_PRE, options + 6),
      1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  return parsed == EXIT_NOT_YET ? run_perplexity(&given, model[0]) : parsed;
}
