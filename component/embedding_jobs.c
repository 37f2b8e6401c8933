// component/embedding_jobs.c — answers that wait for vectors. The engine embeds the texts of one
// request at a time, so other requests wait in a queue, with their bodies.
#include "embedding_jobs.h"

#include <stdlib.h>

#include "platform/platform.h"

// How long the response headers are delayed so that a failure can set the status.
enum { HEAD_US = 250000 };

void embedding_wait(server *of, answer *to, embedding *job) {
  answer_enqueue(&of->embeddings, to);
  to->embedding = job;
  if (of->embeddings == to) embeddings_step(of);
}

static void leave_line(server *of, answer *to) {
  if (answer_dequeue(&of->embeddings, to) && to->embedding->is_begun) wick_embed_end(of->engine);
}

static void fail(server *of, answer *to, const wick_error *error) {
  refusal refused = {0};
  refuse_error(&refused, error, to->embedding->param, NULL);
  leave_line(of, to);
  answer_refuse(to, &refused);
}

static void give(server *of, answer *to) {
  to->embedding->put(to);
  leave_line(of, to);
  if (to->out.has_failed) {
    refusal refused = {0};
    refuse_memory(&refused, "the answer");
    answer_refuse(to, &refused);
    return;
  }
  answer_give_json(to);
}

bool embeddings_step(server *of) {
  answer *first = of->embeddings;
  if (first == NULL) return false;
  embedding *job = first->embedding;
  wick_error error;
  wick_step_result result = WICK_STEP_PROGRESS;
  if (!job->is_begun) {
    if (wick_embed(of->engine, &job->request, &error) != WICK_OK) {
      fail(of, first, &error);
      return true;
    }
    job->is_begun = true;
    job->begun_us = platform_now_us();
  } else if (wick_embed_step(of->engine, 0, &result, &error) != WICK_OK) {
    fail(of, first, &error);
    return true;
  }
  if (result == WICK_STEP_IDLE) {
    give(of, first);
  } else if (first->status == 0 && platform_now_us() - job->begun_us > HEAD_US) {
    first->status = 200;  // so that the headers are sent and a disconnected client is detected
    first->content_type = "application/json";
  }
  return true;
}

void embeddings_leave(server *of, answer *to) {
  if (to->embedding == NULL) return;
  leave_line(of, to);
  free(to->embedding);
  to->embedding = NULL;
}
