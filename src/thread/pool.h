// thread/pool.h — a thread pool with parallel_for: one caller and N-1 helpers. A build without
// threads, or a pool of one, has the same functions and runs everything in the caller.
#ifndef WICK_THREAD_POOL_H
#define WICK_THREAD_POOL_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct thread_pool thread_pool;

// Work on units [first, last) of a job; `thread` is 0..threads-1 (scratch slices are per thread).
// It is called once for each piece that a thread takes.
typedef void (*thread_job)(void *context, uint32_t first, uint32_t last, uint32_t thread);

// Starts threads - 1 helpers (fewer if the host cannot start them) and does not wait for them.
// `host` starts them if it has the functions; NULL: the platform does. A helper takes part in jobs
// that begin after its arrival. Helpers sleep when idle. WICK_E_ARG unless 1 <= threads <=
// WICK_THREADS_MAX, WICK_E_NOMEM.
wick_status thread_pool_create(memory_gate *memory, const wick_host *host, uint32_t threads,
                               thread_pool **out, wick_error *error);
// Stops the helpers and returns when every helper has ended. NULL does nothing.
void thread_pool_destroy(thread_pool *pool);
// Returns the number of the caller and the started helpers, whether they have arrived or not.
uint32_t thread_pool_started(const thread_pool *pool);
// Returns the number of the caller and the helpers that have arrived so far, at most the requested
// `threads`. Scratch slices are sized by the requested number: `thread` of a job may be any of
// 0..threads-1.
uint32_t thread_pool_threads(const thread_pool *pool);

// Limits the threads: from now on, at most `threads` threads take part and the others sleep; 0: all
// take part.
void thread_pool_limit(thread_pool *pool, uint32_t threads);

// Divides [0, units) into one run of whole units per thread, and returns when all units are done. A
// thread takes its run in pieces; when none are left, it takes pieces of other threads' runs, so
// that a slow core (an efficiency core, or a busy one) does not delay the rest. Units are
// independent, so the division never changes a result. A call has one barrier. Fewer than 2 units,
// or any units of a pool with one thread, run in the caller without synchronisation. Only one
// thread may call this, and never from inside a job.
void thread_pool_for(thread_pool *pool, uint32_t units, thread_job job, void *context);
// Like thread_pool_for, with pieces of at least `least` units (the last piece of a run may be
// smaller), for jobs whose calls are costly compared with a unit.
void thread_pool_for_pieces(thread_pool *pool, uint32_t units, uint32_t least, thread_job job,
                            void *context);

// A helper's main function: takes part in jobs until the pool is destroyed. The entry given to
// platform_thread_start calls it; a host that starts threads itself may call it, once for each
// index from 1 to threads - 1. The pool's memory must not be used after the return.
// platform_thread_join of a helper that has not arrived must prevent it from arriving later.
void thread_pool_helper_main(thread_pool *pool, uint32_t index);

#endif
