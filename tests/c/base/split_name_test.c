// File names of a split model.
#include "base/split_name.h"

#include "check.h"

TEST(each_file_of_a_split_model_has_its_number) {
  char name[64];
  CHECK(split_name("a/m-00001-of-00003.gguf", 0, name, sizeof name));
  CHECK_EQ_STR(name, "a/m-00001-of-00003.gguf");
  CHECK(split_name("a/m-00001-of-00003.gguf", 2, name, sizeof name));
  CHECK_EQ_STR(name, "a/m-00003-of-00003.gguf");
  CHECK(split_name("-00001-of-99999.gguf", 99998, name, sizeof name));
  CHECK_EQ_STR(name, "-99999-of-99999.gguf");
}

TEST(other_names_have_a_single_file) {
  char name[64];
  CHECK(split_name("m.gguf", 0, name, sizeof name));
  CHECK_EQ_STR(name, "m.gguf");
  CHECK(!split_name("m.gguf", 1, name, sizeof name));
  CHECK(!split_name("m-00002-of-00003.gguf", 1, name, sizeof name));
  CHECK(!split_name("m-00001-of-0000x.gguf", 1, name, sizeof name));
  CHECK(!split_name("m-00001-of-00003.gguF", 1, name, sizeof name));
  CHECK(!split_name("m-00001-of-00003.gguf", 99999, name, sizeof name));
}

TEST(a_name_that_exceeds_the_buffer_is_rejected) {
  char name[7];
  CHECK(split_name("m.gguf", 0, name, sizeof name));
  CHECK(!split_name("mm.gguf", 0, name, sizeof name));
}
