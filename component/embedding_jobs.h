// component/embedding_jobs.h — an answer that waits for vectors: its request, and how its body is
// written.
#ifndef WICK_COMPONENT_EMBEDDING_JOBS_H
#define WICK_COMPONENT_EMBEDDING_JOBS_H

#include "server.h"

struct embedding {
  wick_embed_request request;  // its memory belongs to the body
  bool is_begun;
  uint64_t begun_us;
  const char *param;  // the field of the body with the texts
  // Writes the body of the response when all vectors are complete.
  void (*put)(answer *to);
  bool is_base64;  // for embeddings
  uint32_t top_n;  // for a ranking
  bool gives_documents, gives_raw_scores;
  bool is_list;  // whether the ranking has the format of text-embeddings-inference
};

// Adds an answer to the queue, which then owns the job (allocated with malloc). If the engine
// rejects it immediately, the error is reported before the call returns, unless another job is
// waiting.
void embedding_wait(server *of, answer *to, embedding *job);

#endif
