// cli/settings.c — options shared by commands.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // nanosleep
#endif
#include "cli/settings.h"

#include <stdlib.h>
#include <time.h>

static const char *const kv_names[] = {"f16", "f32", "q8", "q4", NULL};
static const char *const tables_names[] = {"auto", "inside", "outside", NULL};

model_settings settings_default(void) {
  return (model_settings){.kv = {WICK_KV_F16, WICK_KV_F16}, .threads = 1};
}

args_option settings_pre_tokenizer(const char **name) {
  return args_string("--pre-tokenizer", name, "NAME",
                     "use this value instead of the file's tokenizer.ggml.pre");
}

size_t settings_list(model_settings *settings, uint32_t which, args_option *options) {
  size_t count = 0;
  if (which & SETTINGS_CTX) {
    options[count++] = args_u32("--ctx", &settings->context_tokens, "N", 1, 1000000000,
                                "set the context in tokens (default: the model's, at most 4096)");
  }
  if (which & SETTINGS_KV) {
    options[count++] = args_pair(
        "--kv", settings->kv, "TYPE", kv_names,
        "set the type of keys and values: f32, f16 (default), q8 or q4, or two types as in q8:f16");
  }
  if (which & SETTINGS_THREADS) {
    options[count++] = args_u32("--threads", &settings->threads, "N", 1, WICK_THREADS_MAX,
                                "use N threads (default 1)");
  }
  if (which & SETTINGS_PREDICTOR) {
    options[count++] = args_flag("--no-predictor", &settings->no_predictor,
                                 "do not load the layer that predicts further tokens");
  }
  if (which & SETTINGS_TABLES) {
    options[count++] =
        args_choice("--tables", &settings->tables, "WHERE", tables_names,
                    "keep embeddings that are only looked up inside memory, outside (read from the "
                    "file at run time), or auto (default: outside if memory is short)");
  }
  if (which & SETTINGS_PRE) options[count++] = settings_pre_tokenizer(&settings->pre_tokenizer);
  return count;
}

// Returns the name of the kernels that the environment variable WICK_CPU selects, or of the best
// kernels. Returns NULL after printing a message if no kernels have this name. (A WebAssembly
// module has kernels for only one kind of processor.)
static const char *choose_kernels(void) {
#ifndef __wasm__
  const char *wanted = getenv("WICK_CPU");
  if (wanted != NULL && wanted[0] != 0) {
    const char *kernels = wick_kernels_name(wanted);
    if (kernels == NULL) {
      report(
          "WICK_CPU=%s: this processor or build has no such kernels; of scalar, sse2, neon, avx2 "
          "and avxvnni, the best is '%s'",
          wanted, wick_kernels_name(NULL));
    }
    return kernels;
  }
#endif
  return wick_kernels_name(NULL);
}

static exit_code refuse_threads(uint32_t wanted, uint32_t found) {
  report("--threads %u: the limit here is %u", (unsigned)wanted, (unsigned)found);
  return EXIT_USAGE;
}

exit_code settings_apply(const model_settings *settings, wick_config *config) {
  wick_config_default(config);
  if (!WICK_THREADS && settings->threads > 1) return refuse_threads(settings->threads, 1);
  config->kernels = choose_kernels();
  config->pre_tokenizer = settings->pre_tokenizer;
  config->tables = (wick_tables)settings->tables;
  config->context_tokens = settings->context_tokens;
  config->threads = settings->threads;
  config->no_predictor = settings->no_predictor;
  config->k_type = (wick_kv_type)settings->kv[0];
  config->v_type = (wick_kv_type)settings->kv[1];
  return config->kernels == NULL ? EXIT_USAGE : EXIT_DONE;
}

exit_code settings_check_threads(const model_settings *settings, const wick_engine *engine) {
  // helpers are counted once they have started
  enum { ARRIVAL_MS_MAX = 5000 };
  uint32_t threads = wick_engine_threads(engine);
  for (int ms = 0; threads < settings->threads && ms < ARRIVAL_MS_MAX; ms++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    threads = wick_engine_threads(engine);
  }
  return threads >= settings->threads ? EXIT_DONE : refuse_threads(settings->threads, threads);
}
