// The C unit test harness; check.c contains main().
//
//   #include "check.h"
//   TEST(adds_small_numbers) {
//     CHECK(1 + 1 == 2);
//     CHECK_EQ_INT(1 + 1, 2);
//   }
//
//   BENCH(of_additions) { printf("#   %.1f ns\n", nanoseconds()); }
//
// Tests register themselves; a test that makes no checks fails. A BENCH takes measurements and is
// not a test: it runs, and is counted, only with WICK_BENCH=1 in the environment, as bench_NAME. A
// failed CHECK is reported and the test continues; a failed REQUIRE returns from the test. CHECKs
// are expressions: `if (!CHECK(block != NULL)) return NULL;`. With arguments, a program runs only
// tests whose names contain one of the arguments.
#ifndef WICK_TESTS_CHECK_H
#define WICK_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST(name) CHECK_REGISTER(name, false)
#define BENCH(name) CHECK_REGISTER(bench_##name, true)
#define CHECK_REGISTER(name, is_bench)                                  \
  static void test_##name(void);                                        \
  __attribute__((constructor)) static void test_register_##name(void) { \
    static check_test test = {#name, test_##name, is_bench, NULL};      \
    check_register(&test);                                              \
  }                                                                     \
  static void test_##name(void)

#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define REQUIRE(condition)                                          \
  do {                                                              \
    if (!check_true((condition), #condition, __FILE__, __LINE__)) { \
      return;                                                       \
    }                                                               \
  } while (0)

#define CHECK_EQ_INT(found, wanted) check_int((found), (wanted), #found, __FILE__, __LINE__)
#define CHECK_EQ_UINT(found, wanted) check_uint((found), (wanted), #found, __FILE__, __LINE__)
#define CHECK_EQ_STR(found, wanted) check_str((found), (wanted), #found, __FILE__, __LINE__)
#define CHECK_EQ_MEM(found, wanted, size_bytes) \
  check_mem((found), (wanted), (size_bytes), #found, __FILE__, __LINE__)
// Compares bits: -0 differs from 0, and a NaN equals itself.
#define CHECK_EQ_F32(found, wanted) check_f32((found), (wanted), #found, __FILE__, __LINE__)
// Checks that |found - wanted| <= tolerance; fails for a NaN.
#define CHECK_NEAR(found, wanted, tolerance) \
  check_near((found), (wanted), (tolerance), #found, __FILE__, __LINE__)

// Returns the requested number of threads, or 1 in a build without threads.
static inline uint32_t check_threads(uint32_t wanted) { return WICK_THREADS ? wanted : 1; }

// Ends the test as skipped, with a reason. With CI=true a skipped test counts as failed.
#define SKIP(reason)      \
  do {                    \
    check_skip((reason)); \
    return;               \
  } while (0)

typedef struct check_test {
  const char *name;
  void (*run)(void);
  bool is_bench;
  struct check_test *next;
} check_test;

void check_register(check_test *test);
bool check_true(bool condition, const char *text, const char *file, int line);
bool check_int(int64_t found, int64_t wanted, const char *text, const char *file, int line);
bool check_uint(uint64_t found, uint64_t wanted, const char *text, const char *file, int line);
bool check_str(const char *found, const char *wanted, const char *text, const char *file, int line);
bool check_mem(const void *found, const void *wanted, size_t size_bytes, const char *text,
               const char *file, int line);
bool check_f32(float found, float wanted, const char *text, const char *file, int line);
bool check_near(double found, double wanted, double tolerance, const char *text, const char *file,
                int line);
void check_skip(const char *reason);

// Returns the path of a file in the shared folder (natively $WICK_SHARED, under WASI a preopened
// folder), or NULL if there is no shared folder. The string is valid until the program exits.
//
//   const char *path = check_shared("vectors/stories260K/model.gguf");
//   if (path == NULL) SKIP("no shared folder");
const char *check_shared(const char *relative);
// Returns the path of a file in this repository, relative to its root ($WICK_ROOT).
const char *check_repository(const char *relative);
// Returns the path of a file that the test may write ($WICK_TMP).
const char *check_temporary(const char *relative);

// Reads a whole file, which the caller frees. If that fails, returns NULL and fails a check.
uint8_t *check_read_file(const char *path, size_t *size_bytes);
bool check_write_file(const char *path, const void *bytes, size_t size_bytes);

#endif
