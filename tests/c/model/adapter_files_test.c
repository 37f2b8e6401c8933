// Adapter files: which are rejected and how, files loaded in pieces, truncated files, insufficient
// memory. After a failure the adapter is freed completely, and the engine continues to work.
#include "adapter_rig.h"
#include "shared_files.h"

static wick_engine *open_engine(const fixture_file *model) {
  wick_config config;
  wick_config_default(&config);
  return rig_engine(&config, model);
}

static void check_nothing_left(const wick_engine *engine, const wick_memory_state *before) {
  wick_memory_state after;
  wick_adapter_info info;
  wick_memory_get_state(engine, &after);
  CHECK_EQ_UINT(after.blocks_now, before->blocks_now);
  CHECK_EQ_UINT(after.bytes_now, before->bytes_now);
  CHECK(!wick_adapter_get(engine, 0, &info));
}

// ---- rejected files ----

static void check_refused(wick_engine *engine, const rig_adapter *rig, wick_status status,
                          const char *part) {
  fixture_file file = rig_write(rig);
  wick_memory_state before;
  wick_error error = {0};
  uint32_t id = 0;
  wick_memory_get_state(engine, &before);
  if (rig->is_cut) {  // the file has only the invalid directory
    CHECK_EQ_INT(wick_adapter_create(engine, &id, NULL), WICK_OK);
    CHECK_EQ_INT(wick_adapter_feed(engine, id, 0, file.bytes, file.size_bytes, &error), status);
  } else {
    CHECK_EQ_INT(wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &id, &error), status);
  }
  CHECK_EQ_INT(error.status, status);
  if (!CHECK(strstr(error.message, part) != NULL)) CHECK_EQ_STR(error.message, part);
  check_nothing_left(engine, &before);
  free(file.bytes);
}

TEST(invalid_keys_are_rejected) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_usual(1, GGML_TYPE_F32, 4);
  rig.type = NULL;
  check_refused(engine, &rig, WICK_E_FORMAT, "'general.type' is missing");
  rig.type = "model";
  check_refused(engine, &rig, WICK_E_FORMAT, "'general.type' is 'model'");
  rig.type = "adapter";
  rig.adapter_type = NULL;
  check_refused(engine, &rig, WICK_E_FORMAT, "'adapter.type' is missing");
  rig.adapter_type = "control_vector";
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'adapter.type' is 'control_vector'");
  rig.adapter_type = "lora";
  rig.architecture = "qwen2";
  check_refused(engine, &rig, WICK_E_MISMATCH, "'qwen2', expected 'llama'");
  rig.architecture = "llama";
  rig.has_invocation = true;
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "adapter.alora.invocation_tokens");
  rig.has_invocation = false;
  rig.alpha = f32_of_bits(0x7fc00000);
  check_refused(engine, &rig, WICK_E_FORMAT, "'adapter.lora.alpha' is not a finite number");
  rig.alpha = f32_of_bits(0xff800000);
  check_refused(engine, &rig, WICK_E_FORMAT, "'adapter.lora.alpha' is not a finite number");
  // a model is not an adapter
  uint32_t id;
  CHECK_EQ_INT(wick_adapter_load_bytes(engine, model.bytes, model.size_bytes, &id, NULL),
               WICK_E_FORMAT);
  wick_engine_destroy(engine);
  free(model.bytes);
}

static void check_one(wick_engine *engine, const char *name, uint64_t in, uint64_t out,
                      uint64_t rank, wick_status status, const char *part) {
  rig_adapter rig = rig_begin(1);
  rig.is_cut = true;
  rig_pair(&rig, name, GGML_TYPE_F32, in, out, rank);
  check_refused(engine, &rig, status, part);
}

TEST(tensors_that_do_not_match_the_model_are_rejected) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  check_one(engine, "blk.0.attn_q.weight", 32, 64, 4, WICK_E_SHAPE, "'blk.0.attn_q.weight.lora_a'");
  check_one(engine, "blk.0.attn_k.weight", 64, 64, 4, WICK_E_SHAPE, "64 x 32 (row length x rows)");
  check_one(engine, "blk.0.attn_q.weight", 64, 64, 5000, WICK_E_UNSUPPORTED, "rank 5000");
  check_one(engine, "blk.3.attn_q.weight", 64, 64, 4, WICK_E_MISMATCH, "'blk.3.attn_q.weight'");
  check_one(engine, "blk.0.attn_norm.weight", 64, 1, 4, WICK_E_UNSUPPORTED,
            "'blk.0.attn_norm.weight'");
  check_one(engine, "token_embd.weight", 64, FIXTURE_VOCAB, 4, WICK_E_UNSUPPORTED,
            "also the model's output");
  check_one(engine, "output.weight", 64, FIXTURE_VOCAB, 4, WICK_E_MISMATCH, "'output.weight'");
  rig_adapter rig = rig_begin(1);
  rig.is_cut = true;
  check_refused(engine, &rig, WICK_E_FORMAT, "no tensors");
  rig_put(&rig, "blk.0.attn_q.weight", ".lora_a", GGML_TYPE_F32, 64, 4);
  check_refused(engine, &rig, WICK_E_FORMAT, "no 'blk.0.attn_q.weight.lora_b'");
  rig_put(&rig, "blk.0.attn_q.weight", ".lora_b", GGML_TYPE_F32, 5, 64);
  check_refused(engine, &rig, WICK_E_SHAPE, "5 x 64");
  rig_find(&rig, "blk.0.attn_q.weight.lora_b")->dims[0] = 4;
  rig_find(&rig, "blk.0.attn_q.weight.lora_b")->dims[2] = 2;
  check_refused(engine, &rig, WICK_E_SHAPE, "'blk.0.attn_q.weight.lora_a'");
  rig_find(&rig, "blk.0.attn_q.weight.lora_b")->dims[2] = 1;
  rig_put(&rig, "blk.0.attn_q.weight", ".lora_b", GGML_TYPE_F32, 4, 64);
  check_refused(engine, &rig, WICK_E_FORMAT, "appears twice");
  rig.count = 2;
  rig_put(&rig, "blk.0.attn_norm.weight", "", GGML_TYPE_F32, 64, 1);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'blk.0.attn_norm.weight' is neither");
  rig.count = 0;
  rig_put(&rig, "", ".lora_a", GGML_TYPE_F32, 64, 1);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'.lora_a' is neither");
  rig.count = 0;
  rig.is_cut = true;
  rig_pair(&rig, "blk.0.attn_q.weight", GGML_TYPE_I8, 64, 64, 4);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "of type I8");
  wick_engine_destroy(engine);
  free(model.bytes);
}

// A name may contain any byte, so a zero byte does not end it.
TEST(names_with_zeros_are_not_shorter_names) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_begin(1);
  rig_put(&rig, "blk.0.attn_q.weight", ".lora_b", GGML_TYPE_F32, 4, 64);
  for (uint32_t i = 0; i < 40; i++) {
    char name[] = "blk.0.attn_q.weight@00";
    name[sizeof name - 3] = (char)('0' + i / 10);
    name[sizeof name - 2] = (char)('0' + i % 10);
    rig_put(&rig, name, ".lora_a", GGML_TYPE_F32, 64, 4);
  }
  rig_adapter pair = rig_begin(1);
  rig_pair(&pair, "blk.0.attn_q.weight", GGML_TYPE_F32, 64, 64, 4);
  rig_pair(&pair, "blk.0.attn_q.weight@", GGML_TYPE_F32, 64, 64, 4);
  const struct {
    const rig_adapter *rig;
    wick_status status;
    const char *part;
  } cases[] = {{&rig, WICK_E_FORMAT, "but no 'blk.0.attn_q.weight"},
               {&pair, WICK_E_MISMATCH, "which the model does not have"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    fixture_file file = rig_write(cases[c].rig);
    for (size_t i = 0; i + 7 < file.size_bytes; i++) {
      if (memcmp(file.bytes + i, "weight@", 7) == 0) file.bytes[i + 6] = 0;
    }
    wick_memory_state before;
    wick_error error = {0};
    uint32_t id = 0;
    wick_memory_get_state(engine, &before);
    CHECK_EQ_INT(wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &id, &error),
                 cases[c].status);
    if (!CHECK(strstr(error.message, cases[c].part) != NULL)) CHECK_EQ_STR(error.message, "");
    check_nothing_left(engine, &before);
    free(file.bytes);
  }
  wick_engine_destroy(engine);
  free(model.bytes);
}

TEST(experts_of_the_wrong_shape_are_rejected) {
  const fixture_experts experts = {
      .architecture = "qwen2moe", .count = 4, .used = 2, .shared_ffn = 32};
  const fixture_shape shape = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 256, true, 0};
  fixture_file model = fixture_make_experts(&shape, &experts);
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_begin(1);
  rig.architecture = "qwen2moe";
  rig_pair(&rig, "blk.0.ffn_up_exps.weight", GGML_TYPE_F32, 64, 32, 4);
  check_refused(engine, &rig, WICK_E_SHAPE, "64 x 4 x 1 and its lora_b is 4 x 32 x 1");
  rig.tensors[0].dims[2] = 4;
  check_refused(engine, &rig, WICK_E_SHAPE, "the model's tensor is 64 x 32 x 4");
  rig.tensors[1].dims[2] = 5;
  check_refused(engine, &rig, WICK_E_SHAPE, "lora_b is 4 x 32 x 5");
  // the router and the shared expert may be adapted
  rig.count = 0;
  rig_pair(&rig, "blk.0.ffn_gate_inp.weight", GGML_TYPE_F32, 64, 4, 4);
  rig_pair(&rig, "blk.1.ffn_down_shexp.weight", GGML_TYPE_F32, 32, 64, 4);
  const wick_adapter_use use = {rig_add(engine, &rig), 1};
  rig_talk talk = {.count = 0};
  rig_ask(engine, &talk, 5, &use, 1, true);
  rig_ask(engine, &talk, 5, NULL, 0, true);
  rig_run(engine, &talk);
  CHECK(rig_differs(&talk.asked[0], &talk.asked[1]));
  rig_free(&talk);
  wick_engine_destroy(engine);
  free(model.bytes);
}

TEST(stacked_tensors_that_are_not_experts_are_rejected_by_name) {
  fixture_file model = fixture_make_hybrid(&FIXTURE_ODD, &FIXTURE_GEMMA3N);
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_begin(1);
  rig.architecture = "gemma3n";
  rig_pairs(&rig, "altup_proj.weight", GGML_TYPE_F32, 36, 36, 4, 3);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'altup_proj.weight'");
  wick_engine_destroy(engine);
  free(model.bytes);
}

TEST(adapters_of_tables_are_rejected_by_name) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  memory_file file = shared_read("vectors/reference-more/models", "bert-cls.gguf");
  const fixture_file model = {.bytes = file.bytes, .size_bytes = file.size_bytes};
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_begin(1);
  rig.architecture = "bert";
  rig.is_cut = true;
  rig_pair(&rig, "position_embd.weight", GGML_TYPE_F32, 64, 160, 4);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'position_embd.weight'");
  rig.count = 0;
  rig_pair(&rig, "token_types.weight", GGML_TYPE_F32, 64, 2, 4);
  check_refused(engine, &rig, WICK_E_UNSUPPORTED, "'token_types.weight'");
  wick_engine_destroy(engine);
  file_free(&file);
}

// ---- pieces and truncation ----

static wick_status feed(wick_engine *engine, uint32_t id, const fixture_file *file,
                        size_t size_bytes, size_t piece_bytes, wick_error *error) {
  for (;;) {
    uint64_t offset, length;
    wick_adapter_next_range(engine, id, &offset, &length);
    if (length == 0) return WICK_OK;
    if (offset >= size_bytes) return wick_adapter_end(engine, id, size_bytes, error);
    if (length > size_bytes - offset) length = size_bytes - offset;
    if (length > piece_bytes) length = piece_bytes;
    const wick_status status =
        wick_adapter_feed(engine, id, offset, file->bytes + offset, (size_t)length, error);
    if (status != WICK_OK) return status;
  }
}

TEST(pieces_of_any_size_give_the_same_adapter) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  static const size_t PIECES[] = {1, 7, 33, 1000, SIZE_MAX};
  for (int q8 = 0; q8 < 2; q8++) {
    wick_engine *engine = open_engine(&model);
    const rig_adapter rig = rig_usual(4, q8 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16, 32);
    fixture_file file = rig_write(&rig);
    rig_talk talk = {.count = 0};
    wick_adapter_info first, info;
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
      wick_adapter_use use = {0, 1};
      CHECK_EQ_INT(wick_adapter_create(engine, &use.adapter, NULL), WICK_OK);
      CHECK_EQ_INT(feed(engine, use.adapter, &file, file.size_bytes, PIECES[i], NULL), WICK_OK);
      CHECK(wick_adapter_get(engine, (uint32_t)i, &info));
      CHECK(info.is_complete);
      if (i == 0) first = info;
      CHECK_EQ_UINT(info.fingerprint, first.fingerprint);
      // bytes after the end are ignored
      CHECK_EQ_INT(wick_adapter_feed(engine, use.adapter, 0, "x", 1, NULL), WICK_OK);
      CHECK_EQ_INT(wick_adapter_end(engine, use.adapter, 5, NULL), WICK_OK);
      rig_ask(engine, &talk, 5, &use, 1, true);
    }
    rig_run(engine, &talk);
    for (uint32_t i = 1; i < talk.count; i++) rig_check_same(&talk.asked[0], &talk.asked[i]);
    rig_free(&talk);
    free(file.bytes);
    wick_engine_destroy(engine);
  }
  free(model.bytes);
}

TEST(files_truncated_anywhere_are_rejected) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  const rig_adapter rig = rig_usual(4, GGML_TYPE_F16, 2);
  fixture_file file = rig_write(&rig);
  wick_memory_state before;
  wick_memory_get_state(engine, &before);
  size_t cuts = 0;
  // the padding of the last tensor may be missing
  for (size_t size = 0; size + 32 < file.size_bytes; size += size < 1500 ? 1 : 37, cuts++) {
    wick_error error = {0};
    uint32_t id = 0;
    CHECK_EQ_INT(wick_adapter_load_bytes(engine, file.bytes, size, &id, &error), WICK_E_TRUNCATED);
    check_nothing_left(engine, &before);
    CHECK_EQ_INT(wick_adapter_create(engine, &id, NULL), WICK_OK);
    CHECK_EQ_INT(feed(engine, id, &file, size, 400, &error), WICK_E_TRUNCATED);
    CHECK_EQ_INT(wick_adapter_feed(engine, id, 0, "x", 1, &error), WICK_E_ARG);
    uint64_t offset, length;
    wick_adapter_next_range(engine, id, &offset, &length);
    CHECK_EQ_UINT(length, 0);
    check_nothing_left(engine, &before);
  }
  CHECK(cuts > 1500);
  free(file.bytes);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// If any byte of the directory changes, the file is rejected or gives an adapter that can be used.
TEST(files_with_a_changed_byte_are_rejected_or_usable) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  rig_adapter rig = rig_begin(4);
  rig_pair(&rig, "blk.0.attn_q.weight", GGML_TYPE_F16, 64, 64, 3);
  rig_pair(&rig, "blk.2.ffn_down.weight", GGML_TYPE_Q8_0, 96, 64, 32);
  fixture_file file = rig_write(&rig);
  static const uint8_t CHANGES[] = {1, 0x40, 0xff};
  uint32_t refused = 0, taken = 0;
  for (size_t at = 0; at < 700; at++) {
    for (size_t c = 0; c < sizeof CHANGES; c++) {
      wick_adapter_use use = {0, 1};
      file.bytes[at] ^= CHANGES[c];
      const wick_status status =
          wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &use.adapter, NULL);
      file.bytes[at] ^= CHANGES[c];
      refused += status != WICK_OK;
      taken += status == WICK_OK;
      if (status != WICK_OK) continue;
      rig_talk talk = {.count = 0};
      if (taken % 64 == 1) {
        rig_ask(engine, &talk, 5, &use, 1, false);
        rig_run(engine, &talk);
        CHECK(talk.asked[0].finish != WICK_FINISH_NONE);
      }
      CHECK_EQ_INT(wick_adapter_remove(engine, use.adapter, NULL), WICK_OK);
    }
  }
  CHECK(refused > 500 && taken > 20);
  free(file.bytes);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// ---- loading through a reader ----

typedef struct reader_rig {
  const fixture_file *file;
  size_t fails_at, most;
} reader_rig;

static size_t read_file(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                        size_t size_bytes) {
  const reader_rig *rig = context;
  CHECK_EQ_UINT(file, 0);
  if (offset_bytes >= rig->fails_at) return SIZE_MAX;
  if (offset_bytes >= rig->file->size_bytes) return 0;
  size_t taken = rig->file->size_bytes - (size_t)offset_bytes;
  if (taken > size_bytes) taken = size_bytes;
  if (taken > rig->most) taken = rig->most;
  memcpy(bytes, rig->file->bytes + offset_bytes, taken);
  return taken;
}

TEST(readers) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  const rig_adapter rig = rig_usual(4, GGML_TYPE_F32, 4);
  fixture_file file = rig_write(&rig), cut = file;
  reader_rig from = {&file, SIZE_MAX, 77};
  uint8_t piece[256];
  wick_reader reader = {&from, read_file, piece, sizeof piece};
  wick_memory_state before;
  wick_error error = {0};
  wick_adapter_info info;
  uint32_t id;
  wick_memory_get_state(engine, &before);
  CHECK_EQ_INT(wick_adapter_load_from(engine, &reader, &id, &error), WICK_OK);
  CHECK(wick_adapter_get(engine, 0, &info));
  CHECK(info.is_complete && info.id == id);
  CHECK_EQ_INT(wick_adapter_remove(engine, id, NULL), WICK_OK);
  from.fails_at = 3000;
  CHECK_EQ_INT(wick_adapter_load_from(engine, &reader, &id, &error), WICK_E_IO);
  check_nothing_left(engine, &before);
  from.fails_at = SIZE_MAX;
  cut.size_bytes -= 100;
  from.file = &cut;
  CHECK_EQ_INT(wick_adapter_load_from(engine, &reader, &id, &error), WICK_E_TRUNCATED);
  check_nothing_left(engine, &before);
  reader.piece_bytes = 0;
  CHECK_EQ_INT(wick_adapter_load_from(engine, &reader, &id, &error), WICK_E_ARG);
  check_nothing_left(engine, &before);
  free(file.bytes);
  wick_engine_destroy(engine);
  free(model.bytes);
}

// ---- memory ----

TEST(adapters_count_towards_the_memory_budget) {
  fixture_file model = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&model);
  const rig_adapter rig = rig_usual(4, GGML_TYPE_F32, 64);
  wick_plan plan;
  rig_add(engine, &rig);
  wick_memory_plan(engine, &plan, NULL);
  wick_engine_destroy(engine);
  for (int is_short = 0; is_short < 2; is_short++) {
    wick_config config;
    wick_config_default(&config);
    config.memory_bytes_max = plan.total_bytes - (uint64_t)is_short;
    engine = rig_engine(&config, &model);
    fixture_file file = rig_write(&rig);
    wick_error error = {0};
    uint32_t id;
    const wick_status status =
        wick_adapter_load_bytes(engine, file.bytes, file.size_bytes, &id, &error);
    CHECK_EQ_INT(status, is_short ? WICK_E_NOMEM : WICK_OK);
    if (is_short) {
      CHECK(strstr(error.message, "with the adapter") != NULL);
      CHECK_EQ_UINT(error.numbers[0], plan.total_bytes);
      CHECK_EQ_UINT(error.numbers[1], plan.total_bytes - 1);
    }
    free(file.bytes);
    wick_engine_destroy(engine);
  }
  free(model.bytes);
}

TEST(adapters_are_rejected_before_a_model_is_loaded) {
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  uint32_t id;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK);
  CHECK_EQ_INT(wick_adapter_create(engine, &id, NULL), WICK_E_NODATA);
  wick_engine_destroy(engine);
}
