// api/embed.c — the functions of wick.h for vectors and scores of texts: their tokens, and the job
// that processes them.
#include <string.h>

#include "api/insides.h"
#include "base/checked.h"

void wick_embed_default(wick_embed_request *request) { *request = (wick_embed_request){0}; }

wick_pooling engine_pooling(const wick_engine *engine) {
  const wick_pooling pooling = engine->model->head.pooling;
  if (pooling != WICK_POOLING_MODEL) return pooling;
  return engine->model->is_encoder ? WICK_POOLING_MEAN : WICK_POOLING_LAST;
}

// ---- Tokens ----

// Counts ids, and writes those that fit.
typedef struct id_list {
  int32_t *ids;  // NULL: only count them
  size_t count, capacity;
} id_list;

static void put_id(id_list *list, bool is_wanted, int32_t id) {
  if (!is_wanted || id == TOKEN_NONE) return;
  if (list->count < list->capacity) list->ids[list->count] = id;
  list->count++;
}

static wick_status put_text(id_list *list, tokenizer *tokenizer, wick_text text,
                            const wick_span *spans, size_t span_count, uint32_t flags,
                            wick_error *error) {
  const size_t room = list->count < list->capacity ? list->capacity - list->count : 0;
  size_t count;
  const wick_status status =
      tokenizer_encode_spans(tokenizer, text.bytes, text.size_bytes, spans, span_count, flags,
                             room == 0 ? NULL : list->ids + list->count, room, &count, error);
  list->count += count;
  return status == WICK_E_FULL ? WICK_OK : status;
}

// Writes the pair in the format of BERT and XLM-R: [CLS] query [SEP] document [SEP], <s> query
// </s></s> document </s>.
static wick_status put_plain_pair(id_list *list, tokenizer *tokenizer, const wick_embed_text *pair,
                                  wick_error *error) {
  const bool is_wpm = tokenizer_is_word_pieces(tokenizer);
  const int32_t separator = tokenizer_separator(tokenizer), eos = tokenizer_eos(tokenizer);
  const bool ends = !is_wpm && tokenizer_adds_eos(tokenizer);
  const wick_text query = {pair->text, pair->text_bytes};
  const wick_text document = {pair->document, pair->document_bytes};
  put_id(list, tokenizer_adds_bos(tokenizer), tokenizer_bos(tokenizer));
  wick_status status = put_text(list, tokenizer, query, NULL, 0, 0, error);
  put_id(list, ends, eos);
  put_id(list, is_wpm || separator != TOKEN_NONE, separator);
  put_id(list, ends && separator == TOKEN_NONE, eos);
  if (status == WICK_OK) status = put_text(list, tokenizer, document, NULL, 0, 0, error);
  put_id(list, is_wpm, separator);
  put_id(list, ends, eos);
  return status;
}

// ---- Pairs with a template: "... {query} ... {document} ..." ----

enum { TEMPLATE_SPANS = 5 };

static const char *find(const char *text, const char *end, const char *wanted) {
  const size_t size = strlen(wanted);
  for (; text + size <= end; text++) {
    if (memcmp(text, wanted, size) == 0) return text;
  }
  return NULL;
}

// Splits the template into its three parts. Returns false if the template has no placeholder for a
// query followed by one for a document.
static bool split_template(wick_text source, wick_text parts[3]) {
  static const char QUERY[] = "{query}", DOCUMENT[] = "{document}";
  const char *end = source.bytes + source.size_bytes;
  const char *query = find(source.bytes, end, QUERY);
  if (query == NULL) return false;
  const char *middle = query + sizeof QUERY - 1, *document = find(middle, end, DOCUMENT);
  if (document == NULL) return false;
  const char *last = document + sizeof DOCUMENT - 1;
  parts[0] = (wick_text){source.bytes, (size_t)(query - source.bytes)};
  parts[1] = (wick_text){middle, (size_t)(document - middle)};
  parts[2] = (wick_text){last, (size_t)(end - last)};
  return true;
}

// Writes the pair in the format of the template. Control tokens are recognised only in the
// template's parts; query and document are plain text.
static wick_status put_template_pair(wick_engine *engine, id_list *list, const wick_text parts[3],
                                     const wick_embed_text *pair, wick_error *error) {
  const wick_text texts[TEMPLATE_SPANS] = {parts[0],
                                           {pair->text, pair->text_bytes},
                                           parts[1],
                                           {pair->document, pair->document_bytes},
                                           parts[2]};
  wick_span spans[TEMPLATE_SPANS];
  size_t all = 0;
  for (size_t i = 0; i < TEMPLATE_SPANS; i++) {
    if (!checked_add_size(all, texts[i].size_bytes, &all) || all > UINT32_MAX) {
      return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "a pair of texts is too long");
    }
    spans[i] = (wick_span){(uint32_t)all, i % 2};
  }
  char *bytes = memory_alloc(&engine->memory, all + 1);
  if (bytes == NULL) return memory_fail(&engine->memory, error, "a pair of texts");
  for (size_t i = 0, at = 0; i < TEMPLATE_SPANS; at += texts[i++].size_bytes) {
    if (texts[i].size_bytes != 0) memcpy(bytes + at, texts[i].bytes, texts[i].size_bytes);
  }
  const uint32_t flags = WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL;
  const wick_status status = put_text(list, engine->tokenizer, (wick_text){bytes, all}, spans,
                                      TEMPLATE_SPANS, flags, error);
  memory_free(&engine->memory, bytes);
  return status;
}

static wick_status put_pair(wick_engine *engine, id_list *list, const wick_embed_text *pair,
                            wick_error *error) {
  gguf_string source = {"", 0};
  wick_text parts[3];
  gguf_get_string(engine_directory(engine), "tokenizer.chat_template.rerank", &source, NULL);
  if (split_template((wick_text){source.bytes, (size_t)source.size_bytes}, parts)) {
    return put_template_pair(engine, list, parts, pair, error);
  }
  return put_plain_pair(list, engine->tokenizer, pair, error);
}

// ---- All texts ----

static wick_status put_tokens(wick_engine *engine, id_list *list, const wick_embed_text *text,
                              wick_error *error) {
  for (size_t i = 0; i < text->token_count; i++) {
    const int32_t id = text->tokens[i];
    if (id < 0 || (uint32_t)id >= engine->model->config.vocab) {
      return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "token %d is not in the vocabulary of %u",
                       id, engine->model->config.vocab);
    }
    put_id(list, true, id);
  }
  return WICK_OK;
}

static wick_status put_one(wick_engine *engine, id_list *list, const wick_embed_text *text,
                           wick_error *error) {
  if (text->tokens != NULL) return put_tokens(engine, list, text, error);
  if (text->document != NULL) return put_pair(engine, list, text, error);
  return put_text(list, engine->tokenizer, (wick_text){text->text, text->text_bytes}, NULL, 0,
                  WICK_TOKENIZE_ADD_SPECIAL, error);
}

// Checks the number of tokens of text `index`. *kept receives the number of tokens to process.
static wick_status check_count(const wick_engine *engine, const wick_embed_request *request,
                               uint32_t index, size_t count, uint32_t *kept, wick_error *error) {
  const uint32_t context = engine->context_tokens;
  *kept = count > context ? context : (uint32_t)count;
  if (count == 0) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "text %u has no tokens", index);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PROMPT, index, 0);
  }
  if (count <= context || request->truncates) return WICK_OK;
  fail_with(
      error, WICK_E_FULL, WICK_NO_OFFSET,
      "text %u is too long: it has %zu tokens, which exceeds the available context size of %u",
      index, count, context);
  return status_about(WICK_E_FULL, error, WICK_SUBJECT_CONTEXT, count, context);
}

// Tokenizes all texts, one after another; counts [text_count]. The caller frees both, even after a
// failure.
static wick_status make_tokens(wick_engine *engine, const wick_embed_request *request,
                               int32_t **tokens, uint32_t *counts, wick_error *error) {
  size_t used = 0, capacity = 0;
  for (uint32_t i = 0; i < request->text_count; i++) {
    id_list list = {.count = 0};  // the first pass only counts
    wick_status status = put_one(engine, &list, &request->texts[i], error);
    if (status == WICK_OK) {
      status = check_count(engine, request, i, list.count, &counts[i], error);
    }
    if (status != WICK_OK) return status;
    if (*tokens == NULL || capacity - used < list.count) {
      capacity = 2 * capacity + list.count;
      int32_t *more = memory_resize(&engine->memory, *tokens, capacity * sizeof **tokens);
      if (more == NULL) return memory_fail(&engine->memory, error, "tokens of texts");
      *tokens = more;
    }
    id_list written = {*tokens + used, 0, list.count};
    status = put_one(engine, &written, &request->texts[i], error);
    if (status != WICK_OK) return status;
    written.ids[counts[i] - 1] = written.ids[list.count - 1];  // keep the last token
    used += counts[i];
  }
  return WICK_OK;
}

// ---- The job ----

static wick_status check_request(const wick_engine *engine, const wick_embed_request *request,
                                 wick_error *error) {
  const wick_status known = STATUS_CHECK_RESERVED("wick_embed_request", request->reserved, error);
  if (known != WICK_OK) return known;
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  if (engine->forward == NULL) return engine_no_model(engine, error);
  if (engine->embedding != NULL || engine->is_draft) {
    return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "an embedding job is running");
  }
  if (request->text_count == 0 || (unsigned)request->pooling > WICK_POOLING_RANK) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     request->text_count == 0 ? "there are no texts" : "unknown pooling");
  }
  return WICK_OK;
}

// Chooses the width of the returned vectors.
static wick_status choose_width(const wick_engine *engine, const wick_embed_request *request,
                                wick_pooling pooling, uint32_t *width, wick_error *error) {
  const loaded_model *model = engine->model;
  const uint32_t most =
      head_width(&model->head, model->config.hidden, pooling == WICK_POOLING_RANK);
  if (most == 0) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "the model has no head for scores ('cls.output.weight')");
  }
  if (request->dimensions > most) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u dimensions: vectors have %u",
                     request->dimensions, most);
  }
  *width = request->dimensions == 0 ? most : request->dimensions;
  return WICK_OK;
}

static wick_status begin_job(wick_engine *engine, const wick_embed_request *request,
                             const adapter_set *adapters, int32_t *tokens, uint32_t *counts,
                             wick_error *error) {
  const wick_pooling pooling =
      request->pooling == WICK_POOLING_MODEL ? engine_pooling(engine) : request->pooling;
  const bool is_encoder = engine->model->is_encoder;
  uint32_t width;
  wick_status status = choose_width(engine, request, pooling, &width, error);
  if (status == WICK_OK && !is_encoder) {
    status = forward_create(engine->model, engine->store, engine->threads, engine->config.threads,
                            engine->config.batch_tokens, &engine->embed_pass, error);
  }
  if (status != WICK_OK) {
    memory_free(&engine->memory, tokens);
    memory_free(&engine->memory, counts);
    return status;
  }
  const embedding_parts parts = {.memory = &engine->memory,
                                 .model = engine->model,
                                 .store = engine->store,
                                 .forward = is_encoder ? engine->forward : engine->embed_pass,
                                 .batch_tokens = engine_batch_tokens(engine),
                                 .adapters = *adapters,
                                 .scheduler = engine->scheduler};
  status = embedding_create(&parts, tokens, counts, request->text_count, pooling, width,
                            request->normalizes, &engine->embedding, error);
  engine->embed_count = request->text_count;
  if (status != WICK_OK) wick_embed_end(engine);
  return status;
}

wick_status wick_embed(wick_engine *engine, const wick_embed_request *request, wick_error *error) {
  adapter_set adapters;
  wick_status status = check_request(engine, request, error);
  if (status == WICK_OK) {
    status = adapter_set_make(&engine->adapters, request->adapters, request->adapter_count,
                              &adapters, error);
  }
  if (status != WICK_OK) return status;
  int32_t *tokens = NULL;
  uint32_t *counts = memory_alloc_array(&engine->memory, request->text_count, sizeof *counts);
  if (counts == NULL) {
    return memory_fail(&engine->memory, error, "texts");
  }
  status = make_tokens(engine, request, &tokens, counts, error);
  if (status == WICK_OK) return begin_job(engine, request, &adapters, tokens, counts, error);
  memory_free(&engine->memory, tokens);
  memory_free(&engine->memory, counts);
  return status;
}

wick_status wick_embed_step(wick_engine *engine, uint64_t budget_us, wick_step_result *result,
                            wick_error *error) {
  *result = WICK_STEP_IDLE;
  if (engine->embedding == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "no texts are being embedded");
  }
  engine_check_kernels(engine);
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  const uint64_t end_us = budget_us == 0 ? 0 : engine->now_us() + budget_us;
  wick_status status;
  do {
    status = embedding_step(engine->embedding, result, error);
  } while (status == WICK_OK && *result == WICK_STEP_PROGRESS && engine->now_us() < end_us);
  return status;
}

bool wick_embed_get(const wick_engine *engine, uint32_t index, wick_vectors *vectors) {
  if (engine->embedding == NULL || index >= engine->embed_count) return false;
  vectors->values = embedding_vectors(engine->embedding, index, &vectors->rows, &vectors->width,
                                      &vectors->tokens);
  return vectors->values != NULL;
}

void wick_embed_end(wick_engine *engine) {
  embedding_destroy(engine->embedding);
  forward_destroy(engine->embed_pass);
  engine->embedding = NULL;
  engine->embed_pass = NULL;
}
