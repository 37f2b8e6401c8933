// The table of rejected files, tests/engine/corrupt/expected.tsv, for the reader and the loader:
// for each corrupt or unusual file of the reference set, the stage that rejects it, the status, the
// key or tensor in the message, and the offset. Files that a later stage rejects (model, tokenizer,
// generation) must load. The results are written to refusals.tsv in the temporary folder, in the
// table's format.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "load_sink.h"
#include "platform/platform.h"

enum { FILES = 115, LINE_BYTES_MAX = 512 };

// Feeds a file as the loader requests, in pieces of at most `piece_bytes`. The other files of a
// split model are empty.
static wick_status load_file(loader *loader, const memory_file *file, uint64_t piece_bytes,
                             wick_error *error) {
  wick_status status = loader_end(loader, 0, file->size_bytes, error);
  while (status == WICK_OK) {
    uint32_t number;
    uint64_t offset, length;
    loader_next_range(loader, &number, &offset, &length);
    if (length == 0) break;
    if (number > 0) {
      status = loader_end(loader, number, 0, error);
      continue;
    }
    if (length > piece_bytes) length = piece_bytes;
    status = loader_feed(loader, 0, offset, file->bytes + offset, (size_t)length, error);
  }
  return status;
}

// Loads the file with or without tensors and frees everything.
static wick_status try_file(const memory_file *file, bool directory_only, uint64_t piece_bytes,
                            wick_error *error) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  load_sink sink = {0};
  const loader_sink calls = sink_calls(&sink);
  loader *loader = NULL;
  wick_status status = loader_create(&memory, &calls, directory_only, &loader, error);
  sink.loader = loader;
  if (status == WICK_OK) status = load_file(loader, file, piece_bytes, error);
  if (status == WICK_OK && !directory_only) CHECK_EQ_STR(sink_check(&sink, file), NULL);
  CHECK_EQ_INT(loader_is_complete(loader), status == WICK_OK);
  loader_destroy(loader);
  sink_free(&sink);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return status;
}

// Copies the first name in single quotes, or "-".
static void find_name(const char *message, char out[GGUF_QUOTE_BYTES]) {
  const char *first = strchr(message, '\'');
  const char *last = first != NULL ? strchr(first + 1, '\'') : NULL;
  const int length = last != NULL ? (int)(last - first - 1) : 0;
  snprintf(out, GGUF_QUOTE_BYTES, "%.*s", last != NULL ? length : 1,
           last != NULL ? first + 1 : "-");
}

// Writes a file's line of the table, without the newline.
static void describe(const char *name, const memory_file *file, uint64_t piece_bytes,
                     char out[LINE_BYTES_MAX]) {
  wick_error error = {0};
  const char *stage = "directory";
  wick_status status = try_file(file, true, piece_bytes, &error);
  if (status == WICK_OK) {
    stage = "data";
    status = try_file(file, false, piece_bytes, &error);
  }
  if (status == WICK_OK) {
    snprintf(out, LINE_BYTES_MAX, "%s\taccepted\t-\t-\t-", name);
    return;
  }
  char named[GGUF_QUOTE_BYTES], offset[24] = "-";
  find_name(error.message, named);
  if (error.offset_bytes != WICK_NO_OFFSET) {
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)error.offset_bytes);
  }
  snprintf(out, LINE_BYTES_MAX, "%s\t%s\t%s\t%s\t%s", name, stage, wick_status_name(status), named,
           offset);
}

// Writes the loader's expected result for a line of the table: the loader accepts files of later
// stages.
static void wanted_of_loader(const char *line, const char *name, char out[LINE_BYTES_MAX]) {
  const char *stage = line + strlen(name);
  if (strncmp(stage, "\tdirectory\t", 11) == 0 || strncmp(stage, "\tdata\t", 6) == 0) {
    snprintf(out, LINE_BYTES_MAX, "%s", line);
  } else {
    snprintf(out, LINE_BYTES_MAX, "%s\taccepted\t-\t-\t-", name);
  }
}

static void check_line(const char *line, memory_file *report) {
  char name[LINE_BYTES_MAX], path[LINE_BYTES_MAX + 64], wanted[LINE_BYTES_MAX];
  char found[LINE_BYTES_MAX], in_pieces[LINE_BYTES_MAX];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "\t"), line);
  snprintf(path, sizeof path, "vectors/reference/corrupt/%s", name);
  memory_file file = {0};
  file.bytes = check_read_file(check_shared(path), &file.size_bytes);
  if (file.bytes == NULL) return;
  describe(name, &file, UINT64_MAX, found);
  describe(name, &file, 1, in_pieces);
  wanted_of_loader(line, name, wanted);
  CHECK_EQ_STR(found, wanted);
  CHECK_EQ_STR(in_pieces, found);
  file_write(report, found, strlen(found));
  file_write(report, "\n", 1);
  file_free(&file);
}

TEST(files_are_rejected_as_the_table_says) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  size_t size_bytes;
  char *table =
      (char *)check_read_file(check_repository("tests/engine/corrupt/expected.tsv"), &size_bytes);
  REQUIRE(table != NULL);
  memory_file report = {0};
  size_t files = 0;
  for (char *line = table; *line != '\0';) {
    char *end = line + strcspn(line, "\n");
    char *next = *end == '\0' ? end : end + 1;
    *end = '\0';
    if (line[0] != '#' && line[0] != '\0') {
      check_line(line, &report);
      files++;
    }
    line = next;
  }
  CHECK_EQ_UINT(files, FILES);
  CHECK(check_write_file(check_temporary("refusals.tsv"), report.bytes, report.size_bytes));
  file_free(&report);
  free(table);
}
