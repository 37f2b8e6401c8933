// src/base/options.h — options of a request as tables: X makes what is needed of a row.
// `make layout` makes it of include/options.mjs: changes go there.
// clang-format off
#ifndef WICK_BASE_OPTIONS_H
#define WICK_BASE_OPTIONS_H

#include <stddef.h>

#define FLOAT_MOST 3.4e+38f
#define FLOAT_LEAST 1.4e-45f

// a field of wick_sampling, its subject (none: all values are right), whether it is a float, least, most, default
#define SAMPLING_RANGES(X) \
  X(temperature, WICK_SUBJECT_TEMPERATURE, true, 0.0f, FLOAT_MOST, 0.0f) \
  X(top_k, WICK_SUBJECT_NONE, false, -1.0f, 4294967295.0f, 0.0f) \
  X(top_p, WICK_SUBJECT_TOP_P, true, 0.0f, 1.0f, 1.0f) \
  X(min_p, WICK_SUBJECT_MIN_P, true, 0.0f, 1.0f, 0.0f) \
  X(repeat_penalty, WICK_SUBJECT_REPEAT_PENALTY, true, FLOAT_LEAST, FLOAT_MOST, 1.0f) \
  X(frequency_penalty, WICK_SUBJECT_FREQUENCY_PENALTY, true, -100.0f, 100.0f, 0.0f) \
  X(presence_penalty, WICK_SUBJECT_PRESENCE_PENALTY, true, -100.0f, 100.0f, 0.0f) \
  X(penalty_last, WICK_SUBJECT_PENALTY_LAST, false, -1.0f, 1048576.0f, 64.0f) \
  X(typical_p, WICK_SUBJECT_TYPICAL_P, true, 0.0f, 1.0f, 1.0f) \
  X(top_n_sigma, WICK_SUBJECT_TOP_N_SIGMA, true, -1.0f, FLOAT_MOST, -1.0f) \
  X(xtc_probability, WICK_SUBJECT_XTC_PROBABILITY, true, 0.0f, 1.0f, 0.0f) \
  X(xtc_threshold, WICK_SUBJECT_XTC_THRESHOLD, true, 0.0f, 1.0f, 0.1f) \
  X(dynatemp_range, WICK_SUBJECT_DYNATEMP_RANGE, true, 0.0f, FLOAT_MOST, 0.0f) \
  X(dynatemp_exponent, WICK_SUBJECT_DYNATEMP_EXPONENT, true, 0.0f, FLOAT_MOST, 1.0f) \
  X(dry_multiplier, WICK_SUBJECT_DRY_MULTIPLIER, true, 0.0f, FLOAT_MOST, 0.0f) \
  X(dry_base, WICK_SUBJECT_DRY_BASE, true, 1.0f, FLOAT_MOST, 1.75f) \
  X(dry_allowed_length, WICK_SUBJECT_DRY_ALLOWED_LENGTH, false, 0.0f, 1048576.0f, 2.0f) \
  X(dry_penalty_last, WICK_SUBJECT_DRY_PENALTY_LAST, false, -1.0f, 1048576.0f, -1.0f) \
  X(mirostat, WICK_SUBJECT_MIROSTAT, false, 0.0f, 2.0f, 0.0f) \
  X(mirostat_tau, WICK_SUBJECT_MIROSTAT_TAU, true, 0.0f, FLOAT_MOST, 5.0f) \
  X(mirostat_eta, WICK_SUBJECT_MIROSTAT_ETA, true, 0.0f, FLOAT_MOST, 0.1f) \
  X(adaptive_target, WICK_SUBJECT_ADAPTIVE_TARGET, true, -1.0f, 1.0f, -1.0f) \
  X(adaptive_decay, WICK_SUBJECT_ADAPTIVE_DECAY, true, 0.0f, 0.99f, 0.9f)

// a field of wick_sampling, its name over HTTP, whether it is a float, least, most, default of a server
#define SAMPLING_FIELDS(X) \
  X(temperature, "temperature", true, 0, 3.4e+38, 0.8) \
  X(top_k, "top_k", false, -1, 4294967295, 40) \
  X(top_p, "top_p", true, 0, 1, 0.95) \
  X(min_p, "min_p", true, 0, 1, 0.05) \
  X(repeat_penalty, "repeat_penalty", true, 1.4e-45, 3.4e+38, 1) \
  X(frequency_penalty, "frequency_penalty", true, -100, 100, 0) \
  X(presence_penalty, "presence_penalty", true, -100, 100, 0) \
  X(penalty_last, "repeat_last_n", false, -1, 1048576, 64) \
  X(typical_p, "typical_p", true, 0, 1, 1) \
  X(top_n_sigma, "top_n_sigma", true, -1, 3.4e+38, -1) \
  X(xtc_probability, "xtc_probability", true, 0, 1, 0) \
  X(xtc_threshold, "xtc_threshold", true, 0, 1, 0.1) \
  X(dynatemp_range, "dynatemp_range", true, 0, 3.4e+38, 0) \
  X(dynatemp_exponent, "dynatemp_exponent", true, 0, 3.4e+38, 1) \
  X(dry_multiplier, "dry_multiplier", true, 0, 3.4e+38, 0) \
  X(dry_base, "dry_base", true, 1, 3.4e+38, 1.75) \
  X(dry_allowed_length, "dry_allowed_length", false, 0, 1048576, 2) \
  X(dry_penalty_last, "dry_penalty_last_n", false, -1, 1048576, -1) \
  X(mirostat, "mirostat", false, 0, 2, 0) \
  X(mirostat_tau, "mirostat_tau", true, 0, 3.4e+38, 5) \
  X(mirostat_eta, "mirostat_eta", true, 0, 3.4e+38, 0.1) \
  X(adaptive_target, "adaptive_target", true, -1, 1, -1) \
  X(adaptive_decay, "adaptive_decay", true, 0, 0.99, 0.9)

// a field of wick_sampling, a command's option, its kind, the value's name, least, most, help
#define SAMPLING_ARGUMENTS(X) \
  X(temperature, "--temp", ARGS_F32, "T", 0.0f, FLOAT_MOST, "set the temperature (default 0: greedy)") \
  X(top_k, "--top-k", ARGS_I32, "K", -1, 2147483647, "sample from the K most likely tokens (default 0: all)") \
  X(top_p, "--top-p", ARGS_F32, "P", 0.0f, 1.0f, "sample from the most likely tokens that add up to P (default 1: all, 0: the most likely)") \
  X(min_p, "--min-p", ARGS_F32, "P", 0.0f, 1.0f, "keep tokens at least P times as likely as the best (default 0: all)") \
  X(repeat_penalty, "--repeat-penalty", ARGS_F32, "R", FLOAT_LEAST, FLOAT_MOST, "penalize repeated tokens (default 1: off)") \
  X(frequency_penalty, "--frequency-penalty", ARGS_F32, "F", -100.0f, 100.0f, "penalize tokens by frequency (default 0: off)") \
  X(presence_penalty, "--presence-penalty", ARGS_F32, "F", -100.0f, 100.0f, "penalize tokens that occurred (default 0: off)") \
  X(penalty_last, "--repeat-last-n", ARGS_I32, "N", -1, 1048576, "apply penalties to the last N tokens (default 64, 0: none, -1: the context)") \
  X(typical_p, "--typical", ARGS_F32, "P", 0.0f, 1.0f, "keep tokens of typical surprise that add up to P (default 1: off)") \
  X(top_n_sigma, "--top-nsigma", ARGS_F32, "N", -1.0f, FLOAT_MOST, "keep logits at most N standard deviations below the best (default -1: off)") \
  X(xtc_probability, "--xtc-probability", ARGS_F32, "P", 0.0f, 1.0f, "set the probability of keeping only the least of the top choices (default 0: off)") \
  X(xtc_threshold, "--xtc-threshold", ARGS_F32, "P", 0.0f, 1.0f, "set the least probability of a top choice (default 0.1, over 0.5: off)") \
  X(dynatemp_range, "--dynatemp-range", ARGS_F32, "R", 0.0f, FLOAT_MOST, "vary the temperature by up to R with the entropy (default 0: off)") \
  X(dynatemp_exponent, "--dynatemp-exp", ARGS_F32, "E", 0.0f, FLOAT_MOST, "set the exponent of the entropy (default 1)") \
  X(dry_multiplier, "--dry-multiplier", ARGS_F32, "M", 0.0f, FLOAT_MOST, "set DRY's penalty of repetitions (default 0: off)") \
  X(dry_base, "--dry-base", ARGS_F32, "B", 1.0f, FLOAT_MOST, "set the growth of DRY's penalty per token (default 1.75)") \
  X(dry_allowed_length, "--dry-allowed-length", ARGS_U32, "N", 0, 1048576, "allow repetitions of N tokens (default 2)") \
  X(dry_penalty_last, "--dry-penalty-last-n", ARGS_I32, "N", -1, 1048576, "apply DRY to the last N tokens (default -1: the context, 0: off)") \
  X(mirostat, "--mirostat", ARGS_U32, "N", 0, 2, "use Mirostat 1 or 2 (default 0: off)") \
  X(mirostat_tau, "--mirostat-ent", ARGS_F32, "T", 0.0f, FLOAT_MOST, "set Mirostat's surprise in bits (default 5)") \
  X(mirostat_eta, "--mirostat-lr", ARGS_F32, "E", 0.0f, FLOAT_MOST, "set Mirostat's learning rate (default 0.1)") \
  X(adaptive_target, "--adaptive-target", ARGS_F32, "P", -1.0f, 1.0f, "prefer tokens of about probability P by adaptive-p (default -1, below 0: off)") \
  X(adaptive_decay, "--adaptive-decay", ARGS_F32, "D", 0.0f, 0.99f, "set the decay of adaptive-p's memory (default 0.9)")

// a member of wick_request that is true or false, and its name over HTTP
#define FLAG_FIELDS(X) \
  X(ignore_end, "ignore_eos") \
  X(sampling.logprobs_after, "post_sampling_probs")

// such a member, a command's option, help
#define FLAG_ARGUMENTS(X) \
  X(healing, "--healing", "let the prompt end inside of a word or token") \
  X(sampling.logprobs_after, "--logprobs-after", "report logprobs of the distribution after the samplers, not the model's")

// a sampler's name, and its letter in wick_sampling.samplers
#define SAMPLERS(X) \
  X(PENALTIES, "penalties", 'e') \
  X(DRY, "dry", 'd') \
  X(TOP_N_SIGMA, "top_n_sigma", 's') \
  X(TOP_K, "top_k", 'k') \
  X(TYP_P, "typ_p", 'y') \
  X(TOP_P, "top_p", 'p') \
  X(MIN_P, "min_p", 'm') \
  X(XTC, "xtc", 'x') \
  X(TEMPERATURE, "temperature", 't') \
  X(ADAPTIVE_P, "adaptive_p", 'a')
#define SAMPLERS_DEFAULT "edskypmxta"
// Returns the letter of a sampler, or 0 for an unknown name.
char sampler_letter(const char *name, size_t name_bytes);

// A field over HTTP, its field_kind (component/fields.h), and what is accepted of a missing feature's
#define FIELDS_EVERY(X) \
  X("model", FIELD_TEXT, NULL) X("user", FIELD_IGNORED, NULL) \
  X("cache_prompt", FIELD_BOOLEAN, NULL) X("id_slot", FIELD_IGNORED, NULL) \
  X("n_keep", FIELD_IGNORED, NULL) X("timings_per_token", FIELD_BOOLEAN, NULL) \
  X("return_progress", FIELD_BOOLEAN, NULL) X("return_tokens", FIELD_MISSING, "false") \
  X("reasoning_format", FIELD_MISSING, "\"auto\"|\"deepseek\"") \
  X("keep_alive", FIELD_IGNORED, NULL) X("ttl", FIELD_IGNORED, NULL) \
  X("extra_body", FIELD_MISSING, "{}")
#define FIELDS_TEXT(X) \
  X("stream", FIELD_BOOLEAN, NULL) X("max_tokens", FIELD_TOKENS, NULL) \
  X("grammar", FIELD_TEXT, NULL) X("regex", FIELD_TEXT, NULL) X("json_schema", FIELD_SCHEMA, NULL) \
  X("structured_outputs", FIELD_OBJECT, NULL)
#define FIELDS_CHAT_USED(X) \
  X("max_completion_tokens", FIELD_TOKENS, NULL) X("logprobs", FIELD_BOOLEAN, NULL) \
  X("chat_template_kwargs", FIELD_OBJECT, NULL) X("parallel_tool_calls", FIELD_BOOLEAN, NULL) \
  X("parseSpecial", FIELD_BOOLEAN, NULL)
#define FIELDS_CHAT_IDLE(X) \
  X("enable_thinking", FIELD_BOOLEAN, NULL) X("store", FIELD_IGNORED, NULL) \
  X("metadata", FIELD_IGNORED, NULL) X("service_tier", FIELD_IGNORED, NULL) \
  X("prediction", FIELD_IGNORED, NULL) X("safety_identifier", FIELD_IGNORED, NULL) \
  X("prompt_cache_key", FIELD_IGNORED, NULL) X("prompt_cache_retention", FIELD_IGNORED, NULL) \
  X("functions", FIELD_MISSING, "[]") X("function_call", FIELD_MISSING, "\"none\"|\"auto\"") \
  X("modalities", FIELD_MISSING, "[]|[\"text\"]") X("verbosity", FIELD_MISSING, "\"medium\"") \
  X("audio", FIELD_MISSING, NULL) X("web_search_options", FIELD_MISSING, NULL)
#define FIELDS_COMPLETION(X) \
  X("parseSpecial", FIELD_MISSING, "true") X("echo", FIELD_BOOLEAN, NULL) \
  X("suffix", FIELD_MISSING, "\"\"")

// another server's name of a field, and ours
#define FIELD_ALIASES(X) \
  X("n_predict", "max_tokens") \
  X("typ_p", "typical_p") \
  X("repetition_penalty", "repeat_penalty") \
  X("guided_json", "json_schema") \
  X("guided_regex", "regex") \
  X("guided_choice", "choices") \
  X("guided_grammar", "grammar")

// an option's kind, its field of a component's settings, its variable, its default
#define SERVER_SETTINGS(X) \
  X(keys, keys, "WICK_KEYS", (settings_keys){0}) \
  X(keys, metrics_keys, "WICK_METRICS_KEY", (settings_keys){0}) \
  X(texts, origins, "WICK_CORS", (settings_texts){0}) \
  X(count, queue_limit, "WICK_QUEUE_LIMIT", 256) \
  X(text, model_name, "WICK_MODEL_NAME", (settings_text){0}) \
  X(count, body_bytes_max, "WICK_BODY_BYTES_MAX", 1048576) \
  X(count, body_timeout_ms, "WICK_BODY_TIMEOUT_MS", 60000) \
  X(count, items_max, "WICK_ITEMS_MAX", 2048) \
  X(count, silence_ms, "WICK_SILENCE_MS", 5000) \
  X(flag, logs_requests, "WICK_LOG", 1) \
  X(text, chat_template, "WICK_CHAT_TEMPLATE", (settings_text){0})

// another name of a path over HTTP, and the route's
#define PATH_ALIASES(X) \
  X("/v1/health", "/health") \
  X("/models", "/v1/models") \
  X("/chat/completions", "/v1/chat/completions") \
  X("/completions", "/v1/completions") \
  X("/embeddings", "/v1/embeddings") \
  X("/responses", "/v1/responses") \
  X("/messages", "/v1/messages") \
  X("/rerank", "/v1/rerank") \
  X("/reranking", "/v1/rerank") \
  X("/v1/reranking", "/v1/rerank") \
  X("/v2/rerank", "/v1/rerank") \
  X("/v1/tokenize", "/tokenize") \
  X("/v1/detokenize", "/detokenize")

// The fields that a wick_subject is about
#define SUBJECT_NAMES \
  "", "memory_bytes_max", "memory_bytes_max, context_tokens", "context_tokens", "batch_tokens", \
  "threads", "k_type, v_type", "kv_tokens_max", "directory_only", "requests_max", \
  "queue_tokens_max", "text, tokens", "priority", "completions", "session", "stops", \
  "temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty", \
  "penalty_last", "logprobs", "bias", "kernels", "context_tokens", "pre_tokenizer", "grammar", \
  "typical_p", "top_n_sigma", "xtc_probability", "xtc_threshold", "dynatemp_range", \
  "dynatemp_exponent", "dry_multiplier", "dry_base", "dry_penalty_last", "dry_sequence_breakers", \
  "mirostat", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay", "samplers", \
  "adapters", "tables", "dry_allowed_length", "conversation.chat", "conversation.chat", \
  "conversation.tool_choice"

#endif
