// component/embedding_route.c — POST /v1/embeddings in OpenAI's format, and POST /v1/rerank in the
// formats of Jina and Cohere (documents) and of text-embeddings-inference (texts).
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/math.h"
#include "embedding_jobs.h"

static const field fields_embedding[] = {{"model", FIELD_TEXT, 0, 0, NULL},
                                         {"user", FIELD_IGNORED, 0, 0, NULL},
                                         {"input", FIELD_IGNORED, 0, 0, NULL},
                                         {"dimensions", FIELD_WHOLE, 1, UINT32_MAX, NULL},
                                         {"encoding_format", FIELD_IGNORED, 0, 0, NULL},
                                         {NULL, FIELD_IGNORED, 0, 0, NULL}};
static const field fields_rerank[] = {
    {"model", FIELD_TEXT, 0, 0, NULL},           {"user", FIELD_IGNORED, 0, 0, NULL},
    {"query", FIELD_TEXT, 0, 0, NULL},           {"documents", FIELD_IGNORED, 0, 0, NULL},
    {"top_n", FIELD_WHOLE, 1, UINT32_MAX, NULL}, {"return_documents", FIELD_BOOLEAN, 0, 0, NULL},
    {"texts", FIELD_IGNORED, 0, 0, NULL},        {"return_text", FIELD_BOOLEAN, 0, 0, NULL},
    {"raw_scores", FIELD_BOOLEAN, 0, 0, NULL},   {NULL, FIELD_IGNORED, 0, 0, NULL}};

static bool is_missing(const body *read, const char *name, refusal *refused) {
  if (body_find(read, BODY_ROOT, name) != 0) return false;
  refuse(refused, 400, "missing_required_parameter", name, "%s is missing", name);
  return true;
}

// ---- texts ----

static bool refuse_input(refusal *refused) {
  return refuse_value(refused, "input", "a string, token ids, or an array of these");
}

static bool take_text(body *read, uint32_t node, wick_embed_text *out, refusal *refused) {
  if (body_are_tokens(read, node)) {
    return body_take_tokens(read, node, &out->tokens, &out->token_count, refuse_input, refused);
  }
  if (body_node(read, node)->kind != JSON_STRING) return refuse_input(refused);
  out->text = body_text(read, node).bytes;
  out->text_bytes = body_text(read, node).size_bytes;
  return true;
}

static wick_embed_text *texts_of(body *read, embedding *job, uint32_t count, refusal *refused) {
  wick_embed_text *texts = body_alloc(read, count, sizeof *texts, refused);
  job->request.texts = texts;
  job->request.text_count = count;
  return texts;
}

static bool take_input(body *read, embedding *job, refusal *refused) {
  const uint32_t input = body_find(read, BODY_ROOT, "input");
  const json_node *found = body_node(read, input);
  const bool is_one = found->kind == JSON_STRING || body_are_tokens(read, input);
  if (!is_one && (found->kind != JSON_ARRAY || found->count == 0)) return refuse_input(refused);
  wick_embed_text *texts = texts_of(read, job, is_one ? 1 : found->count, refused);
  if (texts == NULL) return false;
  if (is_one) return take_text(read, input, texts, refused);
  for (uint32_t item = found->first; item != 0; item = body_node(read, item)->next) {
    if (!take_text(read, item, texts++, refused)) return false;
  }
  return true;
}

static uint32_t text_of_document(const body *read, uint32_t node) {
  return body_node(read, node)->kind == JSON_OBJECT ? body_find(read, node, "text") : node;
}

static bool take_documents(body *read, embedding *job, const char *name, refusal *refused) {
  const json_node *list = body_node(read, body_find(read, BODY_ROOT, name));
  if (list->kind != JSON_ARRAY || list->count == 0) {
    return refuse_value(refused, name, "an array of strings");
  }
  const wick_text query = body_text(read, body_find(read, BODY_ROOT, "query"));
  wick_embed_text *texts = texts_of(read, job, list->count, refused);
  if (texts == NULL) return false;
  for (uint32_t item = list->first; item != 0; item = body_node(read, item)->next) {
    const uint32_t text = text_of_document(read, item);
    if (body_node(read, text)->kind != JSON_STRING) {
      return refuse_value(refused, name, "an array of strings");
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

static void put_usage(json_writer *json, uint64_t tokens) {
  json_open(json, "usage", '{');
  json_u64(json, "prompt_tokens", tokens);
  json_u64(json, "total_tokens", tokens);
  json_close(json, '{');
}

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

static void put_vector(json_writer *json, answer *to, const wick_vectors *vectors) {
  json_member(json, "embedding");
  const uint32_t count = vectors->rows * vectors->width;
  if (to->embedding->is_base64) {
    put_base64(&to->out, (const uint8_t *)vectors->values, count * sizeof *vectors->values);
    return;
  }
  json_writer list;
  json_begin(&list, buffer_put, &to->out);
  json_open(&list, NULL, '[');
  for (uint32_t i = 0; i < count; i++) json_f32(&list, NULL, vectors->values[i]);
  json_close(&list, '[');
}

static void put_embeddings(const server *of, answer *to) {
  json_writer json;
  uint64_t tokens = 0;
  json_begin(&json, buffer_put, &to->out);
  json_open(&json, NULL, '{');
  json_text(&json, "object", "list");
  json_text(&json, "model", of->model);
  json_open(&json, "data", '[');
  for (uint32_t i = 0; i < to->embedding->request.text_count; i++) {
    wick_vectors vectors;
    if (!wick_embed_get(of->engine, i, &vectors)) continue;
    tokens += vectors.tokens;
    json_open(&json, NULL, '{');
    json_text(&json, "object", "embedding");
    json_u64(&json, "index", i);
    put_vector(&json, to, &vectors);
    json_close(&json, '{');
  }
  json_close(&json, '[');
  to->tokens_embedded = tokens;
  put_usage(&json, tokens);
  json_close(&json, '{');
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

static void put_rank(json_writer *json, const embedding *job, const ranked *one) {
  json_open(json, NULL, '{');
  json_u64(json, "index", one->index);
  const float score = job->gives_raw_scores ? one->score : one->probability;
  json_f32(json, job->is_list ? "score" : "relevance_score", score);
  if (job->gives_documents) {
    const wick_embed_text *pair = &job->request.texts[one->index];
    if (!job->is_list) json_open(json, "document", '{');
    json_string(json, "text", pair->document, pair->document_bytes);
    if (!job->is_list) json_close(json, '{');
  }
  json_close(json, '{');
}

static void put_ranking(const server *of, answer *to) {
  const embedding *job = to->embedding;
  const uint32_t count = job->request.text_count;
  ranked *ranks = calloc(count, sizeof *ranks);
  uint64_t tokens = 0;
  to->out.has_failed = to->out.has_failed || ranks == NULL;
  if (ranks == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    wick_vectors vectors = {0};
    wick_embed_get(of->engine, i, &vectors);
    ranks[i].index = i;
    if (vectors.values != NULL) {
      ranks[i].score = vectors.values[0];
      ranks[i].probability = probability_of(&vectors);
    }
    tokens += vectors.tokens;
  }
  qsort(ranks, count, sizeof *ranks, compare_ranks);
  json_writer json;
  json_begin(&json, buffer_put, &to->out);
  if (!job->is_list) {
    json_open(&json, NULL, '{');
    json_text(&json, "model", of->model);
    json_text(&json, "object", "list");
  }
  json_open(&json, job->is_list ? NULL : "results", '[');
  for (uint32_t i = 0; i < count && i < job->top_n; i++) put_rank(&json, job, &ranks[i]);
  json_close(&json, '[');
  to->tokens_embedded = tokens;
  if (!job->is_list) {
    put_usage(&json, tokens);
    json_close(&json, '{');
  }
  free(ranks);
}

// ---- routes ----

static bool check_format(const body *read, refusal *refused) {
  const uint32_t format = body_find(read, BODY_ROOT, "encoding_format");
  return format == 0 || body_is(read, format, "float") || body_is(read, format, "base64") ||
         refuse_value(refused, "encoding_format", "float or base64");
}

static bool take_embedding(body *read, embedding *job, refusal *refused) {
  const field_tables tables = {fields_embedding, NULL, ""};
  if (!fields_check(read, BODY_ROOT, &tables, refused) || !check_format(read, refused) ||
      is_missing(read, "input", refused) || !take_input(read, job, refused)) {
    return false;
  }
  const uint32_t dimensions = body_find(read, BODY_ROOT, "dimensions");
  if (dimensions != 0) job->request.dimensions = (uint32_t)body_number(read, dimensions);
  job->request.normalizes = true;
  job->is_base64 = body_is(read, body_find(read, BODY_ROOT, "encoding_format"), "base64");
  job->param = "input";
  job->put = put_embeddings;
  return true;
}

// Returns the field with the documents; NULL: the documents are in both fields, or missing.
static const char *name_of_documents(const body *read, refusal *refused) {
  if (body_find(read, BODY_ROOT, "texts") == 0) {
    return is_missing(read, "documents", refused) ? NULL : "documents";
  }
  if (body_find(read, BODY_ROOT, "documents") == 0) return "texts";
  refuse(refused, 400, "invalid_value", "texts",
         "texts and documents are the same field: send one");
  return NULL;
}

static bool take_ranking(body *read, embedding *job, refusal *refused) {
  const field_tables tables = {fields_rerank, NULL, ""};
  if (!fields_check(read, BODY_ROOT, &tables, refused) || is_missing(read, "query", refused)) {
    return false;
  }
  const char *name = name_of_documents(read, refused);
  if (name == NULL || !take_documents(read, job, name, refused)) return false;
  const uint32_t top = body_find(read, BODY_ROOT, "top_n");
  job->top_n = top == 0 ? UINT32_MAX : (uint32_t)body_number(read, top);
  job->is_list = strcmp(name, "texts") == 0;
  const char *shows = job->is_list ? "return_text" : "return_documents";
  job->gives_documents = body_is_true(read, body_find(read, BODY_ROOT, shows));
  job->gives_raw_scores = body_is_true(read, body_find(read, BODY_ROOT, "raw_scores"));
  job->request.pooling = WICK_POOLING_RANK;
  job->param = "documents";
  job->put = put_ranking;
  return true;
}

static bool begin(server *of, body *read, answer *to, bool (*take)(body *, embedding *, refusal *),
                  refusal *refused) {
  embedding *job = calloc(1, sizeof *job);
  if (job == NULL) return refuse(refused, 503, "nomem", NULL, "Out of memory");
  wick_embed_default(&job->request);
  if (!take(read, job, refused)) {
    free(job);
    return false;
  }
  embedding_wait(of, to, job);
  return true;
}

bool embedding_begin(server *of, body *read, answer *to, refusal *refused) {
  return begin(of, read, to, take_embedding, refused);
}

bool rerank_begin(server *of, body *read, answer *to, refusal *refused) {
  return begin(of, read, to, take_ranking, refused);
}
