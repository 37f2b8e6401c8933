// thread/pool.h — a pool with parallel_for. One caller and N-1 helpers; a build without threads, or a
// pool of one, keeps the same calls and runs everything in the caller.
#ifndef WICK_THREAD_POOL_H
#define WICK_THREAD_POOL_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

enum { THREADS_MAX = 64 };

typedef struct thread_pool thread_pool;

// Work on units [first, last) of a job; `thread` is 0..threads-1 (scratch slices are per thread).
typedef void (*thread_job)(void *context, uint32_t first, uint32_t last, uint32_t thread);

// Starts threads - 1 helpers (fewer when the host refuses: thread_pool_threads tells). Helpers sleep
// when idle. WICK_E_ARG unless 1 <= threads <= THREADS_MAX.
wick_status thread_pool_create(wick_memory *memory, uint32_t threads, thread_pool **out,
                               wick_error *error);
void thread_pool_destroy(thread_pool *pool);
uint32_t thread_pool_threads(const thread_pool *pool);

// Cuts [0, units) statically into at most `threads` runs of whole units and returns when all are
// done. The cut never changes a result: units are independent. One barrier a call. Fewer than
// 2 units, or a pool of one: runs in the caller without any synchronisation.
void thread_pool_for(thread_pool *pool, uint32_t units, thread_job job, void *context);

#endif
