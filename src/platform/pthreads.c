// platform/pthreads.c — platform.h's threads with pthreads: natively and with Emscripten, where a
// helper runs in a worker of its pool (-sPTHREAD_POOL_SIZE).
#include <pthread.h>
#include <stdlib.h>

#include "platform/platform.h"

typedef struct thread_start {
  void (*entry)(void *);
  void *argument;
} thread_start;

static void *run_thread(void *start) {
  const thread_start copy = *(thread_start *)start;
  free(start);
  copy.entry(copy.argument);
  return NULL;
}

bool platform_thread_start(void (*entry)(void *), void *argument, uintptr_t *handle) {
  thread_start *start = malloc(sizeof *start);
  if (start == NULL) return false;
  *start = (thread_start){entry, argument};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_thread, start) != 0) {
    free(start);
    return false;
  }
  *handle = (uintptr_t)thread;
  return true;
}

void platform_thread_join(uintptr_t handle) { pthread_join((pthread_t)handle, NULL); }
