// Writes adapters for the models of fixture_model.h in memory, and submits requests that use them.
#ifndef WICK_TESTS_ADAPTER_RIG_H
#define WICK_TESTS_ADAPTER_RIG_H

#include "fixture_model.h"

enum { RIG_TENSORS_MAX = 64 };

// One tensor in an adapter's directory.
typedef struct rig_tensor {
  char name[GGUF_TENSOR_NAME_BYTES_MAX + 1];
  ggml_type type;
  uint64_t dims[3];
} rig_tensor;

// The contents of an adapter file; if a field is NULL, its key is missing.
typedef struct rig_adapter {
  const char *type, *adapter_type, *architecture;
  bool has_alpha, has_invocation;
  float alpha;
  uint64_t seed;
  bool rounds;  // F32 values are rounded to the values that the same file has in Q8_0
  bool is_cut;  // the file ends after its directory
  rig_tensor tensors[RIG_TENSORS_MAX];
  uint32_t count;
} rig_adapter;

static inline rig_adapter rig_begin(uint64_t seed) {
  return (rig_adapter){.type = "adapter",
                       .adapter_type = "lora",
                       .architecture = "llama",
                       .has_alpha = true,
                       .alpha = 6,
                       .seed = seed};
}

static inline void rig_put(rig_adapter *rig, const char *name, const char *suffix, ggml_type type,
                           uint64_t row_length, uint64_t rows) {
  rig_tensor *tensor = &rig->tensors[rig->count++];
  text_format(tensor->name, sizeof tensor->name, "%s%s", name, suffix);
  tensor->type = type;
  tensor->dims[0] = row_length;
  tensor->dims[1] = rows;
  tensor->dims[2] = 1;
}

// Adds a pair for the weight [out, in] with this name.
static inline void rig_pair(rig_adapter *rig, const char *name, ggml_type type, uint64_t in,
                            uint64_t out, uint64_t rank) {
  rig_put(rig, name, ".lora_a", type, in, rank);
  rig_put(rig, name, ".lora_b", type, rank, out);
}

// Adds a pair for each matrix [out, in] of the stack with this name.
static inline void rig_pairs(rig_adapter *rig, const char *name, ggml_type type, uint64_t in,
                             uint64_t out, uint64_t rank, uint64_t count) {
  rig_pair(rig, name, type, in, out, rank);
  rig->tensors[rig->count - 2].dims[2] = rig->tensors[rig->count - 1].dims[2] = count;
}

static inline rig_tensor *rig_find(rig_adapter *rig, const char *name) {
  for (uint32_t i = 0; i < rig->count; i++) {
    if (strcmp(rig->tensors[i].name, name) == 0) return &rig->tensors[i];
  }
  return NULL;
}

static inline void rig_text(gguf_writer *w, const char *key, const char *text) {
  if (text != NULL) gguf_writer_add_string(w, key, text, strlen(text));
}

static inline void rig_row(gguf_writer *w, const rig_adapter *rig, const rig_tensor *tensor,
                           uint64_t *state) {
  const fixture_tensor row = {
      .name = "adapter", .dims = {tensor->dims[0], 2, 1}, .type = tensor->type};
  const bool is_bf16 = tensor->type == GGML_TYPE_BF16;
  if (!is_bf16 && !rig->rounds) {
    fixture_row(w, &row, state, 0);
    return;
  }
  wick_error error;
  for (uint64_t c = 0; c < tensor->dims[0]; c++) {
    float value = fixture_normal(state) * 0.18f;
    if (rig->rounds) {
      value = f32_of_f16(f16_of_f32(0.0045f)) * (float)(int8_t)(value * 190.0f);
    }
    uint8_t bytes[4];
    memcpy(bytes, &value, 4);
    CHECK_EQ_INT(gguf_writer_write_data(w, is_bf16 ? bytes + 2 : bytes, is_bf16 ? 2 : 4, &error),
                 WICK_OK);
  }
}

// Writes the file. The caller frees file.bytes.
static inline fixture_file rig_write(const rig_adapter *rig) {
  fixture_file file = {0};
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_writer *w;
  wick_error error;
  CHECK_EQ_INT(gguf_writer_create(&memory, fixture_write, &file, 32, &w, &error), WICK_OK);
  rig_text(w, "general.type", rig->type);
  rig_text(w, "general.architecture", rig->architecture);
  rig_text(w, "adapter.type", rig->adapter_type);
  if (rig->has_alpha) gguf_writer_add_f32(w, "adapter.lora.alpha", rig->alpha);
  const int32_t invocation[] = {3, 4};
  if (rig->has_invocation) {
    gguf_writer_add_array(w, "adapter.alora.invocation_tokens", GGUF_I32, invocation, 2);
  }
  for (uint32_t i = 0; i < rig->count; i++) {
    const rig_tensor *tensor = &rig->tensors[i];
    gguf_writer_add_tensor(w, tensor->name, tensor->type, tensor->dims,
                           tensor->dims[2] == 1 ? 2 : 3);
  }
  CHECK_EQ_INT(gguf_writer_write_header(w, &error), WICK_OK);
  uint64_t state = rig->seed;
  for (uint32_t i = 0; i < rig->count && !rig->is_cut; i++) {
    const uint64_t rows = rig->tensors[i].dims[1] * rig->tensors[i].dims[2];
    for (uint64_t r = 0; r < rows; r++) rig_row(w, rig, &rig->tensors[i], &state);
  }
  if (!rig->is_cut) CHECK_EQ_INT(gguf_writer_finish(w, &error), WICK_OK);
  gguf_writer_destroy(w);
  return file;
}

// Returns an adapter for FIXTURE_DEFAULT that changes the attention of layer 0 and the feed-forward
// of layers 1 and 2.
static inline rig_adapter rig_usual(uint64_t seed, ggml_type type, uint64_t rank) {
  rig_adapter rig = rig_begin(seed);
  rig_pair(&rig, "blk.0.attn_q.weight", type, 64, 64, rank);
  rig_pair(&rig, "blk.0.attn_k.weight", type, 64, 32, rank);
  rig_pair(&rig, "blk.0.attn_v.weight", type, 64, 32, rank);
  rig_pair(&rig, "blk.0.attn_output.weight", type, 64, 64, rank);
  rig_pair(&rig, "blk.1.ffn_gate.weight", type, 64, 96, rank);
  rig_pair(&rig, "blk.1.ffn_up.weight", type, 64, 96, rank);
  rig_pair(&rig, "blk.2.ffn_down.weight", type, 96, 64, rank);
  return rig;
}

// Writes, loads and frees the file. Returns the adapter's id, or 0 on failure.
static inline uint32_t rig_add(wick_engine *engine, const rig_adapter *rig) {
  fixture_file file = rig_write(rig);
  uint32_t id = 0;
  wick_error error = {0};
  const wick_status status =
      wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &id, &error);
  free(file.bytes);
  CHECK_EQ_STR(error.message, "");
  return CHECK_EQ_INT(status, WICK_OK) ? id : 0;
}

static inline wick_engine *rig_engine(const wick_config *config, const fixture_file *model) {
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, model, 0, &error), WICK_OK);
  CHECK_EQ_STR(error.message, "");
  return engine;
}

// ---- requests ----

enum { RIG_PROMPT = 37, RIG_ANSWER = 20, RIG_ASKED_MAX = 16 };

// A request and its result.
typedef struct rig_asked {
  uint32_t id, cached, count, finish;
  wick_status status;
  int32_t tokens[RIG_ANSWER];
  float *logits;  // [RIG_PROMPT, FIXTURE_VOCAB]
} rig_asked;

typedef struct rig_talk {
  rig_asked asked[RIG_ASKED_MAX];
  uint32_t count;
} rig_talk;

static inline void rig_keep_logits(void *context, uint32_t position, const float *logits,
                                   uint32_t vocab) {
  rig_asked *asked = context;
  if (position >= RIG_PROMPT) return;
  memcpy(asked->logits + (size_t)position * vocab, logits, vocab * sizeof *logits);
}

static inline void rig_take(void *context, const wick_event *event, const uint8_t *after) {
  rig_talk *talk = context;
  (void)after;
  for (uint32_t i = 0; i < talk->count; i++) {
    rig_asked *asked = &talk->asked[i];
    if (asked->id != event->request) continue;
    if (event->kind == WICK_EVENT_TOKEN && CHECK(asked->count < RIG_ANSWER)) {
      asked->tokens[asked->count++] = event->token;
    }
    if (event->kind != WICK_EVENT_DONE) continue;
    asked->cached = event->tokens_cached;
    asked->finish = event->finish;
    asked->status = (wick_status)event->status;
  }
}

// Submits a request with a prompt that depends on the seed.
static inline rig_asked *rig_ask(wick_engine *engine, rig_talk *talk, uint64_t seed,
                                 const wick_adapter_use *uses, uint32_t count, bool has_logits) {
  rig_asked *asked = &talk->asked[talk->count++];
  int32_t prompt[RIG_PROMPT];
  for (uint32_t i = 0; i < RIG_PROMPT; i++) prompt[i] = (int32_t)(random_u64(&seed) % 250);
  wick_request request = fixture_request(prompt, RIG_PROMPT, RIG_ANSWER);
  wick_error error = {0};
  request.adapters = uses;
  request.adapter_count = count;
  request.priority = (int32_t)talk->count;
  if (has_logits) {
    asked->logits = calloc((size_t)RIG_PROMPT * FIXTURE_VOCAB, sizeof(float));
    request.on_logits = rig_keep_logits;
    request.on_logits_context = asked;
  }
  CHECK_EQ_INT(wick_request_submit(engine, &request, &asked->id, &error), WICK_OK);
  CHECK_EQ_STR(error.message, "");
  return asked;
}

static inline void rig_run(wick_engine *engine, rig_talk *talk) {
  fixture_run(engine, rig_take, talk);
  fixture_take_all(engine, rig_take, talk);
}

static inline void rig_free(rig_talk *talk) {
  for (uint32_t i = 0; i < talk->count; i++) free(talk->asked[i].logits);
  memset(talk, 0, sizeof *talk);
}

static inline void rig_check_same(const rig_asked *a, const rig_asked *b) {
  CHECK_EQ_UINT(a->count, RIG_ANSWER);
  CHECK_EQ_UINT(b->count, RIG_ANSWER);
  CHECK_EQ_MEM(a->tokens, b->tokens, sizeof a->tokens);
  if (a->logits == NULL || b->logits == NULL) return;
  CHECK_EQ_MEM(a->logits, b->logits, (size_t)RIG_PROMPT * FIXTURE_VOCAB * sizeof(float));
}

static inline bool rig_differs(const rig_asked *a, const rig_asked *b) {
  return memcmp(a->logits, b->logits, (size_t)RIG_PROMPT * FIXTURE_VOCAB * sizeof(float)) != 0;
}

#endif
