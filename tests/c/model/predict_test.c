// A model's layer for multi-token prediction: what it computes, that its proposals never change the
// output, and how much memory it takes.
#include <math.h>
#include <stdio.h>

#include "consistency.h"
#include "fixture_model.h"
#include "schedule/scheduler_types.h"
#include "shared_files.h"

enum { HIDDEN = 36, FFN = 44, HEADS = 3, DIM = 12, TRUNK = 3, TEXT = 80 };

// Three layers, the second of them with attention, and a prediction layer.
static const fixture_shape SHAPE = {GGML_TYPE_F32, HIDDEN, FFN,   HEADS, 1,
                                    TRUNK + 1,     2048,   false, 0};

static fixture_hybrid hybrid_of(const char *left_out) {
  fixture_hybrid hybrid = FIXTURE_QWEN35;
  hybrid.predictors = 1;
  hybrid.left_out = left_out;
  return hybrid;
}

static fixture_file make_file(void) {
  const fixture_hybrid hybrid = hybrid_of(NULL);
  return fixture_make_hybrid(&SHAPE, &hybrid);
}

static wick_config config_of(bool no_predictor) {
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = 500;
  config.batch_tokens = 48;
  config.no_predictor = no_predictor;
  return config;
}

static wick_engine *open_with(const fixture_file *file, const wick_config *config) {
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_engine_create(config, &engine, &error), WICK_OK)) return NULL;
  CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  CHECK_EQ_STR(error.message, "");
  return engine;
}

static void fill_text(int32_t *tokens, uint32_t count, uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)random_below(&seed, 250);
}

// ---- the computation of the layer, repeated in double ----

// The sizes of a model's layers, and their maximum over all models.
typedef struct numbers {
  int hidden, ffn, heads, kv_heads, dim, turned, layer, vocab;
  double theta, epsilon;
  const char *output;
} numbers;

enum { HIDDEN_MAX = 64, FFN_MAX = 80, VOCAB_MAX = 400 };

static const numbers FIXTURE = {
    .hidden = HIDDEN,
    .ffn = FFN,
    .heads = HEADS,
    .kv_heads = 1,
    .dim = DIM,
    .turned = DIM,
    .layer = TRUNK,
    .vocab = FIXTURE_VOCAB,
    .theta = 10000,
    .epsilon = 1e-5,
    .output = "token_embd.weight",
};
// vectors/reference-more/models/qwen35-mtp.gguf
static const numbers REFERENCE = {
    .hidden = 64,
    .ffn = 80,
    .heads = 4,
    .kv_heads = 2,
    .dim = 16,
    .turned = 8,
    .layer = 4,
    .vocab = 336,
    .theta = 1e6,
    .epsilon = 1e-6,
    .output = "output.weight",
};

// The keys and values of each position evaluated so far.
typedef struct statement {
  const fixture_file *file;
  const numbers *of;
  double k[TEXT][HIDDEN_MAX], v[TEXT][HIDDEN_MAX];
  int count;
} statement;

static void norm(const statement *is, const double *x, const float *weight, int n, double *out) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  for (int i = 0; i < n; i++) out[i] = x[i] / sqrt(sum / n + is->of->epsilon) * weight[i];
}

static void multiply(const float *matrix, const double *x, int rows, int cols, double *y) {
  for (int r = 0; r < rows; r++) {
    y[r] = 0;
    for (int c = 0; c < cols; c++) y[r] += (double)matrix[r * cols + c] * x[c];
  }
}

static void turn(const statement *is, double *head) {
  const int half = is->of->turned / 2;
  for (int i = 0; i < half; i++) {
    const double angle = is->count * pow(is->of->theta, -2.0 * i / is->of->turned);
    const double a = head[i], b = head[i + half];
    head[i] = a * cos(angle) - b * sin(angle);
    head[i + half] = a * sin(angle) + b * cos(angle);
  }
}

static const float *layer_floats(const statement *is, const char *name) {
  char whole[64];
  text_format(whole, sizeof whole, "blk.%d.%s", is->of->layer, name);
  return fixture_floats(is->file, whole, NULL);
}

// Computes the output of one head over all positions so far, including this one.
static void attend_head(const statement *is, const double *q, const double *gate, int kv_head,
                        double *out) {
  const int dim = is->of->dim;
  double weights[TEXT], sum = 0;
  for (int p = 0; p <= is->count; p++) {
    double score = 0;
    for (int i = 0; i < dim; i++) score += q[i] * is->k[p][kv_head * dim + i] / sqrt(dim);
    sum += weights[p] = exp(score);
  }
  for (int i = 0; i < dim; i++) {
    double value = 0;
    for (int p = 0; p <= is->count; p++) value += weights[p] / sum * is->v[p][kv_head * dim + i];
    out[i] = value / (1 + exp(-gate[i]));
  }
}

static void attend(statement *is, const double *x, double *out) {
  const numbers *of = is->of;
  const int dim = of->dim, kv = of->kv_heads * dim;
  double projected[2 * HIDDEN_MAX];
  multiply(layer_floats(is, "attn_k.weight"), x, kv, of->hidden, is->k[is->count]);
  multiply(layer_floats(is, "attn_v.weight"), x, kv, of->hidden, is->v[is->count]);
  for (int h = 0; h < of->kv_heads; h++) {
    double *k = is->k[is->count] + h * dim;
    norm(is, k, layer_floats(is, "attn_k_norm.weight"), dim, k);
    turn(is, k);
  }
  multiply(layer_floats(is, "attn_q.weight"), x, 2 * of->heads * dim, of->hidden, projected);
  for (int h = 0; h < of->heads; h++) {
    double *q = projected + h * 2 * dim;
    norm(is, q, layer_floats(is, "attn_q_norm.weight"), dim, q);
    turn(is, q);
    attend_head(is, q, q + dim, h * of->kv_heads / of->heads, out + h * dim);
  }
  is->count++;
}

static void feed(const statement *is, double *x) {
  const int hidden = is->of->hidden, ffn = is->of->ffn;
  double normed[HIDDEN_MAX], gate[FFN_MAX], up[FFN_MAX];
  norm(is, x, layer_floats(is, "post_attention_norm.weight"), hidden, normed);
  multiply(layer_floats(is, "ffn_gate.weight"), normed, ffn, hidden, gate);
  multiply(layer_floats(is, "ffn_up.weight"), normed, ffn, hidden, up);
  for (int i = 0; i < ffn; i++) gate[i] *= up[i] / (1 + exp(-gate[i]));
  multiply(layer_floats(is, "ffn_down.weight"), gate, hidden, ffn, normed);
  for (int i = 0; i < hidden; i++) x[i] += normed[i];
}

// Evaluates a row of the trunk and the token after it; returns the logits and the resulting row.
static void say(statement *is, const double *trunk, int32_t token, double *row, double *logits) {
  const int hidden = is->of->hidden;
  double pair[2 * HIDDEN_MAX], x[HIDDEN_MAX], normed[HIDDEN_MAX], part[HIDDEN_MAX];
  const float *embedding = fixture_floats(is->file, "token_embd.weight", NULL) + token * hidden;
  for (int i = 0; i < hidden; i++) x[i] = embedding[i];
  norm(is, x, layer_floats(is, "nextn.enorm.weight"), hidden, pair);
  norm(is, trunk, layer_floats(is, "nextn.hnorm.weight"), hidden, pair + hidden);
  multiply(layer_floats(is, "nextn.eh_proj.weight"), pair, hidden, 2 * hidden, x);
  norm(is, x, layer_floats(is, "attn_norm.weight"), hidden, normed);
  attend(is, normed, part);
  multiply(layer_floats(is, "attn_output.weight"), part, hidden, is->of->heads * is->of->dim,
           normed);
  for (int i = 0; i < hidden; i++) x[i] += normed[i];
  feed(is, x);
  norm(is, x, layer_floats(is, "nextn.shared_head_norm.weight"), hidden, row);
  multiply(fixture_floats(is->file, is->of->output, NULL), row, is->of->vocab, hidden, logits);
}

// ---- the layer itself ----

static predictor *open_predictor(wick_engine *engine) {
  predictor *made = NULL;
  const predictor_parts parts = {.memory = &engine->memory,
                                 .model = engine->model,
                                 .threads = engine->threads,
                                 .now_us = engine->now_us,
                                 .threads_max = 1,
                                 .context_tokens = engine->context_tokens,
                                 .k_type = KERNEL_KV_F32,
                                 .v_type = KERNEL_KV_F32};
  CHECK_EQ_INT(predictor_create(&parts, &made, NULL), WICK_OK);
  return made;
}

// Evaluates tokens [first, end) with the model, and passes the resulting rows to the predictor.
static void read_trunk(wick_engine *engine, predictor *predictor, kv_seq_id seq,
                       const int32_t *tokens, uint32_t first, uint32_t end, double *rows) {
  const uint32_t count = end - first, hidden = engine->model->config.hidden;
  model_input inputs[TEXT];
  float row[HIDDEN_MAX];
  CHECK_EQ_INT(store_prepare(engine->store, seq, count, NULL), WICK_OK);
  CHECK_EQ_INT(store_begin_rows(engine->store, seq, count, count, NULL), WICK_OK);
  for (uint32_t i = 0; i < count; i++) {
    inputs[i] = (model_input){tokens[first + i], first + i, seq, i % 3 == 1, NULL, 0, 0, NULL};
  }
  forward_begin(engine->forward, inputs, count);
  forward_keep_rows(engine->forward);
  for (uint32_t i = 0; i < engine->model->config.layers; i++) {
    CHECK_EQ_INT(forward_layer(engine->forward, NULL), WICK_OK);
  }
  store_commit(engine->store, seq, count);
  predictor_read(predictor, 7, tokens, first, end, engine->forward, 0);
  for (uint32_t i = 0; i < count; i++) {
    forward_row(engine->forward, i, row);
    for (uint32_t c = 0; c < hidden; c++) rows[(first + i) * HIDDEN_MAX + c] = row[c];
  }
}

static void check_logits(const predictor *predictor, const numbers *of, const double *wanted) {
  const float *found = predictor_logits(predictor);
  double off = 0, most = 0;
  for (int i = 0; i < of->vocab; i++) {
    off = fmax(off, fabs(found[i] - wanted[i]));
    most = fmax(most, fabs(wanted[i]));
  }
  if (!CHECK(off < 1e-5 * most)) printf("#   off by %g of %g\n", off, most);
}

static int32_t likeliest(const numbers *of, const double *logits) {
  int32_t best = 0;
  for (int32_t i = 1; i < of->vocab; i++) best = logits[i] > logits[best] ? i : best;
  return best;
}

// Evaluates `count` tokens, `piece` at a time, and checks `most` proposals after them.
static void check_proposals(wick_engine *engine, const fixture_file *file, const numbers *of,
                            uint32_t count, uint32_t piece, uint32_t most) {
  static double rows[TEXT * HIDDEN_MAX];
  static statement is;
  int32_t tokens[TEXT], proposed[4];
  double row[HIDDEN_MAX], logits[VOCAB_MAX];
  kv_seq_id seq;
  predictor *predictor = open_predictor(engine);
  fill_text(tokens, TEXT, 3 + piece);
  CHECK_EQ_INT(store_new(engine->store, &seq, NULL), WICK_OK);
  for (uint32_t at = 0, end; at < count; at = end) {
    end = count - at < piece ? count : at + piece;
    read_trunk(engine, predictor, seq, tokens, at, end, rows);
  }
  is = (statement){.file = file, .of = of};
  for (uint32_t p = 0; p < count; p++) say(&is, rows + p * HIDDEN_MAX, tokens[p + 1], row, logits);
  CHECK_EQ_UINT(predictor_propose(predictor, 7, tokens, count + 1, most, proposed), most);
  for (uint32_t k = 0; k < most; k++) {
    CHECK_EQ_INT(proposed[k], likeliest(of, logits));
    if (k + 1 == most) check_logits(predictor, of, logits);
    say(&is, row, proposed[k], row, logits);
  }
  // the predictor has no row after the last one, and no row of a different request
  CHECK_EQ_UINT(predictor_propose(predictor, 7, tokens, count + 1, 1, proposed), 0);
  CHECK_EQ_UINT(predictor_propose(predictor, 8, tokens, count + 1, 1, proposed), 0);
  predictor_destroy(predictor);
  store_free(engine->store, seq);
}

// Tries inputs whose rows arrive in one or several pieces, some larger than a predictor pass.
static void check_layer(const fixture_file *file, const numbers *of) {
  const wick_config config = config_of(false);
  wick_engine *engine = open_with(file, &config);
  check_proposals(engine, file, of, 40, 48, 1);
  check_proposals(engine, file, of, 41, 17, 2);
  check_proposals(engine, file, of, 70, 1, 4);
  check_proposals(engine, file, of, 1, 1, 3);
  wick_engine_destroy(engine);
}

TEST(proposals_match_a_reference_in_double) {
  fixture_file file = make_file();
  check_layer(&file, &FIXTURE);
  free(file.bytes);
}

TEST(proposals_for_the_reference_model_match_a_reference_in_double) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  memory_file file = shared_read("vectors/reference-more/models", "qwen35-mtp.gguf");
  const fixture_file model = {.bytes = file.bytes, .size_bytes = file.size_bytes};
  check_layer(&model, &REFERENCE);
  file_free(&file);
}

// ---- requests ----

enum { SAID_MAX = 24, ASKED_MAX = 6 };

typedef struct outcome {
  uint32_t id, count, finish;
  int32_t tokens[SAID_MAX];
  float logprobs[SAID_MAX];
} outcome;

typedef struct talk {
  outcome asked[ASKED_MAX];
  uint32_t count;
} talk;

static void take_event(void *context, const wick_event *event, const uint8_t *payload) {
  talk *talk = context;
  (void)payload;
  for (uint32_t i = 0; i < talk->count; i++) {
    outcome *outcome = &talk->asked[i];
    if (outcome->id != event->request) continue;
    if (event->kind == WICK_EVENT_TOKEN && CHECK(outcome->count < SAID_MAX)) {
      outcome->logprobs[outcome->count] = event->logprob;
      outcome->tokens[outcome->count++] = event->token;
    }
    if (event->kind == WICK_EVENT_DONE) outcome->finish = event->finish;
  }
}

static void run(wick_engine *engine, talk *talk) {
  wick_error error = {0};
  fixture_run(engine, take_event, talk);
  fixture_take_all(engine, take_event, talk);
  if (!CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK)) printf("#   %s\n", error.message);
}

static void submit(wick_engine *engine, talk *talk, const wick_request *request) {
  uint32_t id = 0;
  CHECK_EQ_INT(wick_request_submit(engine, request, &id, NULL), WICK_OK);
  const uint32_t completions = request->completions == 0 ? 1 : request->completions;
  for (uint32_t i = 0; i < completions; i++) talk->asked[talk->count++].id = id + i;
}

static wick_stats stats_of(const wick_engine *engine) {
  wick_stats stats;
  wick_stats_get(engine, &stats);
  return stats;
}

// Submits random requests that depend only on the seed: with and without sessions, with several
// completions, with a grammar, with few pages, greedy and not.
static void ask_many(wick_engine *engine, uint64_t seed, talk *talks, uint32_t count) {
  static const wick_grammar GRAMMAR = {
      .kind = WICK_GRAMMAR_REGEX, .text = "[a-z ]{3,40}", .text_bytes = 12};
  uint32_t session = 0;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  for (uint32_t i = 0; i < count; i++) {
    talks[i] = (talk){.count = 0};
    for (uint32_t k = 0; k < 1 + i % 3; k++) {
      int32_t prompt[TEXT];
      const uint32_t length = 1 + (uint32_t)random_below(&seed, TEXT);
      fill_text(prompt, TEXT, 90 + random_below(&seed, 3));
      wick_request request =
          fixture_request(prompt, length, 1 + (uint32_t)random_below(&seed, SAID_MAX));
      request.sampling.logprob = true;
      request.sampling.seed = random_below(&seed, 100);
      if (random_below(&seed, 2) == 0) request.sampling.temperature = 0.7f;
      request.always_speculates = random_below(&seed, 4) != 0;
      if (random_below(&seed, 4) == 0) request.grammar = &GRAMMAR;
      if (k == 0 && i % 4 == 1) request.session = session;
      if (k == 0 && i % 4 == 2) request.completions = 3;
      if (request.session == session) request.token_count = 1 + length % 20;
      submit(engine, &talks[i], &request);
      for (uint32_t steps = (uint32_t)random_below(&seed, 9); steps > 0; steps--) {
        wick_step(engine, 0);
      }
    }
    run(engine, &talks[i]);
  }
}

static void check_same(const talk *found, const talk *wanted) {
  REQUIRE(CHECK_EQ_UINT(found->count, wanted->count));
  for (uint32_t i = 0; i < found->count; i++) {
    const outcome *a = &found->asked[i], *b = &wanted->asked[i];
    CHECK_EQ_UINT(a->finish, b->finish);
    REQUIRE(CHECK_EQ_UINT(a->count, b->count));
    CHECK_EQ_MEM(a->tokens, b->tokens, a->count * sizeof *a->tokens);
    CHECK_EQ_MEM(a->logprobs, b->logprobs, a->count * sizeof *a->logprobs);
  }
}

TEST(output_is_the_same_with_and_without_the_predictor) {
  enum { ROUNDS = 8 };
  static talk talks[2][ROUNDS];
  fixture_file file = make_file();
  const uint32_t runs = soak_count(40);
  for (uint32_t i = 0; i < runs; i++) {
    for (int is_off = 0; is_off < 2; is_off++) {
      wick_config config = config_of(is_off != 0);
      if (i % 2 == 1) config.kv_tokens_max = 208;  // requests preempt each other
      wick_engine *engine = open_with(&file, &config);
      ask_many(engine, soak_seed() + i, talks[is_off], ROUNDS);
      const wick_stats stats = stats_of(engine);
      CHECK(is_off != 0 || stats.tokens_proposed > 50);
      CHECK_EQ_UINT(stats.draft_failed, 0);
      wick_engine_destroy(engine);
    }
    for (uint32_t k = 0; k < ROUNDS; k++) check_same(&talks[0][k], &talks[1][k]);
  }
  free(file.bytes);
}

// Makes a model whose layers add nothing, so the next token depends only on the previous one. The
// predictor passes on the embedding of its input token, so it is always right.
static void make_right(const fixture_file *file) {
  static const char *const NOTHING[] = {"blk.0.ssm_out.weight",     "blk.0.ffn_down.weight",
                                        "blk.1.attn_output.weight", "blk.1.ffn_down.weight",
                                        "blk.2.ssm_out.weight",     "blk.2.ffn_down.weight",
                                        "blk.3.attn_output.weight", "blk.3.ffn_down.weight"};
  for (size_t i = 0; i < sizeof NOTHING / sizeof *NOTHING; i++) {
    const int cols = strstr(NOTHING[i], "ffn") != NULL ? FFN : HIDDEN;
    memset(fixture_floats(file, NOTHING[i], NULL), 0,
           (size_t)HIDDEN * (size_t)cols * sizeof(float));
  }
  float *last = fixture_floats(file, "output_norm.weight", NULL);
  float *own = fixture_floats(file, "blk.3.nextn.shared_head_norm.weight", NULL);
  float *enorm = fixture_floats(file, "blk.3.nextn.enorm.weight", NULL);
  float *project = fixture_floats(file, "blk.3.nextn.eh_proj.weight", NULL);
  uint64_t state = 8;
  memset(project, 0, 2 * HIDDEN * HIDDEN * sizeof *project);
  for (int i = 0; i < HIDDEN; i++) {
    last[i] = own[i] = fixture_normal(&state);
    enorm[i] = 1;
    project[i * 2 * HIDDEN + i] = 1;
  }
}

// The prompts have one token, and the answers are too short to repeat their own text.
TEST(correct_proposals_are_accepted) {
  fixture_file file = make_file();
  uint64_t passes[2], accepted[2];
  make_right(&file);
  for (int is_off = 0; is_off < 2; is_off++) {
    const wick_config config = config_of(is_off != 0);
    wick_engine *engine = open_with(&file, &config);
    for (int32_t token = 0; token < 20; token++) {
      talk talk = {.count = 0};
      wick_request request = fixture_request(&token, 1, 9);
      request.always_speculates = true;
      submit(engine, &talk, &request);
      run(engine, &talk);
      CHECK_EQ_UINT(talk.asked[0].count, 9);
    }
    passes[is_off] = stats_of(engine).passes;
    accepted[is_off] = stats_of(engine).tokens_accepted;
    wick_engine_destroy(engine);
  }
  CHECK(accepted[0] > accepted[1] + 80);
  CHECK(2 * passes[0] < passes[1]);
  free(file.bytes);
}

static void check_still_said(const fixture_file *file, const talk *wanted) {
  const wick_config config = config_of(false);
  wick_engine *engine = open_with(file, &config);
  talk talk = {.count = 0};
  int32_t prompt[TEXT];
  fill_text(prompt, TEXT, 4);
  wick_request request = fixture_request(prompt, 50, SAID_MAX);
  request.always_speculates = true;
  submit(engine, &talk, &request);
  run(engine, &talk);
  if (wanted != NULL) check_same(&talk, wanted);
  CHECK(stats_of(engine).draft_failed > 0);
  wick_engine_destroy(engine);
}

TEST(a_layer_that_returns_nan_proposes_nothing) {
  fixture_file file = make_file();
  const wick_config config = config_of(true);
  wick_engine *engine = open_with(&file, &config);
  talk wanted = {.count = 0};
  int32_t prompt[TEXT];
  fill_text(prompt, TEXT, 4);
  const wick_request request = fixture_request(prompt, 50, SAID_MAX);
  submit(engine, &wanted, &request);
  run(engine, &wanted);
  wick_engine_destroy(engine);
  fixture_floats(&file, "blk.3.nextn.hnorm.weight", NULL)[5] = NAN;
  check_still_said(&file, &wanted);
  free(file.bytes);
}

// ---- when proposals do not pay off ----

enum { DRAWN_TOKENS = 1500, REST_FIRST = 32, RESTS_MAX = 32, UNIT_US = 100, ROW_US = 10 };

// A clock that advances with each reading: by one unit of work, plus the time of each additional
// row in the current pass.
static const wick_engine *timed;
static uint64_t simulated_us;
static uint64_t read_simulated_us(void) {
  const uint32_t rows =
      timed == NULL || timed->scheduler == NULL ? 0 : timed->scheduler->batch_count;
  return simulated_us += UNIT_US + (rows > 1 ? (uint64_t)(rows - 1) * ROW_US : 0);
}

// Counts passes with proposals and the tokens generated between two attempts.
typedef struct tries {
  uint32_t tokens, passes_with, last, rests[RESTS_MAX], rest_count;
  uint64_t us;
} tries;

static void count_token(void *context, const wick_event *event, const uint8_t *payload) {
  (void)payload;
  ((tries *)context)->tokens += event->kind == WICK_EVENT_TOKEN;
}

static void note_proposals(tries *tries, uint64_t *proposed, const wick_engine *engine) {
  const uint64_t now = stats_of(engine).tokens_proposed;
  if (now == *proposed) return;
  const uint32_t rest = tries->tokens - tries->last;
  if (rest >= REST_FIRST && tries->passes_with != 0 && tries->rest_count < RESTS_MAX) {
    tries->rests[tries->rest_count++] = rest;
  }
  tries->passes_with++;
  tries->last = tries->tokens;
  *proposed = now;
}

static tries write_timed(const fixture_file *file, float temperature, bool no_predictor) {
  static const wick_host HOST = {.now_us = read_simulated_us};
  wick_config config = config_of(no_predictor);
  config.context_tokens = config.kv_tokens_max = 2048;
  config.host = &HOST;
  wick_engine *engine = open_with(file, &config);
  tries tries = {0};
  uint64_t proposed = 0;
  const int32_t prompt[2] = {5, 9};
  wick_request request = fixture_request(prompt, 2, DRAWN_TOKENS);
  request.sampling.temperature = temperature;
  timed = engine;
  simulated_us = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &(uint32_t){0}, NULL), WICK_OK);
  while (wick_step(engine, 0) != WICK_STEP_IDLE) {
    fixture_take_all(engine, count_token, &tries);
    note_proposals(&tries, &proposed, engine);
  }
  fixture_take_all(engine, count_token, &tries);
  tries.us = simulated_us;
  timed = NULL;
  CHECK_EQ_UINT(tries.tokens, DRAWN_TOKENS);
  wick_engine_destroy(engine);
  return tries;
}

// Tokens are sampled with about equal probability, so proposals are rejected. Each pause is about
// twice as long as the previous one, and all attempts together cost little.
TEST(few_proposals_are_made_if_all_are_rejected) {
  fixture_file file = make_file();
  const tries with = write_timed(&file, 100.0f, false), without = write_timed(&file, 100.0f, true);
  CHECK_EQ_UINT(without.passes_with, 0);
  CHECK(with.passes_with > 0 && with.passes_with < 10);
  CHECK_EQ_UINT(with.rest_count, 5);
  for (uint32_t i = 1; i < with.rest_count; i++) {
    CHECK(with.rests[i] > 19 * with.rests[i - 1] / 10);
  }
  CHECK((double)with.us < 1.005 * (double)without.us);
  free(file.bytes);
}

// The same rule does not pause a layer that is mostly right.
TEST(proposals_do_not_pause_if_most_are_accepted) {
  fixture_file file = make_file();
  make_right(&file);
  const tries with = write_timed(&file, 0.2f, false), without = write_timed(&file, 0.2f, true);
  CHECK_EQ_UINT(with.rest_count, 0);
  CHECK(with.passes_with > without.passes_with);  // includes proposals from the text
  CHECK((double)with.us < 0.98 * (double)without.us);
  free(file.bytes);
}

// ---- cost for other requests ----

// Returns how many passes of a request for `tokens` tokens keep the rows of the last layer.
static uint32_t passes_that_keep(wick_engine *engine, bool speculates, uint32_t tokens) {
  int32_t prompt[TEXT];
  talk talk = {.count = 0};
  uint32_t kept = 0;
  fill_text(prompt, TEXT, 5);
  wick_request request = fixture_request(prompt, TEXT, tokens);
  request.always_speculates = speculates;
  request.no_speculation = !speculates;
  submit(engine, &talk, &request);
  engine->scheduler->keeps_rows = false;
  while (wick_step(engine, 0) != WICK_STEP_IDLE) {
    fixture_take_all(engine, take_event, &talk);
    kept += engine->scheduler->keeps_rows;
    engine->scheduler->keeps_rows = false;
  }
  run(engine, &talk);
  CHECK_EQ_UINT(talk.asked[0].count, tokens);
  return kept;
}

TEST(rows_are_kept_only_for_requests_that_speculate) {
  fixture_file file = make_file();
  const wick_config config = config_of(false);
  wick_engine *engine = open_with(&file, &config);
  CHECK(passes_that_keep(engine, true, 8) > 2);
  CHECK_EQ_UINT(passes_that_keep(engine, false, 8), 0);
  CHECK_EQ_UINT(passes_that_keep(engine, true, 1), 0);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- memory ----

TEST(memory_is_allocated_only_if_the_layer_is_used) {
  fixture_file file = make_file();
  wick_plan plans[2];
  for (int is_off = 0; is_off < 2; is_off++) {
    const wick_config config = config_of(is_off != 0);
    wick_engine *engine = open_with(&file, &config);
    CHECK_EQ_INT(wick_memory_plan(engine, &plans[is_off], NULL), WICK_OK);
    CHECK((engine->predictor == NULL) == (is_off != 0));
    wick_engine_destroy(engine);
  }
  const uint64_t row = HIDDEN * sizeof(float);
  CHECK(plans[0].weights_bytes > plans[1].weights_bytes + 2 * HIDDEN * row);
  CHECK(plans[0].kv_bytes > plans[1].kv_bytes);
  CHECK(plans[0].scratch_bytes > plans[1].scratch_bytes);
  CHECK_EQ_UINT(plans[0].kv_page_bytes, plans[1].kv_page_bytes);
  free(file.bytes);
  // a file that lacks the layer's tensors runs without it
  const fixture_hybrid hybrid = hybrid_of("blk.3.nextn.eh_proj.weight");
  fixture_file less = fixture_make_hybrid(&SHAPE, &hybrid);
  const wick_config config = config_of(false);
  wick_engine *engine = open_with(&less, &config);
  wick_plan plan;
  CHECK_EQ_INT(wick_memory_plan(engine, &plan, NULL), WICK_OK);
  CHECK_EQ_UINT(plan.total_bytes - plan.directory_bytes,
                plans[1].total_bytes - plans[1].directory_bytes);
  wick_engine_destroy(engine);
  free(less.bytes);
}

// Wick does not use this family's layer, so its tensors take no memory, requested or not.
TEST(an_unsupported_prediction_layer_takes_no_memory) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  memory_file bytes = shared_read("vectors/reference-more/models", "glm4moe-mtp.gguf");
  const fixture_file file = {.bytes = bytes.bytes, .size_bytes = bytes.size_bytes};
  wick_plan plans[2];
  for (int is_off = 0; is_off < 2; is_off++) {
    const wick_config config = config_of(is_off != 0);
    wick_engine *engine = open_with(&file, &config);
    const gguf_directory *directory = engine_directory(engine);
    uint32_t own = 0;
    char last[16];
    text_format(last, sizeof last, "blk.%u.", engine->model->config.layers);
    for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
      const gguf_tensor *tensor = gguf_tensor_at(directory, i);
      const bool is_own = strncmp(tensor->name.bytes, last, strlen(last)) == 0;
      CHECK((engine->model->bindings[i].size_bytes == 0) == is_own);
      own += is_own;
    }
    CHECK(own > 20);
    CHECK(engine->predictor == NULL);
    CHECK_EQ_INT(wick_memory_plan(engine, &plans[is_off], NULL), WICK_OK);
    wick_engine_destroy(engine);
  }
  CHECK_EQ_UINT(plans[0].total_bytes, plans[1].total_bytes);
  file_free(&bytes);
}

TEST(proposing_allocates_nothing) {
  fixture_file file = make_file();
  const wick_config config = config_of(false);
  wick_engine *engine = open_with(&file, &config);
  int32_t prompt[TEXT];
  for (int i = 0; i < 3; i++) {
    talk talk = {.count = 0};
    fill_text(prompt, TEXT, 40 + (uint64_t)i);
    wick_request request = fixture_request(prompt, 60, SAID_MAX);
    request.always_speculates = true;
    submit(engine, &talk, &request);
    while (talk.asked[0].count == 0) {
      wick_step(engine, 0);
      fixture_take_all(engine, take_event, &talk);
    }
    wick_memory_state before, after;
    wick_memory_get_state(engine, &before);
    run(engine, &talk);
    wick_memory_get_state(engine, &after);
    CHECK_EQ_UINT(after.calls, before.calls);
    CHECK_EQ_UINT(talk.asked[0].count, SAID_MAX);
  }
  CHECK(stats_of(engine).tokens_proposed > 100);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Some failures have no effect, because memory that was only reserved early is allocated later.
TEST(failed_allocations_leak_nothing) {
  fixture_file file = make_file();
  uint32_t failed = 0, asked = 0;
  for (uint64_t call = 1; call < 140; call++) {
    const wick_config config = config_of(false);
    const engine_hooks hooks = {.fail_at_call = call};
    wick_engine *engine = NULL;
    wick_error error = {0};
    wick_status status = engine_create(&config, &hooks, &engine, &error);
    if (status == WICK_OK) status = fixture_load(engine, &file, 0, &error);
    if (status == WICK_OK) {
      talk talk = {.count = 0};
      const int32_t prompt[2] = {5, 9};
      wick_request request = fixture_request(prompt, 2, 4);
      request.always_speculates = true;
      if (wick_request_submit(engine, &request, &talk.asked[0].id, &error) == WICK_OK) {
        talk.count = 1;
        run(engine, &talk);
        asked += talk.asked[0].count == 4;
      }
    } else {
      CHECK_EQ_INT(status, WICK_E_NOMEM);
      failed++;
    }
    wick_engine_destroy(engine);
  }
  CHECK(failed > 20 && asked > 20);
  free(file.bytes);
}
