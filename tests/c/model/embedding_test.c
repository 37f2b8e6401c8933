// Embeddings through the engine: batch invariance, rejected inputs, failures, and embedding
// alongside requests. tests/engine/embed.test.mjs compares the values with references.
#include <math.h>
#include <stdio.h>

#include "consistency.h"
#include "fixture_model.h"
#include "model_builder.h"
#include "shared_files.h"

enum { TEXTS = 7, LONGEST = 100, CONTEXT = 128, HIDDEN = 32, HIDDEN_MAX = 64 };

static const uint32_t LENGTHS[TEXTS] = {5, 1, 64, 17, LONGEST, 33, 2};
static int32_t tokens[TEXTS][LONGEST];

static void make_texts(wick_embed_text texts[TEXTS]) {
  uint64_t random = 9;
  for (uint32_t i = 0; i < TEXTS; i++) {
    for (uint32_t t = 0; t < LENGTHS[i]; t++) {
      tokens[i][t] = 4 + (int32_t)random_below(&random, 200);
    }
    texts[i] = (wick_embed_text){.tokens = tokens[i], .token_count = LENGTHS[i]};
  }
}

// Writes a llama model, causal or with "attention.causal" false.
static fixture_file make_file(bool is_encoder, float poison) {
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, CONTEXT};
  const uint8_t no = 0;
  static model_builder model;
  builder_init(&model, &choice);
  model.poison = poison;
  if (is_encoder) {
    value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &no, 1);
  }
  const memory_file built = builder_write(&model);
  builder_free(&model);
  return (fixture_file){built.bytes, built.size_bytes, built.size_bytes};
}

typedef struct setup {
  uint32_t batch_tokens, threads;
  const char *kernels;
  uint64_t fail_at_call;
} setup;

static wick_engine *open_engine(const fixture_file *file, const setup *how, wick_status *status,
                                wick_error *error) {
  wick_config config;
  wick_config_default(&config);
  config.batch_tokens = how->batch_tokens;
  config.threads = check_threads(how->threads);
  // modules contain only one kernel table, native tests contain all of them
  const kernel_table *kernels =
      how->kernels == NULL ? kernels_bind() : kernels_by_name(how->kernels);
  const engine_hooks hooks = {.kernels = kernels, .fail_at_call = how->fail_at_call};
  wick_engine *engine = NULL;
  *status = engine_create(&config, &hooks, &engine, error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 0, error);
  return engine;
}

static wick_status embed(wick_engine *engine, const wick_embed_request *request,
                         wick_error *error) {
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_status status = wick_embed(engine, request, error);
  while (status == WICK_OK && result == WICK_STEP_PROGRESS) {
    status = wick_embed_step(engine, 0, &result, error);
  }
  return status;
}

// ---- invariants ----

static float whole[TEXTS][LONGEST * HIDDEN_MAX];

static void check_against_whole(const wick_engine *engine, uint32_t index, uint32_t text,
                                uint32_t hidden) {
  wick_vectors vectors = {0};
  REQUIRE(wick_embed_get(engine, index, &vectors));
  CHECK_EQ_UINT(vectors.tokens, LENGTHS[text]);
  CHECK_EQ_UINT(vectors.width, hidden);
  CHECK_EQ_MEM(vectors.values, whole[text], (size_t)vectors.rows * hidden * sizeof(float));
}

static void check_law(const fixture_file *file, wick_pooling pooling, uint32_t hidden) {
  static const setup SETUPS[] = {{128, 1, NULL, 0},
                                 {128, 3, NULL, 0},
                                 {16, 1, NULL, 0},
                                 {7, 2, NULL, 0},
                                 {128, 1, "scalar", 0}};
  wick_embed_text texts[TEXTS];
  make_texts(texts);
  for (size_t s = 0; s < sizeof SETUPS / sizeof *SETUPS; s++) {
    // relaxed kernels use fused multiply-add if the host does
    if (SETUPS[s].kernels != NULL && kernels_bind()->dots_are_right != NULL) continue;
    wick_error error = {0};
    wick_status status;
    wick_engine *engine = open_engine(file, &SETUPS[s], &status, &error);
    REQUIRE(status == WICK_OK);
    const wick_embed_request all = {.texts = texts, .text_count = TEXTS, .pooling = pooling};
    CHECK_EQ_INT(embed(engine, &all, &error), WICK_OK);
    for (uint32_t i = 0; i < TEXTS; i++) {
      wick_vectors vectors = {0};
      REQUIRE(wick_embed_get(engine, i, &vectors));
      CHECK_EQ_UINT(vectors.rows, pooling == WICK_POOLING_NONE ? LENGTHS[i] : 1);
      const size_t bytes = (size_t)vectors.rows * hidden * sizeof(float);
      if (s == 0) memcpy(whole[i], vectors.values, bytes);
      check_against_whole(engine, i, i, hidden);
    }
    wick_embed_end(engine);
    for (uint32_t i = 0; i < TEXTS; i++) {
      const wick_embed_request one = {.texts = &texts[i], .text_count = 1, .pooling = pooling};
      CHECK_EQ_INT(embed(engine, &one, &error), WICK_OK);
      check_against_whole(engine, 0, i, hidden);
      wick_embed_end(engine);
    }
    CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK);
    wick_engine_destroy(engine);
  }
}

TEST(a_vector_depends_only_on_its_own_text) {
  for (int is_encoder = 0; is_encoder < 2; is_encoder++) {
    fixture_file file = make_file(is_encoder != 0, 0);
    check_law(&file, WICK_POOLING_NONE, HIDDEN);
    check_law(&file, WICK_POOLING_MEAN, HIDDEN);
    free(file.bytes);
  }
}

TEST(a_t5_vector_depends_only_on_its_own_text) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  static const char *const NAMES[] = {"t5encoder.gguf", "t5encoder-relu.gguf"};
  for (int i = 0; i < 2; i++) {
    memory_file file = shared_read("vectors/reference-more/models", NAMES[i]);
    const fixture_file model = {.bytes = file.bytes, .size_bytes = file.size_bytes};
    check_law(&model, WICK_POOLING_NONE, HIDDEN_MAX);
    file_free(&file);
  }
}

TEST(each_pooling_combines_the_token_vectors_as_defined) {
  fixture_file file = make_file(true, 0);
  const setup how = {128, 1, NULL, 0};
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  wick_status status;
  make_texts(texts);
  check_law(&file, WICK_POOLING_NONE, HIDDEN);
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  REQUIRE(status == WICK_OK);
  wick_embed_request request = {.texts = texts, .text_count = TEXTS};
  for (int pooling = WICK_POOLING_MODEL; pooling < WICK_POOLING_RANK; pooling++) {
    if (pooling == WICK_POOLING_NONE) continue;
    request.pooling = (wick_pooling)pooling;
    CHECK_EQ_INT(embed(engine, &request, &error), WICK_OK);
    for (uint32_t i = 0; i < TEXTS; i++) {
      wick_vectors vectors = {0};
      REQUIRE(wick_embed_get(engine, i, &vectors));
      for (uint32_t d = 0; d < HIDDEN; d++) {
        double mean = 0;
        for (uint32_t t = 0; t < LENGTHS[i]; t++)
          mean += (double)whole[i][t * HIDDEN + d] / LENGTHS[i];
        if (pooling == WICK_POOLING_CLS) mean = (double)whole[i][d];
        if (pooling == WICK_POOLING_LAST) mean = (double)whole[i][(LENGTHS[i] - 1) * HIDDEN + d];
        CHECK_NEAR((double)vectors.values[d], mean, 1e-6);
      }
    }
    wick_embed_end(engine);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(vectors_are_truncated_before_they_are_normalized) {
  fixture_file file = make_file(true, 0);
  const setup how = {128, 1, NULL, 0};
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  wick_status status;
  make_texts(texts);
  check_law(&file, WICK_POOLING_MEAN, HIDDEN);
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  REQUIRE(status == WICK_OK);
  const wick_embed_request request = {
      .texts = texts, .text_count = TEXTS, .dimensions = 5, .normalizes = true};
  CHECK_EQ_INT(embed(engine, &request, &error), WICK_OK);
  for (uint32_t i = 0; i < TEXTS; i++) {
    wick_vectors vectors = {0};
    REQUIRE(wick_embed_get(engine, i, &vectors));
    CHECK_EQ_UINT(vectors.width, 5);
    double square = 0;
    for (uint32_t d = 0; d < 5; d++) square += (double)whole[i][d] * (double)whole[i][d];
    for (uint32_t d = 0; d < 5; d++) {
      CHECK_NEAR((double)vectors.values[d], (double)whole[i][d] / __builtin_sqrt(square), 1e-6);
    }
  }
  wick_engine_destroy(engine);  // also frees the running job
  free(file.bytes);
}

// ---- heads ----

enum { SCORES = 3, SCORE_STEP = 5 };

static void put_tensor(model_builder *model, const char *name, uint64_t cols, uint64_t rows) {
  REQUIRE(model->tensor_count < BUILT_TENSORS_MAX);
  built_tensor *tensor = &model->tensors[model->tensor_count++];
  *tensor = (built_tensor){.type = GGML_TYPE_F32, .dim_count = rows == 0 ? 1 : 2};
  snprintf(tensor->name, sizeof tensor->name, "%s", name);
  tensor->dims[0] = cols;
  tensor->dims[1] = rows == 0 ? 1 : rows;
  tensor->dims[2] = tensor->dims[3] = 1;
}

// The file has only one of the two dense layers after pooling.
TEST(each_of_two_dense_layers_needs_the_other) {
  static const char *const NAMES[] = {"dense_2.weight", "dense_3.weight"};
  for (int i = 0; i < 2; i++) {
    const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, CONTEXT};
    const setup how = {128, 1, NULL, 0};
    static model_builder model;
    wick_error error = {0};
    wick_status status;
    builder_init(&model, &choice);
    put_tensor(&model, NAMES[i], HIDDEN, HIDDEN);
    const memory_file built = builder_write(&model);
    builder_free(&model);
    const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
    wick_engine *engine = open_engine(&file, &how, &status, &error);
    CHECK_EQ_INT(status, WICK_E_FORMAT);
    if (!CHECK(strstr(error.message, NAMES[1 - i]) != NULL)) CHECK_EQ_STR(error.message, "");
    wick_engine_destroy(engine);
    free(file.bytes);
  }
}

// Opens an encoder whose score s is act(vector[d] + 1/4 - d/100) + 3 + s, where d is every fifth
// dimension.
static fixture_file make_scorer(const char *activation) {
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, CONTEXT};
  const uint8_t no = 0;
  static model_builder model;
  builder_init(&model, &choice);
  value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &no, 1);
  builder_put_u32(&model, "llama.classifier.pooling_type", WICK_POOLING_MEAN - WICK_POOLING_NONE);
  if (activation != NULL) builder_put_text(&model, "llama.classifier.activation", activation);
  put_tensor(&model, "cls.weight", HIDDEN, HIDDEN);
  put_tensor(&model, "cls.bias", HIDDEN, 0);
  put_tensor(&model, "cls.output.weight", HIDDEN, SCORES);
  put_tensor(&model, "cls.output.bias", SCORES, 0);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  float *dense = fixture_floats(&file, "cls.weight", NULL),
        *bias = fixture_floats(&file, "cls.bias", NULL);
  float *output = fixture_floats(&file, "cls.output.weight", NULL);
  float *output_bias = fixture_floats(&file, "cls.output.bias", NULL);
  memset(dense, 0, (size_t)HIDDEN * HIDDEN * sizeof *dense);
  memset(output, 0, (size_t)SCORES * HIDDEN * sizeof *output);
  for (int d = 0; d < HIDDEN; d++) {
    dense[d * HIDDEN + d] = 1;
    bias[d] = 0.25f - (float)d / 100;
  }
  for (int s = 0; s < SCORES; s++) {
    output[s * HIDDEN + s * SCORE_STEP] = 1;
    output_bias[s] = (float)(3 + s);
  }
  return file;
}

static double activated(const char *activation, double x) {
  if (activation == NULL || strcmp(activation, "tanh") == 0) return tanh(x);
  if (strcmp(activation, "silu") == 0) return x / (1 + exp(-x));
  if (strcmp(activation, "relu") == 0) return x > 0 ? x : 0;
  return x * 0.5 * (1 + erf(x / sqrt(2)));
}

TEST(scores_use_the_activation_of_the_file) {
  static const char *const ACTIVATIONS[] = {NULL, "tanh", "silu", "relu", "gelu"};
  for (size_t a = 0; a < sizeof ACTIVATIONS / sizeof *ACTIVATIONS; a++) {
    fixture_file file = make_scorer(ACTIVATIONS[a]);
    const setup how = {128, 1, NULL, 0};
    wick_embed_text texts[TEXTS];
    static float means[TEXTS][HIDDEN];
    wick_error error = {0};
    wick_status status;
    make_texts(texts);
    wick_engine *engine = open_engine(&file, &how, &status, &error);
    CHECK_EQ_STR(error.message, "");
    REQUIRE(status == WICK_OK);
    wick_embed_request request = {
        .texts = texts, .text_count = TEXTS, .pooling = WICK_POOLING_MEAN};
    uint32_t below = 0, above = 0;
    for (int round = 0; round < 2; round++) {
      CHECK_EQ_INT(embed(engine, &request, &error), WICK_OK);
      for (uint32_t i = 0; i < TEXTS; i++) {
        wick_vectors vectors = {0};
        REQUIRE(wick_embed_get(engine, i, &vectors));
        CHECK_EQ_UINT(vectors.width, round == 0 ? HIDDEN : SCORES);
        if (round == 0) memcpy(means[i], vectors.values, sizeof means[i]);
        for (uint32_t s = 0; s < SCORES && round == 1; s++) {
          const uint32_t d = s * SCORE_STEP;
          const double x = (double)means[i][d] + 0.25 - d / 100.0;
          CHECK_NEAR((double)vectors.values[s], activated(ACTIVATIONS[a], x) + 3 + s, 2e-6);
          below += x < -0.01;
          above += x > 0.01;
        }
      }
      wick_embed_end(engine);
      request.pooling = WICK_POOLING_RANK;
    }
    CHECK(below > 0 && above > 0);
    wick_engine_destroy(engine);
    free(file.bytes);
  }
}

TEST(an_unknown_activation_is_rejected) {
  fixture_file file = make_scorer("swish");
  const setup how = {128, 1, NULL, 0};
  wick_error error = {0};
  wick_status status;
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  CHECK_EQ_INT(status, WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message,
               "the activation 'swish' ('llama.classifier.activation') is not supported");
  CHECK(error.offset_bytes > 24 && error.offset_bytes < file.size_bytes);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- rejected requests ----

static void check_refused(wick_engine *engine, const wick_embed_request *request,
                          wick_status wanted, const char *message) {
  wick_error error = {0};
  CHECK_EQ_INT(wick_embed(engine, request, &error), wanted);
  CHECK_EQ_STR(error.message, message);
  wick_vectors vectors;
  CHECK(!wick_embed_get(engine, 0, &vectors));
}

TEST(invalid_embedding_requests_are_rejected_with_a_reason) {
  fixture_file file = make_file(true, 0);
  const setup how = {16, 1, NULL, 0};
  static int32_t many[CONTEXT + 1];
  wick_error error = {0};
  wick_status status;
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  REQUIRE(status == WICK_OK);
  const int32_t bad = 100000;
  const wick_embed_text good = {.text = "the lo", .text_bytes = 6};
  const wick_embed_text empty[] = {good, {.tokens = many, .token_count = 0}};
  const wick_embed_text wrong = {.tokens = &bad, .token_count = 1};
  const wick_embed_text long_one = {.tokens = many, .token_count = CONTEXT + 1};
  check_refused(engine, &(wick_embed_request){0}, WICK_E_ARG, "there are no texts");
  check_refused(engine, &(wick_embed_request){.texts = empty, .text_count = 2}, WICK_E_ARG,
                "text 1 has no tokens");
  wick_embed_request request = {.texts = &good, .text_count = 1, .pooling = (wick_pooling)6};
  check_refused(engine, &request, WICK_E_ARG, "unknown pooling");
  request.pooling = WICK_POOLING_RANK;
  check_refused(engine, &request, WICK_E_UNSUPPORTED,
                "the model has no head for scores ('cls.output.weight')");
  request = (wick_embed_request){.texts = &good, .text_count = 1, .dimensions = HIDDEN + 1};
  check_refused(engine, &request, WICK_E_ARG, "33 dimensions: vectors have 32");
  request = (wick_embed_request){.texts = &wrong, .text_count = 1};
  CHECK_EQ_INT(wick_embed(engine, &request, &error), WICK_E_ARG);
  request.texts = &long_one;
  check_refused(engine, &request, WICK_E_FULL,
                "text 0 is too long: it has 129 tokens, which exceeds the available context size "
                "of 128");
  wick_step_result result;
  CHECK_EQ_INT(wick_embed_step(engine, 0, &result, &error), WICK_E_NODATA);
  request.truncates = true;
  CHECK_EQ_INT(embed(engine, &request, &error), WICK_OK);
  wick_vectors vectors = {0};
  CHECK(wick_embed_get(engine, 0, &vectors));
  CHECK_EQ_UINT(vectors.tokens, CONTEXT);
  CHECK_EQ_INT(wick_embed(engine, &request, &error), WICK_E_BUSY);
  wick_embed_end(engine);
  wick_embed_end(engine);
  const wick_request asked = fixture_request(many, 3, 3);
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &asked, &id, &error), WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message, "the model is an encoder: it embeds texts and cannot continue them");
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- pairs ----

// Opens an encoder whose file has this template for query-document pairs; NULL: no template.
static wick_engine *open_reranker(const char *template_text) {
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, CONTEXT};
  const setup how = {16, 1, NULL, 0};
  const uint8_t no = 0;
  static model_builder model;
  wick_error error = {0};
  wick_status status;
  builder_init(&model, &choice);
  value_set_data(builder_put(&model, "llama.attention.causal", GGUF_BOOL), &no, 1);
  if (template_text != NULL) {
    builder_put_text(&model, "tokenizer.chat_template.rerank", template_text);
  }
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  free(file.bytes);
  return engine;
}

// Computes the mean vector [HIDDEN] of one text; returns the number of its tokens.
static uint32_t mean_of(wick_engine *engine, const wick_embed_text *text, float *mean) {
  const wick_embed_request request = {.texts = text, .text_count = 1, .pooling = WICK_POOLING_MEAN};
  wick_error error = {0};
  wick_vectors vectors = {0};
  CHECK_EQ_INT(embed(engine, &request, &error), WICK_OK);
  if (!CHECK(wick_embed_get(engine, 0, &vectors))) return 0;
  memcpy(mean, vectors.values, HIDDEN * sizeof *mean);
  wick_embed_end(engine);
  return vectors.tokens;
}

static wick_embed_text pair_of(const char *query, const char *document) {
  return (wick_embed_text){.text = query,
                           .text_bytes = strlen(query),
                           .document = document,
                           .document_bytes = strlen(document)};
}

TEST(a_pair_is_formatted_with_the_template_of_the_file) {
  static const struct {
    const char *template_text, *query, *document, *whole;
    uint32_t flags;  // tokenizer flags for which `whole` has the same tokens
  } CASES[] = {
      {"the {query} he {document} lo", "lo", "the he", "the lo he the he lo", 0},
      {"{query}{document}", "the ", "lo", "the lo", 0},
      {"{query} {document}{query}{document}", "he", "lo", "he lo{query}{document}", 0},
      {"{query} {document}", "{document}", "{query}", "{document} {query}", 0},
      {"{{query}{document}}", "", "he", "{he}", 0},
      // only the template may contain control tokens
      {"</s>{query}</s>{document}</s>", "the", "lo", "</s>the</s>lo</s>",
       WICK_TOKENIZE_PARSE_SPECIAL},
      {"he {query} lo {document}", "</s>", "<s>", "he </s> lo <s>", 0},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    wick_engine *engine = open_reranker(CASES[i].template_text);
    REQUIRE(engine != NULL);
    const char *text = CASES[i].whole;
    const uint32_t flags = WICK_TOKENIZE_ADD_SPECIAL | CASES[i].flags;
    int32_t ids[CONTEXT];
    size_t count = 0;
    wick_error error = {0};
    float pair[HIDDEN], whole_text[HIDDEN];
    CHECK_EQ_INT(wick_tokenize(engine, text, strlen(text), flags, ids, CONTEXT, &count, &error),
                 WICK_OK);
    const wick_embed_text both = pair_of(CASES[i].query, CASES[i].document);
    CHECK_EQ_UINT(mean_of(engine, &both, pair), count);
    mean_of(engine, &(wick_embed_text){.tokens = ids, .token_count = count}, whole_text);
    CHECK_EQ_MEM(pair, whole_text, sizeof pair);
    wick_engine_destroy(engine);
  }
}

TEST(a_template_without_both_placeholders_is_ignored) {
  static const char *const NONE[] = {"", "{query}", "{document}", "{document} {query}",
                                     "{query} {documen"};
  const wick_embed_text both = pair_of("the lo", "he");
  float plain[HIDDEN], found[HIDDEN];
  wick_engine *engine = open_reranker(NULL);
  REQUIRE(engine != NULL);
  const uint32_t count = mean_of(engine, &both, plain);
  wick_engine_destroy(engine);
  for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
    engine = open_reranker(NONE[i]);
    REQUIRE(engine != NULL);
    CHECK_EQ_UINT(mean_of(engine, &both, found), count);
    CHECK_EQ_MEM(found, plain, sizeof found);
    wick_engine_destroy(engine);
  }
}

TEST(a_pair_whose_size_overflows_is_rejected) {
  wick_engine *engine = open_reranker("{query} {document}");
  REQUIRE(engine != NULL);
  wick_embed_text both = pair_of("the", "lo");
  const wick_embed_request request = {.texts = &both, .text_count = 1};
  const size_t sizes[] = {UINT32_MAX, SIZE_MAX};
  for (size_t i = 0; i < 2; i++) {  // none of their bytes is read
    both.text_bytes = sizes[i];
    check_refused(engine, &request, WICK_E_OVERFLOW, "a pair of texts is too long");
  }
  wick_engine_destroy(engine);
}

TEST(nonfinite_weights_fail_with_a_typed_error) {
  for (int is_encoder = 0; is_encoder < 2; is_encoder++) {
    fixture_file file = make_file(is_encoder != 0, __builtin_nanf(""));
    const setup how = {16, 1, NULL, 0};
    wick_embed_text texts[TEXTS];
    wick_error error = {0};
    wick_status status;
    make_texts(texts);
    wick_engine *engine = open_engine(&file, &how, &status, &error);
    REQUIRE(status == WICK_OK);
    const wick_embed_request request = {.texts = texts, .text_count = TEXTS};
    CHECK_EQ_INT(embed(engine, &request, &error), WICK_E_NONFINITE);
    wick_step_result result;
    CHECK_EQ_INT(wick_embed_step(engine, 0, &result, &error), WICK_E_NONFINITE);
    CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK);
    wick_engine_destroy(engine);
    free(file.bytes);
  }
}

TEST(every_allocation_failure_is_reported_and_leaks_nothing) {
  for (int is_encoder = 0; is_encoder < 2; is_encoder++) {
    fixture_file file = make_file(is_encoder != 0, 0);
    wick_embed_text texts[TEXTS];
    uint32_t failures = 0;
    make_texts(texts);
    texts[1] = (wick_embed_text){.text = "the lo", .text_bytes = 6};
    for (uint64_t k = 1; k < 2000; k++) {
      const setup how = {32, 1, NULL, k};
      wick_error error = {0};
      wick_status status;
      wick_engine *engine = open_engine(&file, &how, &status, &error);
      const wick_embed_request request = {.texts = texts, .text_count = TEXTS};
      const bool is_open = status == WICK_OK;
      if (is_open) status = embed(engine, &request, &error);
      if (status != WICK_OK) {
        CHECK_EQ_INT(status, WICK_E_NOMEM);
        CHECK_EQ_INT(error.status, WICK_E_NOMEM);
        CHECK(strncmp(error.message, "out of memory: ", 15) == 0);
      }
      failures += is_open && status != WICK_OK;
      if (is_open) CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK);
      const bool is_after = status == WICK_OK && engine->memory.calls < k;
      wick_engine_destroy(engine);
      if (is_after) break;
    }
    CHECK(failures >= 6);
    free(file.bytes);
  }
}

// ---- time ----

static uint64_t now_us;

static uint64_t tick_10_us(void) {
  now_us += 10;
  return now_us - 10;
}

// Returns how many calls the texts take if each part of the work takes 10 us.
static uint32_t count_calls(wick_engine *engine, uint64_t budget_us) {
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  wick_step_result result = WICK_STEP_PROGRESS;
  uint32_t calls = 0;
  make_texts(texts);
  const wick_embed_request request = {.texts = texts, .text_count = TEXTS};
  CHECK_EQ_INT(wick_embed(engine, &request, &error), WICK_OK);
  for (; result == WICK_STEP_PROGRESS && calls < 1000; calls++) {
    CHECK_EQ_INT(wick_embed_step(engine, budget_us, &result, &error), WICK_OK);
  }
  CHECK_EQ_INT(result, WICK_STEP_IDLE);
  wick_embed_end(engine);
  return calls;
}

TEST(a_step_ends_when_its_budget_is_used_up) {
  for (int is_encoder = 0; is_encoder < 2; is_encoder++) {
    fixture_file file = make_file(is_encoder != 0, 0);
    const setup how = {16, 1, NULL, 0};
    wick_error error = {0};
    wick_status status;
    wick_engine *engine = open_engine(&file, &how, &status, &error);
    REQUIRE(status == WICK_OK);
    engine->now_us = tick_10_us;
    const uint32_t parts = count_calls(engine, 0);
    CHECK(parts > 5);
    // the clock is read at the start and after each part
    CHECK_EQ_UINT(count_calls(engine, 1), parts);
    CHECK_EQ_UINT(count_calls(engine, 10), parts);
    CHECK_EQ_UINT(count_calls(engine, 11), (parts + 1) / 2);
    CHECK_EQ_UINT(count_calls(engine, 20), (parts + 1) / 2);
    CHECK_EQ_UINT(count_calls(engine, 25), (parts + 2) / 3);
    CHECK_EQ_UINT(count_calls(engine, 1000000), 1);
    wick_engine_destroy(engine);
    free(file.bytes);
  }
}

// ---- alongside requests ----

static void take_tokens(void *context, const wick_event *event, const uint8_t *after) {
  int32_t **out = context;
  (void)after;
  if (event->kind == WICK_EVENT_TOKEN) *(*out)++ = event->token;
}

TEST(a_causal_model_embeds_alongside_its_requests) {
  enum { WANTED = 24 };
  fixture_file file = make_file(false, 0);
  const setup how = {16, 1, NULL, 0};
  const int32_t prompt[] = {1, 20, 30, 40};
  int32_t said[2][WANTED] = {{0}};
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  wick_status status;
  uint32_t id;
  make_texts(texts);
  check_law(&file, WICK_POOLING_LAST, HIDDEN);
  wick_engine *engine = open_engine(&file, &how, &status, &error);
  REQUIRE(status == WICK_OK);
  const wick_request request = fixture_request(prompt, 4, WANTED);
  const wick_embed_request embedded = {.texts = texts, .text_count = TEXTS};
  for (int round = 0; round < 2; round++) {
    int32_t *at = said[round];
    REQUIRE(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
    wick_step_result result = WICK_STEP_PROGRESS;
    if (round == 1) REQUIRE(wick_embed(engine, &embedded, &error) == WICK_OK);
    while (round == 1 && result == WICK_STEP_PROGRESS) {
      CHECK_EQ_INT(wick_embed_step(engine, 0, &result, &error), WICK_OK);
      wick_step(engine, 0);
      fixture_take_all(engine, take_tokens, &at);
    }
    fixture_run(engine, take_tokens, &at);
    CHECK_EQ_INT(at - said[round], WANTED);
  }
  CHECK_EQ_MEM(said[1], said[0], sizeof said[0]);
  for (uint32_t i = 0; i < TEXTS; i++) check_against_whole(engine, i, i, HIDDEN);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- too few pages for both texts and requests ----

enum { COMPANY = 4, COMPANY_OUT = 30, UNITS_MAX = 200000 };

typedef struct company {
  uint32_t ids[COMPANY], counts[COMPANY], ended;
  int32_t tokens[COMPANY][COMPANY_OUT];
} company;

static void take_company(void *context, const wick_event *event, const uint8_t *after) {
  company *of = context;
  (void)after;
  for (uint32_t i = 0; i < COMPANY; i++) {
    if (of->ids[i] != event->request) continue;
    if (event->kind == WICK_EVENT_TOKEN && CHECK(of->counts[i] < COMPANY_OUT)) {
      of->tokens[i][of->counts[i]++] = event->token;
    }
    if (event->kind != WICK_EVENT_DONE) continue;
    of->ended++;
    if (!CHECK_EQ_UINT(event->finish, WICK_FINISH_LENGTH)) printf("#   status %u\n", event->status);
  }
}

static wick_engine *open_narrow(const fixture_file *file, uint32_t pages) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.context_tokens = CONTEXT;
  config.kv_tokens_max = pages * KERNEL_PAGE_TOKENS;
  config.batch_tokens = 32;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, file, 0, NULL), WICK_OK);
  return engine;
}

static void submit_company(wick_engine *engine, company *of, uint32_t which) {
  int32_t prompt[60];
  uint64_t random = 50 + which;
  const uint32_t count = 20 + 12 * which;
  for (uint32_t t = 0; t < count; t++) prompt[t] = 4 + (int32_t)random_below(&random, 200);
  const wick_request wanted = fixture_request(prompt, count, COMPANY_OUT);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &of->ids[which], NULL), WICK_OK);
}

// One session is idle and holds pages, and one paused request holds its pages.
static uint32_t occupy(wick_engine *engine) {
  int32_t prompt[40];
  uint32_t session = 0, id, paused;
  for (int t = 0; t < 40; t++) prompt[t] = 4 + t;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  wick_request wanted = fixture_request(prompt, 40, 4);
  wanted.session = session;
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_OK);
  company nobody = {0};
  fixture_run(engine, take_company, &nobody);
  wanted = fixture_request(prompt + 1, 20, COMPANY_OUT);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &paused, NULL), WICK_OK);
  wick_step_units(engine, 8);
  CHECK_EQ_INT(wick_request_pause(engine, paused, true), WICK_OK);
  fixture_take_all(engine, take_company, &nobody);
  return paused;
}

// Embeddings and requests give the same results as alone, whichever gets more units.
static void check_company(const fixture_file *file, uint32_t pages, uint32_t units,
                          uint32_t embed_units, bool is_occupied, const company *alone,
                          uint32_t hidden) {
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  make_texts(texts);
  wick_engine *engine = open_narrow(file, pages);
  const uint32_t paused = is_occupied ? occupy(engine) : 0;
  const wick_embed_request all = {
      .texts = texts, .text_count = TEXTS, .pooling = WICK_POOLING_MEAN};
  company together = {0};
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_status status = wick_embed(engine, &all, &error);
  uint32_t unit = 0, submitted = 0;
  for (; unit < UNITS_MAX && (result != WICK_STEP_IDLE || together.ended < COMPANY); unit++) {
    if (submitted < COMPANY && unit % 40 == 5) submit_company(engine, &together, submitted++);
    wick_step_units(engine, units);
    fixture_take_all(engine, take_company, &together);
    for (uint32_t i = 0; i < embed_units && status == WICK_OK && result != WICK_STEP_IDLE; i++) {
      status = wick_embed_step(engine, 0, &result, &error);
    }
    if (!CHECK_EQ_INT(status, WICK_OK)) {
      printf("#   %u pages, units %u to %u, occupied %d: %s\n", pages, units, embed_units,
             is_occupied, error.message);
      break;
    }
  }
  CHECK(unit < UNITS_MAX);
  for (uint32_t i = 0; i < TEXTS; i++) check_against_whole(engine, i, i, hidden);
  CHECK_EQ_MEM(together.tokens, alone->tokens, sizeof alone->tokens);
  wick_embed_end(engine);
  if (paused != 0) CHECK_EQ_INT(wick_request_pause(engine, paused, false), WICK_OK);
  fixture_run(engine, take_company, &together);
  CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK);
  wick_engine_destroy(engine);
}

static void check_pages(const fixture_file *file, uint32_t hidden) {
  static company alone;
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  make_texts(texts);
  memset(&alone, 0, sizeof alone);
  for (uint32_t i = 0; i < COMPANY; i++) {
    wick_engine *engine = open_narrow(file, 64);
    memset(alone.ids, 0, sizeof alone.ids);
    submit_company(engine, &alone, i);
    fixture_run(engine, take_company, &alone);
    wick_engine_destroy(engine);
  }
  wick_engine *engine = open_narrow(file, 64);
  const wick_embed_request all = {
      .texts = texts, .text_count = TEXTS, .pooling = WICK_POOLING_MEAN};
  CHECK_EQ_INT(embed(engine, &all, &error), WICK_OK);
  for (uint32_t i = 0; i < TEXTS; i++) {
    wick_vectors vectors = {0};
    REQUIRE(wick_embed_get(engine, i, &vectors));
    memcpy(whole[i], vectors.values, vectors.width * sizeof(float));
  }
  wick_embed_end(engine);
  wick_engine_destroy(engine);
  static const uint32_t PAGES[] = {8, 9, 11, 16, 24};
  for (size_t p = 0; p < sizeof PAGES / sizeof *PAGES; p++) {
    for (int is_occupied = 0; is_occupied < 2; is_occupied++) {
      check_company(file, PAGES[p], 1, 1, is_occupied != 0, &alone, hidden);
      check_company(file, PAGES[p], 7, 1, is_occupied != 0, &alone, hidden);
      check_company(file, PAGES[p], 1, 9, is_occupied != 0, &alone, hidden);
    }
  }
}

TEST(texts_and_requests_wait_for_each_others_pages) {
  static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_GEMMA3, &FIXTURE_LFM2, &FIXTURE_QWEN35};
  fixture_file file = make_file(false, 0);
  check_pages(&file, HIDDEN);
  free(file.bytes);
  for (size_t i = 0; i < sizeof HYBRIDS / sizeof *HYBRIDS; i++) {
    file = fixture_make_hybrid(&FIXTURE_ODD, HYBRIDS[i]);
    check_pages(&file, FIXTURE_ODD.hidden);
    free(file.bytes);
  }
}

// A text that does not fit even after all requests have ended is rejected with a message.
TEST(a_text_larger_than_the_pool_is_rejected) {
  fixture_file file = make_file(false, 0);
  wick_embed_text texts[TEXTS];
  wick_error error = {0};
  company nobody = {0};
  make_texts(texts);
  wick_engine *engine = open_narrow(&file, 4);
  const wick_embed_request one = {.texts = &texts[4], .text_count = 1};
  for (int round = 0; round < 2; round++) {
    CHECK_EQ_INT(embed(engine, &one, &error), WICK_E_PAGES);
    wick_embed_end(engine);
    const int32_t prompt[] = {7, 8, 9};
    const wick_request wanted = fixture_request(prompt, 3, 20);
    uint32_t id;
    CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_OK);
  }
  fixture_run(engine, take_company, &nobody);
  wick_engine_destroy(engine);
  free(file.bytes);
}
