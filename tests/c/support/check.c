// The test harness of check.h, and main() of every unit test program.
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_SHOWN_MAX = 20, PATHS_MAX = 256, PATH_BYTES_MAX = 1024 };

static struct {
  check_test *first;
  check_test *last;
  unsigned failures;        // of the running test
  int has_checked;          // the running test
  const char *skip_reason;  // of the running test, or NULL
} state;

void check_register(check_test *test) {
  if (state.last == NULL) {
    state.first = test;
  } else {
    state.last->next = test;
  }
  state.last = test;
}

// Records that the test has made a check; checks may run on several threads.
static void check_happened(void) { __atomic_store_n(&state.has_checked, 1, __ATOMIC_RELAXED); }

// Counts a failure; returns false if too many have been shown already.
static bool check_count_failure(const char *file, int line) {
  state.failures++;
  if (state.failures == FAILURES_SHOWN_MAX + 1) {
    printf("#   ... and more\n");
  }
  if (state.failures > FAILURES_SHOWN_MAX) {
    return false;
  }
  printf("#   %s:%d: ", file, line);
  return true;
}

bool check_true(bool condition, const char *text, const char *file, int line) {
  check_happened();
  if (!condition && check_count_failure(file, line)) {
    printf("failed: %s\n", text);
  }
  return condition;
}

bool check_int(int64_t found, int64_t wanted, const char *text, const char *file, int line) {
  check_happened();
  if (found != wanted && check_count_failure(file, line)) {
    printf("%s is %" PRId64 ", not %" PRId64 "\n", text, found, wanted);
  }
  return found == wanted;
}

bool check_uint(uint64_t found, uint64_t wanted, const char *text, const char *file, int line) {
  check_happened();
  if (found != wanted && check_count_failure(file, line)) {
    printf("%s is %" PRIu64 ", not %" PRIu64 "\n", text, found, wanted);
  }
  return found == wanted;
}

bool check_str(const char *found, const char *wanted, const char *text, const char *file,
               int line) {
  check_happened();
  bool equal = found != NULL && wanted != NULL ? strcmp(found, wanted) == 0 : found == wanted;
  if (!equal && check_count_failure(file, line)) {
    printf("%s is \"%s\", not \"%s\"\n", text, found != NULL ? found : "(null)",
           wanted != NULL ? wanted : "(null)");
  }
  return equal;
}

bool check_mem(const void *found, const void *wanted, size_t size_bytes, const char *text,
               const char *file, int line) {
  check_happened();
  const uint8_t *a = found;
  const uint8_t *b = wanted;
  for (size_t i = 0; i < size_bytes; i++) {
    if (a[i] != b[i]) {
      if (check_count_failure(file, line)) {
        printf("%s differs at byte %zu of %zu: 0x%02x, not 0x%02x\n", text, i, size_bytes, a[i],
               b[i]);
      }
      return false;
    }
  }
  return true;
}

bool check_f32(float found, float wanted, const char *text, const char *file, int line) {
  check_happened();
  bool equal = memcmp(&found, &wanted, sizeof found) == 0;
  if (!equal && check_count_failure(file, line)) {
    printf("%s is %a (%.9g), not %a (%.9g)\n", text, (double)found, (double)found, (double)wanted,
           (double)wanted);
  }
  return equal;
}

bool check_near(double found, double wanted, double tolerance, const char *text, const char *file,
                int line) {
  check_happened();
  double distance = found > wanted ? found - wanted : wanted - found;
  bool near = distance <= tolerance;
  if (!near && check_count_failure(file, line)) {
    printf("%s is %.9g, not within %.3g of %.9g\n", text, found, tolerance, wanted);
  }
  return near;
}

void check_skip(const char *reason) { state.skip_reason = reason; }

static const char *check_join(const char *folder, const char *relative) {
  static char paths[PATHS_MAX][PATH_BYTES_MAX];
  static size_t paths_used;
  if (folder == NULL || folder[0] == '\0') {
    return NULL;
  }
  char *path = paths[paths_used++ % PATHS_MAX];
  int length = snprintf(path, PATH_BYTES_MAX, "%s/%s", folder, relative);
  return length > 0 && length < PATH_BYTES_MAX ? path : NULL;
}

const char *check_shared(const char *relative) {
  return check_join(getenv("WICK_SHARED"), relative);
}

const char *check_repository(const char *relative) {
  const char *root = getenv("WICK_ROOT");
  return check_join(root != NULL ? root : ".", relative);
}

const char *check_temporary(const char *relative) {
  const char *folder = getenv("WICK_TMP");
  return check_join(folder != NULL ? folder : "/tmp", relative);
}

uint8_t *check_read_file(const char *path, size_t *size_bytes) {
  *size_bytes = 0;
  FILE *file = path != NULL ? fopen(path, "rb") : NULL;
  if (file == NULL) {
    check_true(false, path != NULL ? path : "a path", __FILE__, __LINE__);
    return NULL;
  }
  long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  uint8_t *bytes = length >= 0 ? malloc((size_t)length + 1) : NULL;
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, (size_t)length, file) != (size_t)length) {
    check_true(false, path, __FILE__, __LINE__);
    free(bytes);
    bytes = NULL;
  } else {
    bytes[length] = 0;
    *size_bytes = (size_t)length;
  }
  fclose(file);
  return bytes;
}

bool check_write_file(const char *path, const void *bytes, size_t size_bytes) {
  FILE *file = path != NULL ? fopen(path, "wb") : NULL;
  if (file == NULL) {
    return false;
  }
  bool written = fwrite(bytes, 1, size_bytes, file) == size_bytes;
  return fclose(file) == 0 && written;
}

static bool check_is_wanted(const check_test *test, int argument_count, char **arguments) {
  const char *bench = getenv("WICK_BENCH");
  if (test->is_bench && (bench == NULL || strcmp(bench, "1") != 0)) return false;
  for (int i = 1; i < argument_count; i++) {
    if (strstr(test->name, arguments[i]) != NULL) {
      return true;
    }
  }
  return argument_count < 2;
}

static void check_run(const check_test *test) {
  __atomic_store_n(&state.has_checked, 0, __ATOMIC_RELAXED);
  test->run();
  if (test->is_bench || state.skip_reason != NULL) return;
  if (__atomic_load_n(&state.has_checked, __ATOMIC_RELAXED)) return;
  state.failures++;
  printf("#   %s: the test made no checks\n", test->name);
}

int main(int argument_count, char **arguments) {
  const char *ci = getenv("CI");
  bool may_skip = ci == NULL || strcmp(ci, "true") != 0;
  unsigned run = 0;
  unsigned failed = 0;
  unsigned skipped = 0;
  for (check_test *test = state.first; test != NULL; test = test->next) {
    if (!check_is_wanted(test, argument_count, arguments)) {
      continue;
    }
    state.failures = 0;
    state.skip_reason = NULL;
    check_run(test);
    run++;
    if (state.skip_reason != NULL) {
      skipped++;
      state.failures += may_skip ? 0 : 1;
    }
    failed += state.failures > 0 ? 1 : 0;
    printf("%s %u %s%s%s\n", state.failures > 0 ? "not ok" : "ok", run, test->name,
           state.skip_reason != NULL ? " # SKIP " : "",
           state.skip_reason != NULL ? state.skip_reason : "");
    fflush(stdout);
  }
  printf("1..%u\n# %u run, %u failed, %u skipped\n", run, run, failed, skipped);
  return run == 0 || failed > 0 ? 1 : 0;
}
