// web/thread_web.h — the helper threads of a web build. JavaScript starts their workers before the
// engine requests threads. Each helper waits at its slot until it receives an entry function to
// run.
#ifndef WICK_WEB_THREAD_H
#define WICK_WEB_THREAD_H

#include <stdint.h>

// The size of a helper's stack. The stacks are between the data and the heap. The stack of helper i
// (from 0) ends at web_data_end() + (i + 1) * WEB_HELPER_STACK_BYTES.
enum { WEB_HELPER_STACK_BYTES = 131072 };

// Sets the number of helpers, at most WICK_THREADS_MAX - 1. Called once, before a thread is
// started.
void web_threads_expect(uint32_t helpers);

#endif
