// cli/settings.c — options shared by commands.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // nanosleep
#endif
#include "cli/settings.h"

#include <stdlib.h>
#include <time.h>

#include "thread/pool.h"

static const char *const kv_names[] = {"f32", "f16", "q8", "q4", NULL};

model_settings settings_default(void) {
  return (model_settings){.kv = {KERNEL_KV_F16, KERNEL_KV_F16}, .threads = 1};
}

size_t settings_list(model_settings *settings, uint32_t which, args_option *options) {
  size_t count = 0;
  if (which & SETTINGS_CTX) {
    options[count++] = args_u32("--ctx", &settings->context_tokens, "N", 1, 1000000000,
                                "context in tokens (default: the model's, at most 4096)");
  }
  if (which & SETTINGS_KV) {
    options[count++] =
        args_pair("--kv", settings->kv, "TYPE", kv_names,
                  "type of keys and values: f32, f16 (default), q8 or q4; of each: q8:f16");
  }
  if (which & SETTINGS_THREADS) {
    options[count++] = args_u32("--threads", &settings->threads, "N", 1, THREADS_MAX,
                                "threads to compute with (default: 1)");
  }
  return count;
}

// Those of the environment's WICK_CPU, or the best; NULL, and a message, when there are none such.
// (A module is for one kind of processor.)
static const wick_kernels *choose_kernels(void) {
#ifndef __wasm__
  const char *wanted = getenv("WICK_CPU");
  if (wanted != NULL && wanted[0] != 0) {
    const wick_kernels *kernels = kernels_by_name(wanted);
    if (kernels == NULL) {
      report(
          "WICK_CPU=%s: this processor or build has no such kernels; of scalar, sse2, neon, avx2 "
          "and avxvnni the best is '%s'",
          wanted, kernels_bind()->name);
    }
    return kernels;
  }
#endif
  return kernels_bind();
}

exit_code settings_apply(const model_settings *settings, wick_config *config) {
  const wick_kernels *kernels = choose_kernels();
  if (kernels == NULL) return EXIT_USAGE;
  const kernel_kv_type k = (kernel_kv_type)settings->kv[0], v = (kernel_kv_type)settings->kv[1];
  wick_config_default(config);
  if (kernels->attention_step[k][v] == NULL) {
    report("--kv %s:%s is not there yet: take f16 or f32", kv_names[k], kv_names[v]);
    return EXIT_USAGE;
  }
  config->kernels = kernels;
  config->context_tokens = settings->context_tokens;
  config->threads = settings->threads;
  config->k_type = k;
  config->v_type = v;
  return EXIT_DONE;
}

exit_code settings_check_threads(const model_settings *settings, const wick_engine *engine) {
  // helpers count from when they arrive
  enum { ARRIVAL_MS_MAX = WICK_THREADS == 0 ? 0 : 5000 };
  uint32_t threads = wick_engine_threads(engine);
  for (int ms = 0; threads < settings->threads && ms < ARRIVAL_MS_MAX; ms++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    threads = wick_engine_threads(engine);
  }
  if (threads >= settings->threads) return EXIT_DONE;
  report("--threads %u: only %u can be had here", (unsigned)settings->threads, (unsigned)threads);
  return EXIT_USAGE;
}
