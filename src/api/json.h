// api/json.h — what an engine knows of its model, as JSON: for the command line, for the web's
// engine.info(), for a component. Written piece by piece into a sink; nothing is allocated.
#ifndef WICK_API_JSON_H
#define WICK_API_JSON_H

#include "base/json.h"
#include "wick.h"

// {architecture, name, shape: {layers, hidden, ...} | null, context_tokens, threads, kernels,
// k_type, v_type, tokenizer: {model, vocab, bos, eos, ...} | null, chat_template | null,
// types: {Q8_0: {tensors, bytes}, ...}, plan: {total_bytes, ...} | null, error: {status, message,
// offset_bytes} | null (why the model does not run), memory: {bytes_now, bytes_peak, ...},
// load: {files, bytes_wanted, ...}}. Before the directory is there: only what is known.
void wick_info_json(wick_engine *engine, json_sink sink, void *context);

// {gguf: {version, alignment, directory_bytes, data_offset}, metadata: [{key, type, value}]
// (arrays: {key, type: "array", item_type, count, first}), tensors: [{name, type, shape, file,
// offset_bytes, size_bytes}], info: as above}.
void wick_inspect_json(wick_engine *engine, json_sink sink, void *context);

// The KV pages, who has them, and what is running: {page_tokens, page_bytes, k_type, v_type, pages:
// {all, free, shared, cached, used_max, max}, bytes: {used, capacity}, sequences, sessions, forks,
// cow_copies, pages_moved, fragmentation: {...}, prefix: {...} | null, requests: {running, waiting}
// and, with `map`, map: [texts of a letter a page: '.' free, 'p' private, 's' shared, 'c' cached
// only]}.
// {} before there is a model.
void wick_kv_json(wick_engine *engine, bool map, json_sink sink, void *context);

// What ran, waits, came and went: {requests: {running, waiting, paused, ...}, tokens: {prompt,
// cached, recomputed, out, proposed, accepted}, pass_us: [of one request's 1, 2, ... 8 rows,
// lately; 0: not measured], passes, rows}. Counters since the engine began.
void wick_stats_json(wick_engine *engine, json_sink sink, void *context);

// How many items of a metadata array are shown.
enum { WICK_INSPECT_ITEMS = 8 };

// "f32", "f16", "q8", "q4".
const char *wick_kv_type_name(kernel_kv_type type);
// "u32", "string", ...
const char *wick_gguf_type_name(gguf_value_type type);
// Writes items [0, count) of a value as JSON values: of an array its items, else the value itself.
void wick_value_json(json_writer *json, const char *key, const gguf_value *value, uint64_t count);

#endif
