// component/media_jobs.c — see media_jobs.h.
#include "media_jobs.h"

#include <stdlib.h>

_Static_assert(RANDOM_NAME_BYTES <= MEDIA_MARKER_BYTES, "a random name must fit in a marker");

bool media_take(server *of, const body *read, uint32_t messages, answer *to, refusal *refused) {
  if (!media_is_in(read, messages)) return true;
  to->media = calloc(1, sizeof *to->media);
  if (to->media == NULL) {
    return refuse_memory(refused, "the images");
  }
  random_name(to->media->set.marker);
  return media_take_parts(of->engine, read, messages, &to->media->set, refused);
}

void media_wait(server *of, answer *to) {
  answer_enqueue(&of->encodings, to);
  to->media->is_waiting = true;
}

static void leave_line(server *of, answer *to) {
  answer_dequeue(&of->encodings, to);
  to->media->is_waiting = false;
}

bool media_step(server *of, answer **ready) {
  answer *first = of->encodings;
  wick_error error;
  *ready = NULL;
  if (first == NULL) return false;
  const media_set *set = &first->media->set;
  const uint32_t next = media_set_next(of->engine, set);
  if (next == set->count) {
    leave_line(of, first);
    *ready = first;
    return true;
  }
  bool is_ready;
  if (wick_media_step(of->engine, set->numbers[next], 0, &is_ready, &error) != WICK_OK) {
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
  media_set_free(of->engine, &job->set);
  free(job);
  to->media = NULL;
}
