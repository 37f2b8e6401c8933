// tests/fuzz/model_fuzz.c — from a GGUF file to generated text through the public interface. Input:
// bytes that choose a small valid model (tests/c/model_builder.h), then changes of its values,
// lists, tensors and bytes (first their number), then how it is configured and loaded, then calls
// of the interface until the bytes end. Bytes that are not there are 0. Asserted: each request ends
// once, within STEPS_MAX steps of the engine; pages are sound and all given back; after any error
// the engine goes on and can be destroyed, and (by the leak detector) gives all memory back.
#include <stdlib.h>
#include <string.h>

#include "../c/model_builder.h"
#include "../c/random.h"
#include "api/insides.h"

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

enum {
  INPUT_MAX = 512,
  CHANGES_MAX = 12,
  CALLS_MAX = 48,
  REQUESTS_MAX = 96,
  SESSIONS_MAX = 8,
  KEPT_MAX = 64,
  STEPS_MAX = 30000,
  TEXT_MAX = 640,
  CONTEXT = 64
};

// ---- the input ----

typedef struct input {
  const uint8_t *at;
  size_t left;
} input;

static uint32_t next_u8(input *in) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++;
}

static uint32_t next_u16(input *in) {
  const uint32_t low = next_u8(in);
  return low | next_u8(in) << 8;
}

static uint32_t next_u32(input *in) {
  const uint32_t low = next_u16(in);
  return low | next_u16(in) << 16;
}

// ---- changes of the model ----

static built_value *choose_value(model_builder *model, input *in) {
  return &model->values[next_u8(in) % model->value_count];
}

static built_value *choose_list(model_builder *model, input *in) {
  static const char *const LISTS[] = {"tokens", "token_type", "scores", "merges"};
  char key[BUILT_KEY_BYTES] = "tokenizer.ggml.";
  const char *name = LISTS[next_u8(in) % 4];
  memcpy(key + strlen(key), name, strlen(name) + 1);
  built_value *value = builder_find(model, key);
  return value != NULL ? value : choose_value(model, in);
}

// Numbers that are at the edge of something, or the input's own.
static uint64_t choose_number(input *in) {
  static const uint64_t EDGES[] = {0,          1,          2,          3,           31,
                                   32,         64,         255,        1023,        1024,
                                   65535,      65536,      0x7fffffff, 0x80000000u, 0xffffffffu,
                                   1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX};
  const uint32_t choice = next_u8(in);
  if (choice < sizeof EDGES / sizeof *EDGES) return EDGES[choice];
  return choice < 128 ? next_u16(in) : next_u32(in);
}

static void put_optional(model_builder *model, input *in) {
  static const char *const KEYS[] = {"llama.rope.scaling.type",
                                     "llama.rope.scaling.factor",
                                     "llama.rope.scale_linear",
                                     "llama.rope.dimension_count",
                                     "llama.attention.key_length",
                                     "llama.attention.value_length",
                                     "llama.expert_count",
                                     "llama.expert_used_count",
                                     "llama.expert_weights_scale",
                                     "qwen3moe.expert_count",
                                     "lfm2.shortconv.l_cache",
                                     "lfm2.attention.head_count_kv",
                                     "qwen35.ssm.group_count",
                                     "qwen35.full_attention_interval",
                                     "qwen35.nextn_predict_layers",
                                     "jamba.expert_count",
                                     "jamba.ssm.inner_size",
                                     "jamba.ssm.state_size",
                                     "jamba.ssm.time_step_rank",
                                     "granitehybrid.expert_count",
                                     "granitehybrid.ssm.inner_size",
                                     "granitehybrid.ssm.group_count",
                                     "granitehybrid.ssm.time_step_rank",
                                     "llama.vocab_size",
                                     "general.alignment",
                                     "split.count",
                                     "split.no",
                                     "split.tensors.count",
                                     "tokenizer.ggml.add_bos_token",
                                     "tokenizer.ggml.add_eos_token",
                                     "tokenizer.ggml.add_space_prefix",
                                     "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.fim_pad_token_id",
                                     "tokenizer.ggml.seperator_token_id",
                                     "tokenizer.ggml.pre",
                                     "tokenizer.ggml.normalizer.lowercase"};
  static const char *const TEXTS[] = {"none",  "linear", "yarn",        "llama-bpe",
                                      "qwen2", "tekken", "deepseek-v3", "gpt-4o"};
  const char *key = KEYS[next_u8(in) % (sizeof KEYS / sizeof *KEYS)];
  const uint32_t type = next_u8(in) % (GGUF_F64 + 1);
  if (type == GGUF_STRING) {
    builder_put_text(model, key, TEXTS[next_u8(in) % 8]);
    return;
  }
  built_value *value = builder_put(model, key, type);
  const uint64_t number = choose_number(in);
  static const uint8_t BYTES[GGUF_F64 + 1] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (value != NULL) value_set_data(value, &number, BYTES[type]);
}

// One item: a long run of a letter, another item, two of them, or the input's bytes.
static void change_item(model_builder *model, input *in) {
  built_value *list = choose_list(model, in);
  const uint32_t index = next_u16(in) % 300, how = next_u8(in) % 5, other = next_u16(in);
  if (list->item_type != GGUF_STRING) {
    value_set_i32(list, index, (int32_t)choose_number(in));
    return;
  }
  const memory_file *from = list->item_count == 0 ? NULL : &list->items[other % list->item_count];
  uint8_t text[4096] = {0};
  size_t size = 0;
  if (how == 0) {
    size = other % sizeof text;
    memset(text, (int)('a' + other % 3), size);
  } else if (how < 3 && from != NULL) {
    for (uint32_t i = 0; i < how && size + from->size_bytes < sizeof text; i++) {
      if (from->size_bytes != 0) memcpy(text + size, from->bytes, from->size_bytes);
      size += from->size_bytes;
    }
  } else {
    size = next_u8(in) % 16;
    for (size_t i = 0; i < size; i++) text[i] = (uint8_t)next_u8(in);
  }
  value_set_item(list, index, text, size);
}

// Special tokens that begin each other.
static void nest_specials(model_builder *model, input *in) {
  built_value *tokens = builder_find(model, "tokenizer.ggml.tokens");
  built_value *kinds = builder_find(model, "tokenizer.ggml.token_type");
  if (tokens == NULL || kinds == NULL) return;
  const uint32_t first = next_u16(in) % 280, count = next_u8(in) % 64, by = 1 + next_u8(in) % 20;
  const int32_t kind = TOKEN_UNKNOWN + (int32_t)(next_u8(in) % 3);
  char text[64 * 20];
  memset(text, 'a', sizeof text);
  for (uint32_t i = 0; i < count; i++) {
    value_set_item(tokens, first + i, text, (size_t)(i + 1) * by);
    value_set_i32(kinds, first + i, kind);
  }
}

static void change_tensor(model_builder *model, input *in) {
  if (model->tensor_count == 0) return;
  built_tensor *tensor = &model->tensors[next_u8(in) % model->tensor_count];
  const uint64_t number = choose_number(in);
  switch (next_u8(in) % 7) {
    case 0:
      tensor->type = (uint32_t)number % 48;
      break;
    case 1:
      tensor->dim_count = (uint32_t)number % 6;
      break;
    case 2:
    case 3:
      tensor->dims[next_u8(in) % 2] = number;
      break;
    case 4:
      tensor->shift_bytes = number;
      break;
    case 5:
      tensor->name[next_u8(in) % 20] ^= 1;
      break;
    default:
      *tensor = model->tensors[--model->tensor_count];
  }
}

static void change_model(model_builder *model, input *in) {
  built_value *value;
  uint64_t number;
  uint32_t bits;
  switch (next_u8(in) % 12) {
    case 0:  // a number
      value = choose_value(model, in);
      number = choose_number(in);
      if (value->type != GGUF_ARRAY) value_set_data(value, &number, value->data.size_bytes % 9);
      break;
    case 1:  // a float by its bits
      value = choose_value(model, in);
      bits = next_u32(in);
      if (value->type == GGUF_F32) value_set_data(value, &bits, sizeof bits);
      break;
    case 2:
      value = choose_value(model, in);
      value->type = next_u8(in) % 14;
      break;
    case 3:
      value = choose_value(model, in);
      builder_remove(model, value->key);
      break;
    case 4:
      value = choose_value(model, in);
      value->key[next_u8(in) % strlen(value->key)] ^= 1;
      break;
    case 5:
      value_resize(choose_list(model, in), next_u16(in) % 700);
      break;
    case 6:  // a count that is not true
      choose_list(model, in)->count = choose_number(in);
      break;
    case 7:
      change_item(model, in);
      break;
    case 8:
      nest_specials(model, in);
      break;
    case 9:
      change_tensor(model, in);
      break;
    case 10:
      put_optional(model, in);
      break;
    default: {
      static const float POISON[] = {1e30f, -1e30f, 1e-40f, __builtin_inff(), __builtin_nanf("")};
      model->poison = POISON[next_u8(in) % 5];
    }
  }
}

static void damage_file(memory_file *file, input *in) {
  const uint32_t how = next_u8(in);
  for (uint32_t i = 0; i < how % 4; i++) {
    file->bytes[next_u32(in) % file->size_bytes] ^= (uint8_t)(1 + next_u8(in) % 255);
  }
  if (how >= 224) file->size_bytes = next_u32(in) % file->size_bytes;
}

static memory_file make_file(input *in) {
  static const ggml_type TYPES[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_Q8_0,
                                    GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_MXFP4,
                                    GGML_TYPE_BF16, GGML_TYPE_Q4_K};
  // by the two highest bits and the one of 16
  static const built_family FAMILIES[4][2] = {{BUILT_LLAMA, BUILT_QWEN2},
                                              {BUILT_LLAMA_EXPERTS, BUILT_QWEN3MOE},
                                              {BUILT_LFM2, BUILT_QWEN35},
                                              {BUILT_JAMBA, BUILT_GRANITEHYBRID}};
  const uint32_t choice = next_u8(in);
  const built_choice chosen = {.vocabulary = (built_vocabulary)(choice % BUILT_VOCABULARIES),
                               .family = FAMILIES[choice >> 6][choice >> 4 & 1],
                               .type = TYPES[next_u8(in) % 8],
                               .layers = 1 + (choice >> 5 & 1),
                               .context = CONTEXT};
  static model_builder model;
  builder_init(&model, &chosen);
  const uint32_t changes = next_u8(in) % (CHANGES_MAX + 1);
  for (uint32_t i = 0; i < changes && model.value_count != 0; i++) change_model(&model, in);
  memory_file file = builder_write(&model);
  damage_file(&file, in);
  builder_free(&model);
  return file;
}

// ---- a host that keeps pages, as a list of records ----

static struct kept_record {
  uint32_t id;  // 0: free
  memory_file file;
} kept[KEPT_MAX];

static struct kept_record *find_kept(uint32_t id) {
  for (int i = 0; i < KEPT_MAX; i++) {
    if (kept[i].id == id) return &kept[i];
  }
  return NULL;
}

static bool keep_open(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  struct kept_record *record = find_kept(0);
  REQUIRE(find_kept(id) == NULL);
  if (record == NULL || size_bytes > 1 << 20) return false;
  record->id = id;
  return true;
}

static bool keep_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL && record->file.size_bytes == offset_bytes);
  return file_write(&record->file, bytes, size_bytes);
}

static bool keep_read(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  const struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL && offset_bytes + size_bytes <= record->file.size_bytes);
  memcpy(bytes, record->file.bytes + offset_bytes, size_bytes);
  return true;
}

static void keep_drop(void *context, uint32_t id) {
  (void)context;
  struct kept_record *record = find_kept(id);
  REQUIRE(record != NULL);
  file_free(&record->file);
  record->id = 0;
}

static const wick_swap_host KEEPER = {
    .open = keep_open, .write = keep_write, .read = keep_read, .drop = keep_drop};

// ---- the engine under test ----

typedef struct fuzz_run {
  wick_engine *engine, *draft;
  memory_file file;
  memory_file saved;
  size_t saved_read;
  bool is_failed;  // loading has failed
  uint32_t ids[REQUESTS_MAX], request_count;
  uint32_t dones[REQUESTS_MAX];
  uint32_t sessions[SESSIONS_MAX], session_count;
  uint64_t steps;
} fuzz_run;

static wick_engine *make_engine(input *in, bool is_draft) {
  wick_config config;
  wick_config_default(&config);
  const uint32_t flags = next_u8(in);
  config.memory_bytes_max = 64 << 20;
  config.threads = 1;
  config.k_type = (kernel_kv_type)(flags & 3);
  config.v_type = (kernel_kv_type)(flags >> 2 & 3);
  config.no_prefix_cache = (flags & 16) != 0;
  config.metrics = (flags & 32) != 0;
  if ((flags & 64) != 0 && !is_draft) config.swap = &KEEPER;
  if ((flags & 128) != 0) config.kv_tokens_max = CONTEXT + 16 * (next_u8(in) % 8);
  config.batch_tokens = next_u8(in) % 40;
  config.running_max = next_u8(in) % 8;
  const uint32_t failing = next_u8(in);
  const engine_hooks hooks = {.fail_at_call = failing >= 128 ? failing * 2 - 250 : 0};
  wick_engine *engine = NULL;
  wick_error error;
  const wick_status status = engine_create(&config, &hooks, &engine, &error);
  REQUIRE((status == WICK_OK) == (engine != NULL));
  return engine;
}

// Feeds up to `bytes` of what is asked for; true when there is more to ask.
static bool load_some(fuzz_run *run, wick_engine *engine, uint64_t bytes, size_t piece) {
  wick_error error;
  while (!run->is_failed && bytes != 0) {
    uint32_t index;
    uint64_t offset, length;
    wick_load_next_range(engine, &index, &offset, &length);
    if (length == 0) return false;
    wick_status status;
    if (index != 0 || offset >= run->file.size_bytes) {
      status = wick_load_end(engine, index, index == 0 ? run->file.size_bytes : 0, &error);
      run->is_failed = status != WICK_OK;
      if (status == WICK_OK) return false;
      break;
    }
    uint64_t take = run->file.size_bytes - offset;
    if (take > length) take = length;
    if (take > piece) take = piece;
    if (take > bytes) take = bytes;
    bytes -= take;
    status = wick_load_feed(engine, index, offset, run->file.bytes + offset, (size_t)take, &error);
    run->is_failed = status != WICK_OK;
  }
  return !run->is_failed;
}

static void take_events(fuzz_run *run) {
  size_t bytes;
  const uint8_t *at = wick_events_take(run->engine, &bytes);
  for (size_t used = 0; used < bytes;) {
    wick_event event;
    memcpy(&event, at + used, sizeof event);
    REQUIRE(event.size_bytes >= sizeof event && event.size_bytes <= bytes - used);
    REQUIRE(sizeof event + 8 * event.top_count + event.text_bytes <= event.size_bytes);
    for (uint32_t i = 0; i < run->request_count; i++) {
      if (run->ids[i] != event.request) continue;
      REQUIRE(run->dones[i] == 0);  // nothing comes behind the end
      run->dones[i] += event.kind == WICK_EVENT_DONE;
    }
    used += event.size_bytes;
  }
}

static wick_step_result step(fuzz_run *run) {
  REQUIRE(run->steps++ < STEPS_MAX);
  return wick_step(run->engine, 0);
}

// ---- calls ----

static const char *choose_text(input *in, char text[TEXT_MAX], size_t *size_bytes) {
  static const char *const TEXTS[] = {"the lo", "", "the the the the the", "<s>t</s><|im_start|> a",
                                      "\xc3\xa9\xff\xe2\x96\x81 aaaa\n\n"};
  const uint32_t choice = next_u8(in);
  if (choice < 5) {
    *size_bytes = strlen(TEXTS[choice]);
    return TEXTS[choice];
  }
  *size_bytes = choice < 128 ? choice % 24 : choice * 5 % TEXT_MAX;
  const char letter = (char)next_u8(in);
  for (size_t i = 0; i < *size_bytes; i++) {
    text[i] = choice < 64 ? (char)next_u8(in) : i % 17 == 16 ? ' ' : letter;
  }
  return text;
}

static void submit(fuzz_run *run, input *in) {
  static const char *const STOPS[] = {"e", "th", "\xef\xbf\xbd"};
  static const size_t STOP_BYTES[] = {1, 2, 3};
  char text[TEXT_MAX];
  wick_request request;
  wick_request_default(&request);
  const uint32_t how = next_u8(in), more = next_u8(in);
  request.text = choose_text(in, text, &request.text_bytes);
  request.max_tokens = 1 + more % 12;
  request.priority = (int32_t)(how % 5) - 2;
  request.completions = (how & 7) == 7 ? 1 + more % 5 : 0;
  request.sampling.logprobs = (how & 16) != 0 ? WICK_LOGPROBS_MAX : 0;
  request.sampling.temperature = (how & 32) != 0 ? 1.0f : 0.0f;
  request.sampling.top_k = (how & 64) != 0 ? 5 : 0;
  request.sampling.top_p = (how & 128) != 0 ? 0.5f : 1.0f;
  request.ignore_end = (more & 16) != 0;
  request.print_special = (more & 32) != 0;
  request.always_speculates = (more & 64) != 0;
  request.stops = STOPS;
  request.stop_bytes = STOP_BYTES;
  request.stop_count = (more & 128) != 0 ? 3 : 0;
  request.prefill_only = how == 3;
  if (run->session_count != 0 && (how & 8) != 0) {
    request.session = run->sessions[more % run->session_count];
    if (how == 15) {
      request.completions = 0;
      request.text_bytes = 0;
      request.prefill_only = true;
      request.drop_first = more % 7;
      request.drop_last = request.drop_first + more % 11;
    }
  }
  const uint32_t count = request.completions == 0 ? 1 : request.completions;
  if (run->request_count + count > REQUESTS_MAX) return;
  uint32_t id;
  wick_error error;
  if (wick_request_submit(run->engine, &request, &id, &error) != WICK_OK) return;
  for (uint32_t i = 0; i < count; i++) run->ids[run->request_count++] = id + i;
}

static void add_session(fuzz_run *run, wick_status status, uint32_t id) {
  if (status != WICK_OK || id == 0) return;
  REQUIRE(run->session_count < SESSIONS_MAX);
  run->sessions[run->session_count++] = id;
}

static bool write_saved(void *context, const void *bytes, size_t size_bytes) {
  return file_write(&((fuzz_run *)context)->saved, bytes, size_bytes);
}

static bool read_saved(void *context, void *bytes, size_t size_bytes) {
  fuzz_run *run = context;
  REQUIRE(size_bytes <= run->saved.size_bytes - run->saved_read);
  memcpy(bytes, run->saved.bytes + run->saved_read, size_bytes);
  run->saved_read += size_bytes;
  return true;
}

static void save_state(fuzz_run *run, uint32_t session) {
  const wick_state_sink sink = {run, write_saved};
  wick_error error;
  uint64_t size_bytes = 0;
  file_free(&run->saved);
  const wick_status told = wick_state_bytes(run->engine, session, &size_bytes, &error);
  const wick_status status = wick_state_save(run->engine, session, &sink, &error);
  if (status != WICK_OK) {
    file_free(&run->saved);
  } else {
    REQUIRE(told == WICK_OK && size_bytes == run->saved.size_bytes);
  }
}

static void load_state(fuzz_run *run, input *in) {
  const uint32_t damage = next_u8(in);
  if (damage != 0 && run->saved.size_bytes != 0) {
    run->saved.bytes[next_u16(in) % run->saved.size_bytes] ^= (uint8_t)damage;
  }
  if (run->session_count == SESSIONS_MAX) return;
  const wick_state_source source = {run, read_saved, run->saved.size_bytes};
  wick_state_loaded loaded = {0};
  wick_error error;
  run->saved_read = 0;
  const wick_status status = wick_state_load(run->engine, &source, &loaded, &error);
  add_session(run, status, loaded.session);
}

static void call_session(fuzz_run *run, input *in) {
  const uint32_t how = next_u8(in) % 6, a = next_u8(in), b = next_u8(in);
  uint32_t id = 0;
  wick_error error;
  if (how == 0 || run->session_count == 0) {
    if (run->session_count == SESSIONS_MAX) return;
    const wick_status status =
        wick_session_create_salted(run->engine, "tenant", a % 7, &id, &error);
    add_session(run, status, id);
    return;
  }
  const uint32_t chosen = a % run->session_count, session = run->sessions[chosen];
  if (how == 1 && run->session_count < SESSIONS_MAX) {
    const wick_status status = wick_session_fork(run->engine, session, &id, &error);
    add_session(run, status, id);
  }
  if (how == 2) wick_session_truncate(run->engine, session, b % 40, &error);
  if (how == 3) wick_session_drop(run->engine, session, b % 16, b / 8, &error);
  if (how == 4 && wick_session_close(run->engine, session, &error) == WICK_OK) {
    run->sessions[chosen] = run->sessions[--run->session_count];
  }
  if (how == 5) save_state(run, b % 2 == 0 ? session : 0);
}

// There and back; nothing comes out that is not in the vocabulary.
static void tokenize(fuzz_run *run, input *in) {
  char text[TEXT_MAX];
  size_t size_bytes, count = 0;
  const uint32_t flags = next_u8(in) % 4;
  const char *chosen = choose_text(in, text, &size_bytes);
  tokenizer *tokenizer = run->engine->tokenizer;
  if (tokenizer == NULL) return;
  int32_t ids[TEXT_MAX * 3 + 8];
  wick_error error;
  const wick_status status = tokenizer_encode(tokenizer, chosen, size_bytes, flags, ids,
                                              sizeof ids / sizeof *ids, &count, &error);
  if (status != WICK_OK) return;
  char *piece = malloc(tokenizer_piece_bytes_max(tokenizer) + 16);
  REQUIRE(piece != NULL);
  detokenizer state;
  detokenizer_init(&state, true, flags > 1);
  for (size_t i = 0; i < count; i++) {
    REQUIRE(ids[i] >= 0 && (uint32_t)ids[i] < tokenizer_vocab(tokenizer));
    detokenizer_feed(&state, tokenizer, ids[i], piece);
  }
  free(piece);
}

static void count_bytes(void *context, const char *bytes, size_t size_bytes) {
  *(size_t *)context += size_bytes + (size_bytes != 0 ? (uint8_t)bytes[size_bytes - 1] : 0);
}

static void look(fuzz_run *run) {
  size_t total = 0;
  wick_plan plan;
  wick_model_info info;
  wick_error error;
  wick_memory_plan(run->engine, &plan, &error);
  wick_model_get_info(run->engine, &info, &error);
  wick_info_json(run->engine, count_bytes, &total);
  if (engine_directory(run->engine) != NULL) wick_inspect_json(run->engine, count_bytes, &total);
  wick_pages_json(run->engine, true, count_bytes, &total);
  wick_stats_json(run->engine, count_bytes, &total);
  REQUIRE(total > 0);
}

static void call_engine(fuzz_run *run, input *in) {
  const uint32_t call = next_u8(in) % 16;
  if (call < 5) submit(run, in);
  if (call == 5 || call == 6) {
    for (uint32_t i = next_u8(in) % 40; i > 0; i--) step(run);
  }
  if (call == 7) take_events(run);
  if (call == 8) wick_request_cancel(run->engine, next_u8(in) % 24);
  if (call == 9) {
    const uint32_t id = next_u8(in) % 24;
    wick_request_pause(run->engine, id, next_u8(in) % 3 != 0);
  }
  if (call == 10 || call == 11) call_session(run, in);
  if (call == 12) load_state(run, in);
  if (call == 13) tokenize(run, in);
  if (call == 14) look(run);
  if (call == 15) load_some(run, run->engine, next_u16(in), 1 + next_u8(in));
}

// ---- the end ----

static void run_to_idle(fuzz_run *run) {
  for (;;) {
    const wick_step_result result = step(run);
    take_events(run);
    if (result == WICK_STEP_IDLE) break;
    REQUIRE(result != WICK_STEP_WAIT_BYTES || run->is_failed);
  }
  take_events(run);
}

static void end_requests(fuzz_run *run) {
  wick_error error;
  if (load_some(run, run->engine, UINT64_MAX, SIZE_MAX)) {
    run->is_failed = wick_load_end(run->engine, 0, run->file.size_bytes, &error) != WICK_OK;
  }
  for (uint32_t i = 0; i < run->request_count; i++) {
    wick_request_pause(run->engine, run->ids[i], false);
  }
  take_events(run);
  run_to_idle(run);
  for (uint32_t i = 0; i < run->request_count; i++) REQUIRE(run->dones[i] == 1);
  wick_stats stats;
  wick_stats_get(run->engine, &stats);
  REQUIRE(stats.running == 0 && stats.waiting == 0);
}

// Whatever was before: one more request is answered or refused.
static void ask_again(fuzz_run *run) {
  const int32_t first = 0;
  wick_request request;
  wick_request_default(&request);
  request.tokens = &first;
  request.token_count = 1;
  request.max_tokens = 2;
  uint32_t id = 0;
  wick_error error;
  const wick_status status = wick_request_submit(run->engine, &request, &id, &error);
  wick_load_state state;
  wick_load_get_state(run->engine, &state);
  if (status != WICK_OK) {
    REQUIRE(run->is_failed || status == WICK_E_NOMEM || run->engine->kv == NULL);
    return;
  }
  run->ids[0] = id;
  run->dones[0] = 0;
  run->request_count = 1;
  run->steps = 0;
  run_to_idle(run);
  REQUIRE(run->dones[0] == 1);
}

static void check_pages(const fuzz_run *run) {
  const kv_pool *pages = run->engine->kv;
  if (pages == NULL) return;
  wick_error error;
  REQUIRE(store_check(run->engine->store, &error) == WICK_OK);
  const kv_stats stats = kv_pool_stats(pages);
  REQUIRE(stats.active_sequences == 0 && stats.used_pages == stats.pages_held_prefix);
}

static void set_draft(fuzz_run *run, input *in) {
  run->draft = make_engine(in, true);
  if (run->draft == NULL) return;
  wick_error error;
  const bool is_failed = run->is_failed;
  load_some(run, run->draft, UINT64_MAX, SIZE_MAX);
  run->is_failed = is_failed;
  wick_engine_set_draft(run->engine, run->draft, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes > INPUT_MAX) return 0;
  input in = {data, size_bytes};
  static fuzz_run run;
  run = (fuzz_run){.file = make_file(&in)};
  run.engine = make_engine(&in, false);
  if (run.engine != NULL) {
    const uint32_t how = next_u8(&in);
    const uint64_t now = (how & 3) == 3 ? next_u32(&in) % (run.file.size_bytes + 1) : UINT64_MAX;
    load_some(&run, run.engine, now, (how & 4) != 0 ? 500 : SIZE_MAX);
    if ((how & 24) == 24) set_draft(&run, &in);
    for (uint32_t i = 0; i < CALLS_MAX && in.left != 0; i++) call_engine(&run, &in);
    end_requests(&run);
    ask_again(&run);
    wick_error error;
    for (uint32_t i = 0; i < run.session_count; i++) {
      wick_session_close(run.engine, run.sessions[i], &error);
    }
    check_pages(&run);
    wick_engine_destroy(run.engine);
    wick_engine_destroy(run.draft);
  }
  for (int i = 0; i < KEPT_MAX; i++) REQUIRE(kept[i].id == 0);
  file_free(&run.saved);
  file_free(&run.file);
  return 0;
}
