// web/thread_web.h — the helpers of a web build. JavaScript starts their workers before the engine
// asks for threads; each waits at its place for an entry to run.
#ifndef WICK_WEB_THREAD_H
#define WICK_WEB_THREAD_H

#include <stdint.h>

// A helper's stack. They lie one after another between data and heap; helper i (from 0) has the one
// that ends at web_data_end() + (i + 1) * WEB_HELPER_STACK_BYTES.
enum { WEB_HELPER_STACK_BYTES = 131072 };

// How many helpers will come in, at most THREADS_MAX - 1. Called once, before any is asked for.
void web_threads_expect(uint32_t helpers);

#endif
