// The outcome for the reference models if one of their keys or tensors is missing or changed: an
// error with its message and location, or a different plan. Each line of
// tests/c/model/model_keys.txt has a change, its outcome, and the models with that outcome (or
// their number if there are more than three). So that models share lines, layers are written
// "blk.N", shapes "A x B", and keys without their architecture. The test writes the new records to
// $WICK_TMP/model_keys.txt.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/insides.h"
#include "check.h"
#include "shared_files.h"

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference-more/models"};

typedef struct answer {
  char *text;
  uint32_t model;
} answer;

typedef struct answers {
  answer *items;  // for all models
  size_t count, room;
  uint32_t model, refused;
  char architecture[64], subject[256];  // the key or tensor that is changed
  wick_plan plan;                       // of the unchanged model
  uint64_t subject_offset;
} answers;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Copies a message without the parts that differ from model to model: "llama.", and the numbers in
// "blk.3" and "64 x 432".
static void generalize(const answers *to, const char *text, char *out, size_t room) {
  const size_t prefix = strlen(to->architecture);
  size_t used = 0;
  for (const char *at = text; *at != '\0' && used + 8 < room;) {
    const char *end = at;
    while (is_digit(*end)) end++;
    if (prefix > 0 && strncmp(at, to->architecture, prefix) == 0) {
      at += prefix;
    } else if (strncmp(at, "blk.", 4) == 0 && is_digit(at[4])) {
      used += (size_t)snprintf(out + used, room - used, "blk.N");
      for (at += 4; is_digit(*at);) at++;
    } else if (end != at && (strncmp(end, " x ", 3) == 0 ||
                             (used >= 3 && strncmp(out + used - 3, " x ", 3) == 0))) {
      out[used++] = strncmp(end, " x ", 3) == 0 ? 'A' : 'B';
      at = end;
    } else {
      do out[used++] = *at++;
      while (at < end && used + 1 < room);
    }
  }
  out[used] = '\0';
}

__attribute__((format(printf, 2, 3))) static void tell(answers *to, const char *format, ...) {
  char line[1024], plain[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (!CHECK(size >= 0 && (size_t)size < sizeof line)) return;
  generalize(to, line, plain, sizeof plain);
  if (to->count == to->room) {
    to->room = 2 * to->room + 1024;
    answer *items = realloc(to->items, to->room * sizeof *items);
    if (!CHECK(items != NULL)) abort();
    to->items = items;
  }
  char *text = malloc(strlen(plain) + 1);
  if (!CHECK(text != NULL)) abort();
  to->items[to->count++] = (answer){strcpy(text, plain), to->model};
}

static const char *place_of(const answers *to, uint64_t offset_bytes) {
  if (offset_bytes == WICK_NO_OFFSET) return "";
  return offset_bytes == to->subject_offset ? " (at its place)" : " (at another place)";
}

static wick_engine *open_directory(const memory_file *file, wick_status *status,
                                   wick_error *error) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.directory_only = true;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, error), WICK_OK);
  *status = wick_load_bytes(engine, file->bytes, file->size_bytes, error);
  return engine;
}

static void ask(const memory_file *file, const char *what, answers *to) {
  wick_error error = {0};
  wick_status status;
  wick_plan plan;
  wick_engine *engine = open_directory(file, &status, &error);
  if (status == WICK_OK) status = wick_memory_plan(engine, &plan, &error);
  to->refused += status != WICK_OK;
  if (status == WICK_OK) {
    tell(to, "%s %s: planned%s%s%s%s%s", to->subject, what,
         plan.weights_bytes == to->plan.weights_bytes ? "" : ", other weights",
         plan.scratch_bytes == to->plan.scratch_bytes ? "" : ", other scratch",
         plan.kv_bytes == to->plan.kv_bytes ? "" : ", other KV",
         plan.kv_page_bytes == to->plan.kv_page_bytes ? "" : ", other pages",
         plan.context_tokens == to->plan.context_tokens ? "" : ", other context");
  } else {
    tell(to, "%s %s: refused, %s: \"%s\"%s", to->subject, what, wick_status_name(status),
         error.message, place_of(to, error.offset_bytes));
  }
  wick_engine_destroy(engine);
}

// Plans the model with `size_bytes` bytes of the file replaced.
static void ask_with(const memory_file *file, uint8_t *at, const void *bytes, size_t size_bytes,
                     const char *what, answers *to) {
  uint8_t before[8];
  memcpy(before, at, size_bytes);
  if (memcmp(before, bytes, size_bytes) == 0) return;
  memcpy(at, bytes, size_bytes);
  ask(file, what, to);
  memcpy(at, before, size_bytes);
}

static void ask_numbers(const memory_file *file, uint8_t *at, gguf_value_type type, answers *to) {
  static const float REALS[] = {0, -1, 0.5f, 1e30f, __builtin_nanf("")};
  char what[40];
  uint32_t before;
  memcpy(&before, at, sizeof before);
  const uint32_t numbers[] = {0, 1, before - 1, before + 1, 65536, UINT32_MAX};
  static const char *const NAMES[] = {"0", "1", "one less", "one more", "65536", "4294967295"};
  for (size_t i = 0; type == GGUF_F32 && i < sizeof REALS / sizeof *REALS; i++) {
    snprintf(what, sizeof what, "is %g", (double)REALS[i]);
    ask_with(file, at, &REALS[i], sizeof *REALS, what, to);
  }
  for (size_t i = 0; type != GGUF_F32 && i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(what, sizeof what, "is %s", NAMES[i]);
    ask_with(file, at, &numbers[i], sizeof *numbers, what, to);
  }
}

static bool is_number(gguf_value_type type) {
  return type == GGUF_U32 || type == GGUF_I32 || type == GGUF_F32;
}

static void ask_key(const memory_file *file, const gguf_value *value, answers *to) {
  const char *key = value->key.bytes;
  const size_t key_bytes = (size_t)value->key.size_bytes;
  if (key_bytes < 10 || memcmp(key, "general.", 8) == 0) return;
  if (memcmp(key, "tokenizer.", 10) == 0 || memcmp(key, "split.", 6) == 0) return;
  uint8_t *last = file->bytes + value->offset_bytes + 8 + key_bytes - 1, *data = last + 1 + 4;
  const uint8_t other = *last ^ 1;
  snprintf(to->subject, sizeof to->subject, "%.*s", (int)key_bytes, key);
  to->subject_offset = value->offset_bytes;
  ask_with(file, last, &other, 1, "absent", to);
  if (is_number(value->type)) ask_numbers(file, data, value->type, to);
  if (value->type == GGUF_BOOL || value->type == GGUF_STRING) {
    uint8_t *at = value->type == GGUF_BOOL ? data : data + 8;
    const uint8_t changed = *at ^ 1;
    ask_with(file, at, &changed, 1, "is another", to);
  }
  if (value->type == GGUF_ARRAY && value->count != 0 && is_number(value->item_type)) {
    ask_numbers(file, data + 12 + 4 * (value->count - 1), value->item_type, to);
  }
}

// Makes one of the changes, selected by its number.
static void ask_tensor(const memory_file *file, const gguf_tensor *tensor, size_t number,
                       answers *to) {
  const size_t name_bytes = (size_t)tensor->name.size_bytes;
  uint8_t *last = file->bytes + tensor->entry_offset_bytes + 8 + name_bytes - 1;
  uint8_t *dims = last + 1 + 4, *type = dims + 8 * (size_t)tensor->dim_count;
  const size_t which = number / 3 % tensor->dim_count;
  const uint32_t integers = GGML_TYPE_I32;
  const uint64_t fewer = tensor->dims[which] - 1;
  const uint8_t other = *last ^ 1;
  snprintf(to->subject, sizeof to->subject, "%.*s", (int)name_bytes, tensor->name.bytes);
  to->subject_offset = tensor->entry_offset_bytes;
  if (number % 3 == 0) ask_with(file, last, &other, 1, "absent", to);
  if (number % 3 == 1) ask_with(file, type, &integers, sizeof integers, "of integers", to);
  if (number % 3 == 2) ask_with(file, dims + 8 * which, &fewer, sizeof fewer, "smaller", to);
}

static void ask_model(const memory_file *file, answers *to) {
  wick_error error = {0};
  wick_status status;
  wick_engine *engine = open_directory(file, &status, &error);
  const gguf_directory *directory = engine_directory(engine);
  gguf_string name = {"", 0};
  if (directory != NULL) gguf_get_string(directory, "general.architecture", &name, &error);
  snprintf(to->architecture, sizeof to->architecture, "%.*s.", (int)name.size_bytes, name.bytes);
  to->plan = (wick_plan){0};
  if (status == WICK_OK) wick_memory_plan(engine, &to->plan, &error);
  const size_t count = directory == NULL ? 0 : gguf_value_count(directory);
  const size_t tensors = directory == NULL ? 0 : gguf_tensor_count(directory);
  for (size_t i = 0; i < count; i++) ask_key(file, gguf_value_at(directory, i), to);
  for (size_t i = 0; i < tensors; i++) ask_tensor(file, gguf_tensor_at(directory, i), i, to);
  wick_engine_destroy(engine);
}

static int compare_answers(const void *a, const void *b) {
  const answer *x = a, *y = b;
  const int texts = strcmp(x->text, y->text);
  return texts != 0 ? texts : (x->model > y->model) - (x->model < y->model);
}

// Writes one line for each outcome, with its models.
static void write_answers(answers *found, char (*models)[SHARED_NAME_BYTES_MAX], FILE *out) {
  enum { SHOWN_MAX = 3 };
  qsort(found->items, found->count, sizeof *found->items, compare_answers);
  for (size_t i = 0, end; i < found->count; i = end) {
    uint32_t count = 0;
    char names[SHOWN_MAX * (SHARED_NAME_BYTES_MAX + 1)] = "";
    for (end = i; end < found->count && strcmp(found->items[end].text, found->items[i].text) == 0;
         end++) {
      const uint32_t model = found->items[end].model;
      if (end > i && found->items[end - 1].model == model) continue;
      if (count++ >= SHOWN_MAX) continue;
      const size_t used = strlen(names);
      snprintf(names + used, sizeof names - used, " %.*s", (int)strcspn(models[model], "."),
               models[model]);
    }
    fprintf(out, "%s [", found->items[i].text);
    if (count > SHOWN_MAX) fprintf(out, "%u models]\n", count);
    if (count <= SHOWN_MAX) fprintf(out, "%s]\n", names + 1);
  }
}

static void ask_models(answers *found, char (*models)[SHARED_NAME_BYTES_MAX]) {
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], models + found->model);
    for (size_t j = 0; j < count; j++) {
      const memory_file file = shared_read(FOLDERS[i], models[found->model]);
      ask_model(&file, found);
      found->model++;
      free(file.bytes);
    }
  }
  CHECK(found->refused > 1000);
}

// Prints the lines of one text that the other does not contain.
static void print_lost(const char *from, const char *in, const char *sign) {
  while (*from != '\0') {
    const size_t bytes = strcspn(from, "\n") + 1;
    char line[2048];
    snprintf(line, sizeof line, "%.*s", (int)bytes, from);
    if (strstr(in, line) == NULL) printf("# %s %s", sign, line);
    from += bytes;
  }
}

static char *read_text(const char *path) {
  size_t size_bytes;
  uint8_t *bytes = check_read_file(path, &size_bytes);
  char *text = calloc(size_bytes + 1, 1);
  if (bytes != NULL && text != NULL) memcpy(text, bytes, size_bytes);
  free(bytes);
  return text;
}

TEST(models_with_a_changed_key_or_tensor_have_the_recorded_outcome) {
  static char models[2 * SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  answers found = {0};
  ask_models(&found, models);
  FILE *out = fopen(check_temporary("model_keys.txt"), "w");
  if (!CHECK(out != NULL)) return;
  write_answers(&found, models, out);
  fclose(out);
  for (size_t i = 0; i < found.count; i++) free(found.items[i].text);
  free(found.items);
  if (sizeof(size_t) < 8) return;  // 32-bit hosts reject different sizes
  char *kept = read_text(check_repository("tests/c/model/model_keys.txt"));
  char *now = read_text(check_temporary("model_keys.txt"));
  if (CHECK(kept != NULL && now != NULL) && !CHECK(strcmp(kept, now) == 0)) {
    print_lost(kept, now, "-");
    print_lost(now, kept, "+");
  }
  free(kept);
  free(now);
}
