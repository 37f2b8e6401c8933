// component/embedding_route.c — POST /v1/embeddings in OpenAI's format, POST /embedding in that of
// llama.cpp's server, and POST /v1/rerank in the formats of Jina and Cohere (documents) and of
// text-embeddings-inference (texts).
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "embedding_jobs.h"
#include "prompts.h"
#include "shape.h"

static bool is_missing(const body *read, const char *name, refusal *refused) {
  if (body_field(read, name) != 0) return false;
  refuse(refused, REFUSE_MISSING(name), name);
  return true;
}

// ---- texts ----

static wick_embed_text *texts_of(body *read, embedding *job, uint32_t count, refusal *refused) {
  wick_embed_text *texts = body_alloc(read, count, sizeof *texts, refused);
  job->request.texts = texts;
  job->request.text_count = count;
  return texts;
}

static bool take_input(const server *of, body *read, uint32_t input, embedding *job,
                       refusal *refused) {
  prompt *inputs;
  uint32_t count;
  if (!prompts_take(of->engine, read, input, "input", &inputs, &count, refused)) return false;
  wick_embed_text *texts = texts_of(read, job, count, refused);
  for (uint32_t i = 0; texts != NULL && i < count; i++) {
    texts[i] = (wick_embed_text){.text = inputs[i].text.bytes,
                                 .text_bytes = inputs[i].text.size_bytes,
                                 .tokens = inputs[i].tokens,
                                 .token_count = inputs[i].token_count};
  }
  return texts != NULL;
}

static uint32_t text_of_document(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_OBJECT ? body_find(read, node, "text") : node;
}

static bool take_documents(body *read, embedding *job, const char *name, refusal *refused) {
  const json_node *list = body_node(read, body_field(read, name));
  if (list->kind != JSON_ARRAY || list->count == 0) {
    return refuse_value(refused, name, WORDS_STRINGS);
  }
  const wick_text query = body_text(read, body_field(read, "query"));
  wick_embed_text *texts = texts_of(read, job, list->count, refused);
  if (texts == NULL) return false;
  for (uint32_t item = list->first; item != 0; item = body_node(read, item)->next) {
    const uint32_t text = text_of_document(read, item);
    if (!body_is_text(read, text)) {
      return refuse_value(refused, name, WORDS_STRINGS);
    }
    const wick_text document = body_text(read, text);
    *texts++ = (wick_embed_text){.text = query.bytes,
                                 .text_bytes = query.size_bytes,
                                 .document = document.bytes,
                                 .document_bytes = document.size_bytes};
  }
  return true;
}

// ---- answers ----

static void put_base64(buffer *out, const uint8_t *bytes, size_t size) {
  static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  buffer_put_text(out, "\"");
  for (size_t at = 0; at < size; at += 3) {
    const size_t left = size - at;
    const uint32_t three = (uint32_t)bytes[at] << 16 |
                           (uint32_t)(left > 1 ? bytes[at + 1] : 0) << 8 |
                           (left > 2 ? bytes[at + 2] : 0);
    const char four[4] = {DIGITS[three >> 18], DIGITS[three >> 12 & 63],
                          left > 1 ? DIGITS[three >> 6 & 63] : '=',
                          left > 2 ? DIGITS[three & 63] : '='};
    buffer_put(out, four, sizeof four);
  }
  buffer_put_text(out, "\"");
}

static void put_floats(buffer *out, const wick_vectors *vectors) {
  const uint32_t count = vectors->rows * vectors->width;
  for (uint32_t i = 0; i < count; i++) {
    shape_put(out, i == 0 ? "[%g" : ",%g", (double)vectors->values[i]);
  }
  buffer_put_text(out, "]");
}

static void put_usage(buffer *out, uint64_t tokens) {
  shape_put(out, "],'usage':{'prompt_tokens':%U,'total_tokens':%U}}", tokens, tokens);
}

static void put_embeddings(answer *to) {
  buffer *out = &to->out;
  shape_put(out, "{'object':'list','model':%s,'data':[", to->of->model);
  for (uint32_t i = 0; i < to->embedding->request.text_count; i++) {
    wick_vectors vectors;
    if (!wick_embed_get(to->of->engine, i, &vectors)) continue;
    const uint32_t count = vectors.rows * vectors.width;
    to->tokens_embedded += vectors.tokens;
    shape_put(out, "%r{'object':'embedding','index':%u,'embedding':", i > 0 ? "," : "", i);
    if (to->embedding->is_base64) {
      put_base64(out, (const uint8_t *)vectors.values, count * sizeof *vectors.values);
    } else {
      put_floats(out, &vectors);
    }
    buffer_put_text(out, "}");
  }
  put_usage(out, to->tokens_embedded);
}

// Writes the vectors in the format of llama.cpp's server.
static void put_native(answer *to) {
  for (uint32_t i = 0; i < to->embedding->request.text_count; i++) {
    wick_vectors vectors;
    if (!wick_embed_get(to->of->engine, i, &vectors)) continue;
    to->tokens_embedded += vectors.tokens;
    shape_put(&to->out, "%r{'index':%u,'embedding':[", i > 0 ? "," : "[", i);
    put_floats(&to->out, &vectors);
    buffer_put_text(&to->out, "]}");
  }
  buffer_put_text(&to->out, "]");
}

typedef struct ranked {
  uint32_t index;
  float score;        // the first output of the head
  float probability;  // from 0 to 1
} ranked;

// Returns the probability of a document. Some rerankers return the probabilities of their labels
// (Qwen3-Reranker), others return logits.
static float probability_of(const wick_vectors *scores) {
  double sum = 0;
  bool is_whole = scores->width > 1;
  for (uint32_t i = 0; i < scores->width; i++) {
    is_whole = is_whole && scores->values[i] >= 0 && scores->values[i] <= 1;
    sum += scores->values[i];
  }
  if (is_whole && sum > 0.999 && sum < 1.001) return scores->values[0];
  return (float)(1 / (1 + math_exp(-(double)scores->values[0])));
}

static int compare_ranks(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->score != b->score) return a->score < b->score ? 1 : -1;
  return a->index < b->index ? -1 : 1;
}

static void put_rank(buffer *out, const embedding *job, const ranked *one) {
  const double score = (double)(job->gives_raw_scores ? one->score : one->probability);
  const wick_embed_text *pair = &job->request.texts[one->index];
  const wick_text document = {pair->document, pair->document_bytes};
  shape_put(out, "{'index':%u,'%r':%g", one->index, job->is_list ? "score" : "relevance_score",
            score);
  if (job->gives_documents) {
    shape_put(out, job->is_list ? ",'text':%t" : ",'document':{'text':%t}", document);
  }
  buffer_put_text(out, "}");
}

static void put_ranking(answer *to) {
  const embedding *job = to->embedding;
  const uint32_t count = job->request.text_count;
  ranked *ranks = calloc(count, sizeof *ranks);
  uint64_t tokens = 0;
  to->out.has_failed = to->out.has_failed || ranks == NULL;
  if (ranks == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    wick_vectors vectors = {0};
    wick_embed_get(to->of->engine, i, &vectors);
    ranks[i].index = i;
    if (vectors.values != NULL) {
      ranks[i].score = vectors.values[0];
      ranks[i].probability = probability_of(&vectors);
    }
    tokens += vectors.tokens;
  }
  qsort(ranks, count, sizeof *ranks, compare_ranks);
  if (!job->is_list) shape_put(&to->out, "{'model':%s,'object':'list','results':", to->of->model);
  buffer_put_text(&to->out, "[");
  for (uint32_t i = 0; i < count && i < job->top_n; i++) {
    if (i > 0) buffer_put_text(&to->out, ",");
    put_rank(&to->out, job, &ranks[i]);
  }
  to->tokens_embedded = tokens;
  if (job->is_list) buffer_put_text(&to->out, "]");
  if (!job->is_list) put_usage(&to->out, tokens);
  free(ranks);
}

// ---- routes ----

static bool check_format(const body *read, refusal *refused) {
  const uint32_t format = body_field(read, "encoding_format");
  return format == 0 || body_is(read, format, "float") || body_is(read, format, "base64") ||
         refuse_value(refused, "encoding_format", WORDS_ENCODING_FORMAT);
}

static bool take_embedding(const server *of, body *read, embedding *job, refusal *refused) {
  if (!check_format(read, refused) || is_missing(read, "input", refused) ||
      !take_input(of, read, body_field(read, "input"), job, refused)) {
    return false;
  }
  const uint32_t dimensions = body_field(read, "dimensions");
  if (dimensions != 0) job->request.dimensions = (uint32_t)body_number(read, dimensions);
  job->request.normalizes = true;
  job->is_base64 = body_is(read, body_field(read, "encoding_format"), "base64");
  job->param = "input";
  job->put = put_embeddings;
  return true;
}

static bool take_native(const server *of, body *read, embedding *job, refusal *refused) {
  const uint32_t content = body_field(read, "content");
  const uint32_t input = body_field(read, "input");
  const uint32_t norm = body_field(read, "embd_normalize");
  if (content == 0 && is_missing(read, "input", refused)) return false;
  if (content != 0 && input != 0) {
    return refuse(refused, REFUSE_SAME_FIELD("content"), "content", "input");
  }
  job->request.normalizes = norm == 0 || body_number(read, norm) > 0;
  job->param = "input";
  job->put = put_native;
  return take_input(of, read, input != 0 ? input : content, job, refused);
}

// Returns the field with the documents; NULL: the documents are in both fields, or missing.
static const char *name_of_documents(const body *read, refusal *refused) {
  if (body_field(read, "texts") == 0) {
    return is_missing(read, "documents", refused) ? NULL : "documents";
  }
  if (body_field(read, "documents") == 0) return "texts";
  refuse(refused, REFUSE_SAME_FIELD("texts"), "texts", "documents");
  return NULL;
}

static bool take_ranking(const server *of, body *read, embedding *job, refusal *refused) {
  (void)of;
  if (is_missing(read, "query", refused)) return false;
  const char *name = name_of_documents(read, refused);
  if (name == NULL || !take_documents(read, job, name, refused)) return false;
  const uint32_t top = body_field(read, "top_n");
  job->top_n = top == 0 ? UINT32_MAX : (uint32_t)body_number(read, top);
  job->is_list = strcmp(name, "texts") == 0;
  const char *shows = job->is_list ? "return_text" : "return_documents";
  job->gives_documents = body_is_true(read, body_field(read, shows));
  job->gives_raw_scores = body_flag(read, "raw_scores");
  job->request.pooling = WICK_POOLING_RANK;
  job->param = "documents";
  job->put = put_ranking;
  return true;
}

static bool begin(server *of, body *read, answer *to,
                  bool (*take)(const server *, body *, embedding *, refusal *), refusal *refused) {
  embedding *job = calloc(1, sizeof *job);
  if (job == NULL) return refuse_memory(refused, NULL);
  wick_embed_default(&job->request);
  if (!take(of, read, job, refused)) {
    free(job);
    return false;
  }
  embedding_wait(of, to, job);
  return true;
}

bool embedding_begin(server *of, body *read, answer *to, refusal *refused) {
  return begin(of, read, to, take_embedding, refused);
}

bool native_embedding_begin(server *of, body *read, answer *to, refusal *refused) {
  return begin(of, read, to, take_native, refused);
}

bool rerank_begin(server *of, body *read, answer *to, refusal *refused) {
  return begin(of, read, to, take_ranking, refused);
}
