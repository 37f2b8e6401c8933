// quantize/quantize.h — rewrites a GGUF file with different tensor types, as a stream: the caller
// feeds the old file's bytes and receives the new file's bytes. Only both directories and a few
// rows are kept in memory.
//
//   quantizer_create(&memory, &settings, &quantizer, &error);
//   while (...) quantizer_feed(quantizer, bytes, size_bytes, &error);
//   quantizer_finish(quantizer, &error);
//   quantizer_destroy(quantizer);
#ifndef WICK_QUANTIZE_QUANTIZE_H
#define WICK_QUANTIZE_QUANTIZE_H

#include "format/gguf_writer.h"
#include "quantize/mix.h"

typedef struct quantizer quantizer;

// A report about a tensor that was written.
typedef struct quantize_report {
  gguf_string name;
  ggml_type from, to;
  uint64_t values, bytes_before, bytes_after;
  uint32_t index, count;  // over all tensors
} quantize_report;

typedef struct quantize_settings {
  const quantize_mix *mix;
  uint32_t threads;      // 1 to WICK_THREADS_MAX; the file is the same with any number
  bool takes_quantised;  // accepts quantised tensors, which lose precision twice; if false, they
                         // are rejected
  gguf_write write;
  void (*on_tensor)(void *context, const quantize_report *report);  // NULL: no reports
  void *context;                                                    // passed to both callbacks
} quantize_settings;

// Creates a quantizer. WICK_E_NOMEM; WICK_E_ARG if the number of threads is out of range.
wick_status quantizer_create(memory_gate *memory, const quantize_settings *settings,
                             quantizer **out, wick_error *error);
void quantizer_destroy(quantizer *quantizer);

// Feeds the next bytes of the old file, in order. A failure is permanent: WICK_E_FORMAT,
// WICK_E_UNSUPPORTED (a type that cannot be decoded, a tensor that is already quantised, a split
// file), WICK_E_NONFINITE (a weight that is not finite or does not fit), WICK_E_NOMEM, WICK_E_IO.
wick_status quantizer_feed(quantizer *quantizer, const void *bytes, size_t size_bytes,
                           wick_error *error);
// Completes the new file. Called when the old file has ended. WICK_E_TRUNCATED if tensors are
// missing.
wick_status quantizer_finish(quantizer *quantizer, wick_error *error);

#endif
