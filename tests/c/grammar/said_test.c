// Table-driven tests of the types that a schema declares directly.
#include "grammar/said.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "platform/platform.h"

enum { SCHEMA_BYTES_MAX = 4096 };

// Returns the types of the member "m" of a schema; "$defs" has the targets of its references.
static uint32_t types_in(const char *schema) {
  static const char DEFS[] =
      "\"$defs\":{\"s\":{\"type\":\"string\"},\"deep\":{\"in\":{\"type\":\"array\"}},"
      "\"loop\":{\"$ref\":\"#/$defs/loop\"},\"both\":{\"anyOf\":[{\"$ref\":\"#/$defs/s\"},"
      "{\"type\":\"null\"}]},\"\":{\"type\":\"number\"},\"de\":{\"type\":\"boolean\"}}";
  static char text[SCHEMA_BYTES_MAX + 512];
  memory_gate memory;
  grammar_work work;
  json_document document = {0};
  const int count = snprintf(text, sizeof text,
                             "{\"type\":\"object\",\"\":{\"type\":\"array\"},%s,\"properties\":{"
                             "\"other\":{\"type\":\"object\"},"
                             "\"m\":%s}}",
                             DEFS, schema);
  memory_init(&memory, 0, platform_alloc, platform_free);
  work_begin(&work, &memory);
  uint32_t types = UINT32_MAX;
  if (CHECK(document_read(&work, (const uint8_t *)text, (size_t)count, &document))) {
    types = said_types(&document, 1, (document_text){(const uint8_t *)"m", 1});
    CHECK_EQ_UINT(said_types(&document, 1, (document_text){(const uint8_t *)"n", 1}), 0);
    CHECK_EQ_UINT(said_types(&document, 1, (document_text){(const uint8_t *)"other", 5}),
                  SAID_OBJECT);
  }
  work_end(&work);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return types;
}

TEST(types_are_read_from_a_schema) {
  static const struct {
    const char *schema;
    uint32_t types;
  } CASES[] = {
      {"{\"type\":\"string\"}", SAID_STRING},
      {"{\"type\":\"integer\"}", SAID_NUMBER},
      {"{\"type\":\"number\"}", SAID_NUMBER},
      {"{\"type\":\"boolean\"}", SAID_BOOLEAN},
      {"{\"type\":\"null\"}", SAID_NULL},
      {"{\"type\":\"array\"}", SAID_ARRAY},
      {"{\"type\":\"object\"}", SAID_OBJECT},
      {"{\"type\":\"strin\"}", 0},
      {"{\"type\":\"strings\"}", 0},
      {"{\"type\":[\"string\",\"null\"]}", SAID_STRING | SAID_NULL},
      {"{\"type\":[\"array\",\"thing\",\"boolean\"]}", SAID_ARRAY | SAID_BOOLEAN},
      {"{\"type\":[\"string\"],\"const\":1}", SAID_STRING},
      {"{\"type\":\"string\",\"const\":1}", SAID_STRING},
      {"{\"type\":[],\"const\":1}", SAID_NUMBER},
      {"{\"const\":\"a\"}", SAID_STRING},
      {"{\"const\":-1.5}", SAID_NUMBER},
      {"{\"const\":true}", SAID_BOOLEAN},
      {"{\"const\":false}", SAID_BOOLEAN},
      {"{\"const\":null}", SAID_NULL},
      {"{\"const\":[1]}", SAID_ARRAY},
      {"{\"const\":{\"type\":\"string\"}}", SAID_OBJECT},
      {"{\"const\":1,\"enum\":[\"a\"]}", SAID_NUMBER},
      {"{\"enum\":[\"a\",1,null]}", SAID_STRING | SAID_NUMBER | SAID_NULL},
      {"{\"enum\":[]}", 0},
      {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}", SAID_STRING | SAID_OBJECT},
      {"{\"oneOf\":[{\"type\":\"array\"},{\"const\":1}]}", SAID_ARRAY | SAID_NUMBER},
      {"{\"allOf\":[{\"enum\":[true]}]}", SAID_BOOLEAN},
      {"{\"noneOf\":[{\"enum\":[true]}]}", 0},
      {"{\"enum\":[\"a\"],\"anyOf\":[{\"type\":\"null\"}],\"oneOf\":[{\"type\":\"array\"}],"
       "\"allOf\":[{\"type\":\"object\"}],\"$ref\":\"#/$defs/de\"}",
       SAID_STRING | SAID_NULL | SAID_ARRAY | SAID_OBJECT | SAID_BOOLEAN},
      {"{\"$ref\":\"#/$defs/s\"}", SAID_STRING},
      {"{\"$ref\":\"#/$defs/deep/in\"}", SAID_ARRAY},
      {"{\"$ref\":\"#/$defs/deep\"}", 0},
      {"{\"$ref\":\"#/$defs/\"}", SAID_NUMBER},
      {"{\"$ref\":\"#/$defs/both\"}", SAID_STRING | SAID_NULL},
      {"{\"$ref\":\"#/$defs/loop\"}", 0},
      {"{\"$ref\":\"#/$defs/none\"}", 0},
      {"{\"$ref\":\"#/$defs/s/type\"}", 0},
      {"{\"$ref\":\"#/properties/other\"}", SAID_OBJECT},
      {"{\"$ref\":\"s\"}", 0},
      {"{\"$ref\":\"#/\"}", SAID_ARRAY},
      {"{\"$ref\":\"#\"}", 0},
      {"{\"$ref\":\"\"}", 0},
      {"{\"$ref\":\"##$defs/s\"}", 0},
      {"{\"$ref\":\"x/$defs/s\"}", 0},
      {"{\"$ref\":7}", 0},
      {"{}", 0},
      {"true", 0},
      {"[{\"type\":\"string\"}]", 0},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    if (!CHECK_EQ_UINT(types_in(CASES[i].schema), CASES[i].types)) {
      printf("# %s\n", CASES[i].schema);
    }
  }
}

// Nested schemas are examined only up to a maximum depth and a maximum number of subschemas.
TEST(deep_and_wide_schemas_are_examined_only_in_part) {
  for (uint32_t depth = 0; depth < 20; depth++) {
    char text[SCHEMA_BYTES_MAX] = "";
    for (uint32_t i = 0; i < depth; i++) strcat(text, "{\"anyOf\":[");
    strcat(text, "{\"type\":\"null\"}");
    for (uint32_t i = 0; i < depth; i++) strcat(text, "]}");
    CHECK_EQ_UINT(types_in(text), depth < 12 ? SAID_NULL : 0);
  }
  for (uint32_t count = 195; count < 205; count++) {
    char text[SCHEMA_BYTES_MAX] = "{\"anyOf\":[";
    for (uint32_t i = 1; i < count; i++) strcat(text, "{},");
    strcat(text, "{\"type\":\"null\"}]}");
    CHECK_EQ_UINT(types_in(text), count < 200 ? SAID_NULL : 0);
  }
}

// A schema that refers to itself many times has more paths than can be followed.
TEST(schemas_with_many_references_are_examined_in_bounded_time) {
  char text[SCHEMA_BYTES_MAX] = "{\"anyOf\":[";
  for (uint32_t i = 0; i < 20; i++) strcat(text, "{\"$ref\":\"#/properties/m\"},");
  strcat(text, "{\"type\":\"null\"}]}");
  CHECK_EQ_UINT(types_in(text) & ~(uint32_t)SAID_NULL, 0);
}
