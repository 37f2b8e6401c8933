// The test harness itself, and what every host guarantees to the other tests.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(passing_checks_return_true) {
  const char text[] = {'w', 'i', 'c', 'k', '\0'};
  CHECK(CHECK_EQ_INT(-1, -1));
  CHECK(CHECK_EQ_UINT(UINT64_MAX, UINT64_MAX));
  CHECK(CHECK_EQ_STR(text, "wick"));
  CHECK(CHECK_EQ_MEM("wick", text, 5));
  CHECK(CHECK_EQ_F32(NAN, NAN));
  CHECK(CHECK_NEAR(1.0, 1.25, 0.25));
}

TEST(a_written_file_is_read_back) {
  const char *path = check_temporary("check_test.bin");
  const uint8_t bytes[3] = {0, 255, 10};
  REQUIRE(check_write_file(path, bytes, sizeof bytes));
  size_t size_bytes = 0;
  uint8_t *read = check_read_file(path, &size_bytes);
  CHECK_EQ_UINT(size_bytes, 3);
  CHECK(read != NULL && memcmp(read, bytes, sizeof bytes) == 0);
  free(read);
}

TEST(the_repository_can_be_read) {
  size_t size_bytes = 0;
  uint8_t *license = check_read_file(check_repository("LICENSE"), &size_bytes);
  CHECK(license != NULL && memcmp(license, "MIT License", 11) == 0);
  free(license);
}

TEST(the_shared_folder_can_be_read) {
  const char *path = check_shared("README.md");
  if (path == NULL) {
    SKIP("no shared folder");
  }
  size_t size_bytes = 0;
  uint8_t *readme = check_read_file(path, &size_bytes);
  CHECK(size_bytes > 0);
  free(readme);
}
