// component/media_jobs.c — see media_jobs.h.
#include "media_jobs.h"

#include <stdlib.h>

bool media_keep(const server *of, answer *to, uint32_t number, refusal *refused) {
  media_job *job = to->media;
  if (job == NULL) {
    job = to->media = calloc(1, sizeof *job);
    if (job != NULL) random_name(job->marker);
  }
  uint32_t *numbers =
      job == NULL ? NULL : realloc(job->numbers, (job->count + 1) * sizeof *job->numbers);
  if (numbers == NULL) {
    wick_media_remove(of->engine, number);
    return refuse(refused, 503, "nomem", NULL, "Out of memory for the images");
  }
  job->numbers = numbers;
  job->numbers[job->count++] = number;
  return true;
}

void media_wait(server *of, answer *to) {
  answer **link = &of->encodings;
  while (*link != NULL) link = &(*link)->media->next;
  *link = to;
  to->media->is_waiting = true;
}

static void leave_line(server *of, answer *to) {
  answer **link = &of->encodings;
  while (*link != NULL && *link != to) link = &(*link)->media->next;
  if (*link != NULL) *link = to->media->next;
  to->media->next = NULL;
  to->media->is_waiting = false;
}

// The first medium that is not encoded; `count` of them: none.
static uint32_t find_next(const server *of, const media_job *job) {
  wick_media_info info;
  wick_error error;
  uint32_t at = 0;
  while (at < job->count &&
         wick_media_get_info(of->engine, job->numbers[at], &info, &error) == WICK_OK &&
         info.is_ready) {
    at++;
  }
  return at;
}

bool media_step(server *of, answer **ready) {
  answer *first = of->encodings;
  wick_error error;
  *ready = NULL;
  if (first == NULL) return false;
  const media_job *job = first->media;
  const uint32_t next = find_next(of, job);
  if (next == job->count) {
    leave_line(of, first);
    *ready = first;
    return true;
  }
  bool is_ready;
  if (wick_media_step(of->engine, job->numbers[next], 0, &is_ready, &error) != WICK_OK) {
    refusal refused = {0};
    refuse_error(&refused, &error, "messages", NULL);
    leave_line(of, first);
    answer_refuse(first, &refused);
  }
  return true;
}

void media_leave(server *of, answer *to) {
  media_job *job = to->media;
  if (job == NULL) return;
  leave_line(of, to);
  for (uint32_t i = 0; i < job->count; i++) wick_media_remove(of->engine, job->numbers[i]);
  free(job->numbers);
  free(job);
  to->media = NULL;
}
