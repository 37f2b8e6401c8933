// Fuzzes the metadata of every architecture: changes some numbers, lengths, dims, types and names
// in a small model from the folders in WICK_REFERENCES (separated by ':'), then makes interface
// calls (engine_calls.h lists the assertions). Input: two bytes that choose the file, the number of
// changes, the changes, the calls. Without the variable nothing is tried, and
// tests/engine/fuzz.test.mjs reports that.
#include "engine_calls.h"
#include "references.h"

enum { INPUT_MAX = 512 };

static reference_list references;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  references_read(&references, "WICK_REFERENCES", "");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes > INPUT_MAX || references.count == 0) return 0;
  input in = {data, size_bytes};
  const reference *from = &references.files[next_u16(&in) % references.count];
  memory_file file = reference_change(from, &in);
  if (from->base == NULL) {
    engine_calls_run(&in, file, (memory_file){0});
  } else {
    engine_calls_run(&in, from->base->file, file);
  }
  file_free(&file);
  return 0;
}
