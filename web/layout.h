// web/layout.h — the memory layout that C and JavaScript of a browser build share.
// `make layout` makes it of web/layout.mjs: changes go there.
// clang-format off
// NOLINTBEGIN(bugprone-sizeof-expression): of pointers, whose size is what is checked
#ifndef WICK_WEB_LAYOUT_H
#define WICK_WEB_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "thread_web.h"
#include "wick.h"

#define WEB_WIDTH(of_32_bits, of_64_bits) (sizeof(void *) == 4 ? (of_32_bits) : (of_64_bits))

typedef struct web_config {
  uint32_t memory_bytes_max_low;
  uint32_t memory_bytes_max_high;
  uint32_t context_tokens;
  uint32_t batch_tokens;
  uint32_t kv_tokens_max;
  uint32_t grammar_bytes_max;
  uint32_t grammar_steps_max;
  uint32_t media_tiles_max;
  uint32_t media_rows_max;
  uint32_t directory_only;
  uint32_t metrics;
  uint32_t no_prefix_cache;
  uint32_t no_predictor;
  uint32_t threads;
  uint32_t k_type;
  uint32_t v_type;
  uint32_t timer_grain_us;
  uint32_t choose_threads;
  uint32_t swap;
  uintptr_t pre_tokenizer;
  uint32_t pre_tokenizer_bytes;
  uint32_t tables;
  uint32_t media_like_llama_cpp;
} web_config;
_Static_assert(offsetof(web_config, memory_bytes_max_low) == 0 && sizeof(((web_config *)0)->memory_bytes_max_low) == 4, "web_config.memory_bytes_max_low");
_Static_assert(offsetof(web_config, memory_bytes_max_high) == 4 && sizeof(((web_config *)0)->memory_bytes_max_high) == 4, "web_config.memory_bytes_max_high");
_Static_assert(offsetof(web_config, context_tokens) == 8 && sizeof(((web_config *)0)->context_tokens) == 4, "web_config.context_tokens");
_Static_assert(offsetof(web_config, batch_tokens) == 12 && sizeof(((web_config *)0)->batch_tokens) == 4, "web_config.batch_tokens");
_Static_assert(offsetof(web_config, kv_tokens_max) == 16 && sizeof(((web_config *)0)->kv_tokens_max) == 4, "web_config.kv_tokens_max");
_Static_assert(offsetof(web_config, grammar_bytes_max) == 20 && sizeof(((web_config *)0)->grammar_bytes_max) == 4, "web_config.grammar_bytes_max");
_Static_assert(offsetof(web_config, grammar_steps_max) == 24 && sizeof(((web_config *)0)->grammar_steps_max) == 4, "web_config.grammar_steps_max");
_Static_assert(offsetof(web_config, media_tiles_max) == 28 && sizeof(((web_config *)0)->media_tiles_max) == 4, "web_config.media_tiles_max");
_Static_assert(offsetof(web_config, media_rows_max) == 32 && sizeof(((web_config *)0)->media_rows_max) == 4, "web_config.media_rows_max");
_Static_assert(offsetof(web_config, directory_only) == 36 && sizeof(((web_config *)0)->directory_only) == 4, "web_config.directory_only");
_Static_assert(offsetof(web_config, metrics) == 40 && sizeof(((web_config *)0)->metrics) == 4, "web_config.metrics");
_Static_assert(offsetof(web_config, no_prefix_cache) == 44 && sizeof(((web_config *)0)->no_prefix_cache) == 4, "web_config.no_prefix_cache");
_Static_assert(offsetof(web_config, no_predictor) == 48 && sizeof(((web_config *)0)->no_predictor) == 4, "web_config.no_predictor");
_Static_assert(offsetof(web_config, threads) == 52 && sizeof(((web_config *)0)->threads) == 4, "web_config.threads");
_Static_assert(offsetof(web_config, k_type) == 56 && sizeof(((web_config *)0)->k_type) == 4, "web_config.k_type");
_Static_assert(offsetof(web_config, v_type) == 60 && sizeof(((web_config *)0)->v_type) == 4, "web_config.v_type");
_Static_assert(offsetof(web_config, timer_grain_us) == 64 && sizeof(((web_config *)0)->timer_grain_us) == 4, "web_config.timer_grain_us");
_Static_assert(offsetof(web_config, choose_threads) == 68 && sizeof(((web_config *)0)->choose_threads) == 4, "web_config.choose_threads");
_Static_assert(offsetof(web_config, swap) == 72 && sizeof(((web_config *)0)->swap) == 4, "web_config.swap");
_Static_assert(offsetof(web_config, pre_tokenizer) == WEB_WIDTH(76, 80) && sizeof(((web_config *)0)->pre_tokenizer) == WEB_WIDTH(4, 8), "web_config.pre_tokenizer");
_Static_assert(offsetof(web_config, pre_tokenizer_bytes) == WEB_WIDTH(80, 88) && sizeof(((web_config *)0)->pre_tokenizer_bytes) == 4, "web_config.pre_tokenizer_bytes");
_Static_assert(offsetof(web_config, tables) == WEB_WIDTH(84, 92) && sizeof(((web_config *)0)->tables) == 4, "web_config.tables");
_Static_assert(offsetof(web_config, media_like_llama_cpp) == WEB_WIDTH(88, 96) && sizeof(((web_config *)0)->media_like_llama_cpp) == 4, "web_config.media_like_llama_cpp");
_Static_assert(sizeof(web_config) == WEB_WIDTH(92, 104), "web_config");

typedef struct web_request {
  uintptr_t text;
  uint32_t text_bytes;
  uintptr_t tokens;
  uint32_t token_count;
  uint32_t tokenize_flags;
  uint32_t max_tokens;
  uintptr_t sampling;
  uintptr_t stops;
  uintptr_t stop_bytes;
  uint32_t stop_count;
  uint32_t flags;
  uint32_t session;
  uint32_t prefill_only;
  uint32_t drop_first;
  uint32_t drop_last;
  int32_t priority;
  uint32_t passes_waited;
  uint32_t completions;
  uint32_t speculation;
  uintptr_t forced;
  uint32_t forced_count;
  uintptr_t salt;
  uint32_t salt_bytes;
  uint32_t grammar_kind;
  uintptr_t grammar;
  uint32_t grammar_bytes;
  uintptr_t adapters;
  uint32_t adapter_count;
  uint32_t limits_reasoning;
  uint32_t reasoning_tokens;
  uintptr_t reasoning_ending;
  uint32_t reasoning_ending_bytes;
  uintptr_t chat;
  uintptr_t tool_choice;
  uint32_t tool_choice_bytes;
  uint32_t one_call;
  uint32_t is_grammar_whole;
  uint32_t asks_host;
  uintptr_t grammar_begun;
  uint32_t grammar_begun_bytes;
} web_request;
_Static_assert(offsetof(web_request, text) == 0 && sizeof(((web_request *)0)->text) == WEB_WIDTH(4, 8), "web_request.text");
_Static_assert(offsetof(web_request, text_bytes) == WEB_WIDTH(4, 8) && sizeof(((web_request *)0)->text_bytes) == 4, "web_request.text_bytes");
_Static_assert(offsetof(web_request, tokens) == WEB_WIDTH(8, 16) && sizeof(((web_request *)0)->tokens) == WEB_WIDTH(4, 8), "web_request.tokens");
_Static_assert(offsetof(web_request, token_count) == WEB_WIDTH(12, 24) && sizeof(((web_request *)0)->token_count) == 4, "web_request.token_count");
_Static_assert(offsetof(web_request, tokenize_flags) == WEB_WIDTH(16, 28) && sizeof(((web_request *)0)->tokenize_flags) == 4, "web_request.tokenize_flags");
_Static_assert(offsetof(web_request, max_tokens) == WEB_WIDTH(20, 32) && sizeof(((web_request *)0)->max_tokens) == 4, "web_request.max_tokens");
_Static_assert(offsetof(web_request, sampling) == WEB_WIDTH(24, 40) && sizeof(((web_request *)0)->sampling) == WEB_WIDTH(4, 8), "web_request.sampling");
_Static_assert(offsetof(web_request, stops) == WEB_WIDTH(28, 48) && sizeof(((web_request *)0)->stops) == WEB_WIDTH(4, 8), "web_request.stops");
_Static_assert(offsetof(web_request, stop_bytes) == WEB_WIDTH(32, 56) && sizeof(((web_request *)0)->stop_bytes) == WEB_WIDTH(4, 8), "web_request.stop_bytes");
_Static_assert(offsetof(web_request, stop_count) == WEB_WIDTH(36, 64) && sizeof(((web_request *)0)->stop_count) == 4, "web_request.stop_count");
_Static_assert(offsetof(web_request, flags) == WEB_WIDTH(40, 68) && sizeof(((web_request *)0)->flags) == 4, "web_request.flags");
_Static_assert(offsetof(web_request, session) == WEB_WIDTH(44, 72) && sizeof(((web_request *)0)->session) == 4, "web_request.session");
_Static_assert(offsetof(web_request, prefill_only) == WEB_WIDTH(48, 76) && sizeof(((web_request *)0)->prefill_only) == 4, "web_request.prefill_only");
_Static_assert(offsetof(web_request, drop_first) == WEB_WIDTH(52, 80) && sizeof(((web_request *)0)->drop_first) == 4, "web_request.drop_first");
_Static_assert(offsetof(web_request, drop_last) == WEB_WIDTH(56, 84) && sizeof(((web_request *)0)->drop_last) == 4, "web_request.drop_last");
_Static_assert(offsetof(web_request, priority) == WEB_WIDTH(60, 88) && sizeof(((web_request *)0)->priority) == 4, "web_request.priority");
_Static_assert(offsetof(web_request, passes_waited) == WEB_WIDTH(64, 92) && sizeof(((web_request *)0)->passes_waited) == 4, "web_request.passes_waited");
_Static_assert(offsetof(web_request, completions) == WEB_WIDTH(68, 96) && sizeof(((web_request *)0)->completions) == 4, "web_request.completions");
_Static_assert(offsetof(web_request, speculation) == WEB_WIDTH(72, 100) && sizeof(((web_request *)0)->speculation) == 4, "web_request.speculation");
_Static_assert(offsetof(web_request, forced) == WEB_WIDTH(76, 104) && sizeof(((web_request *)0)->forced) == WEB_WIDTH(4, 8), "web_request.forced");
_Static_assert(offsetof(web_request, forced_count) == WEB_WIDTH(80, 112) && sizeof(((web_request *)0)->forced_count) == 4, "web_request.forced_count");
_Static_assert(offsetof(web_request, salt) == WEB_WIDTH(84, 120) && sizeof(((web_request *)0)->salt) == WEB_WIDTH(4, 8), "web_request.salt");
_Static_assert(offsetof(web_request, salt_bytes) == WEB_WIDTH(88, 128) && sizeof(((web_request *)0)->salt_bytes) == 4, "web_request.salt_bytes");
_Static_assert(offsetof(web_request, grammar_kind) == WEB_WIDTH(92, 132) && sizeof(((web_request *)0)->grammar_kind) == 4, "web_request.grammar_kind");
_Static_assert(offsetof(web_request, grammar) == WEB_WIDTH(96, 136) && sizeof(((web_request *)0)->grammar) == WEB_WIDTH(4, 8), "web_request.grammar");
_Static_assert(offsetof(web_request, grammar_bytes) == WEB_WIDTH(100, 144) && sizeof(((web_request *)0)->grammar_bytes) == 4, "web_request.grammar_bytes");
_Static_assert(offsetof(web_request, adapters) == WEB_WIDTH(104, 152) && sizeof(((web_request *)0)->adapters) == WEB_WIDTH(4, 8), "web_request.adapters");
_Static_assert(offsetof(web_request, adapter_count) == WEB_WIDTH(108, 160) && sizeof(((web_request *)0)->adapter_count) == 4, "web_request.adapter_count");
_Static_assert(offsetof(web_request, limits_reasoning) == WEB_WIDTH(112, 164) && sizeof(((web_request *)0)->limits_reasoning) == 4, "web_request.limits_reasoning");
_Static_assert(offsetof(web_request, reasoning_tokens) == WEB_WIDTH(116, 168) && sizeof(((web_request *)0)->reasoning_tokens) == 4, "web_request.reasoning_tokens");
_Static_assert(offsetof(web_request, reasoning_ending) == WEB_WIDTH(120, 176) && sizeof(((web_request *)0)->reasoning_ending) == WEB_WIDTH(4, 8), "web_request.reasoning_ending");
_Static_assert(offsetof(web_request, reasoning_ending_bytes) == WEB_WIDTH(124, 184) && sizeof(((web_request *)0)->reasoning_ending_bytes) == 4, "web_request.reasoning_ending_bytes");
_Static_assert(offsetof(web_request, chat) == WEB_WIDTH(128, 192) && sizeof(((web_request *)0)->chat) == WEB_WIDTH(4, 8), "web_request.chat");
_Static_assert(offsetof(web_request, tool_choice) == WEB_WIDTH(132, 200) && sizeof(((web_request *)0)->tool_choice) == WEB_WIDTH(4, 8), "web_request.tool_choice");
_Static_assert(offsetof(web_request, tool_choice_bytes) == WEB_WIDTH(136, 208) && sizeof(((web_request *)0)->tool_choice_bytes) == 4, "web_request.tool_choice_bytes");
_Static_assert(offsetof(web_request, one_call) == WEB_WIDTH(140, 212) && sizeof(((web_request *)0)->one_call) == 4, "web_request.one_call");
_Static_assert(offsetof(web_request, is_grammar_whole) == WEB_WIDTH(144, 216) && sizeof(((web_request *)0)->is_grammar_whole) == 4, "web_request.is_grammar_whole");
_Static_assert(offsetof(web_request, asks_host) == WEB_WIDTH(148, 220) && sizeof(((web_request *)0)->asks_host) == 4, "web_request.asks_host");
_Static_assert(offsetof(web_request, grammar_begun) == WEB_WIDTH(152, 224) && sizeof(((web_request *)0)->grammar_begun) == WEB_WIDTH(4, 8), "web_request.grammar_begun");
_Static_assert(offsetof(web_request, grammar_begun_bytes) == WEB_WIDTH(156, 232) && sizeof(((web_request *)0)->grammar_begun_bytes) == 4, "web_request.grammar_begun_bytes");
_Static_assert(sizeof(web_request) == WEB_WIDTH(160, 240), "web_request");

_Static_assert(offsetof(wick_sampling, seed) == 0 && sizeof(((wick_sampling *)0)->seed) == 8, "wick_sampling.seed");
_Static_assert(offsetof(wick_sampling, temperature) == 8 && sizeof(((wick_sampling *)0)->temperature) == 4, "wick_sampling.temperature");
_Static_assert(offsetof(wick_sampling, top_k) == 12 && sizeof(((wick_sampling *)0)->top_k) == 4, "wick_sampling.top_k");
_Static_assert(offsetof(wick_sampling, top_p) == 16 && sizeof(((wick_sampling *)0)->top_p) == 4, "wick_sampling.top_p");
_Static_assert(offsetof(wick_sampling, min_p) == 20 && sizeof(((wick_sampling *)0)->min_p) == 4, "wick_sampling.min_p");
_Static_assert(offsetof(wick_sampling, repeat_penalty) == 24 && sizeof(((wick_sampling *)0)->repeat_penalty) == 4, "wick_sampling.repeat_penalty");
_Static_assert(offsetof(wick_sampling, frequency_penalty) == 28 && sizeof(((wick_sampling *)0)->frequency_penalty) == 4, "wick_sampling.frequency_penalty");
_Static_assert(offsetof(wick_sampling, presence_penalty) == 32 && sizeof(((wick_sampling *)0)->presence_penalty) == 4, "wick_sampling.presence_penalty");
_Static_assert(offsetof(wick_sampling, penalty_last) == 36 && sizeof(((wick_sampling *)0)->penalty_last) == 4, "wick_sampling.penalty_last");
_Static_assert(offsetof(wick_sampling, typical_p) == 40 && sizeof(((wick_sampling *)0)->typical_p) == 4, "wick_sampling.typical_p");
_Static_assert(offsetof(wick_sampling, top_n_sigma) == 44 && sizeof(((wick_sampling *)0)->top_n_sigma) == 4, "wick_sampling.top_n_sigma");
_Static_assert(offsetof(wick_sampling, xtc_probability) == 48 && sizeof(((wick_sampling *)0)->xtc_probability) == 4, "wick_sampling.xtc_probability");
_Static_assert(offsetof(wick_sampling, xtc_threshold) == 52 && sizeof(((wick_sampling *)0)->xtc_threshold) == 4, "wick_sampling.xtc_threshold");
_Static_assert(offsetof(wick_sampling, dynatemp_range) == 56 && sizeof(((wick_sampling *)0)->dynatemp_range) == 4, "wick_sampling.dynatemp_range");
_Static_assert(offsetof(wick_sampling, dynatemp_exponent) == 60 && sizeof(((wick_sampling *)0)->dynatemp_exponent) == 4, "wick_sampling.dynatemp_exponent");
_Static_assert(offsetof(wick_sampling, dry_multiplier) == 64 && sizeof(((wick_sampling *)0)->dry_multiplier) == 4, "wick_sampling.dry_multiplier");
_Static_assert(offsetof(wick_sampling, dry_base) == 68 && sizeof(((wick_sampling *)0)->dry_base) == 4, "wick_sampling.dry_base");
_Static_assert(offsetof(wick_sampling, dry_allowed_length) == 72 && sizeof(((wick_sampling *)0)->dry_allowed_length) == 4, "wick_sampling.dry_allowed_length");
_Static_assert(offsetof(wick_sampling, dry_penalty_last) == 76 && sizeof(((wick_sampling *)0)->dry_penalty_last) == 4, "wick_sampling.dry_penalty_last");
_Static_assert(offsetof(wick_sampling, mirostat) == 80 && sizeof(((wick_sampling *)0)->mirostat) == 4, "wick_sampling.mirostat");
_Static_assert(offsetof(wick_sampling, mirostat_tau) == 84 && sizeof(((wick_sampling *)0)->mirostat_tau) == 4, "wick_sampling.mirostat_tau");
_Static_assert(offsetof(wick_sampling, mirostat_eta) == 88 && sizeof(((wick_sampling *)0)->mirostat_eta) == 4, "wick_sampling.mirostat_eta");
_Static_assert(offsetof(wick_sampling, adaptive_target) == 92 && sizeof(((wick_sampling *)0)->adaptive_target) == 4, "wick_sampling.adaptive_target");
_Static_assert(offsetof(wick_sampling, adaptive_decay) == 96 && sizeof(((wick_sampling *)0)->adaptive_decay) == 4, "wick_sampling.adaptive_decay");
_Static_assert(offsetof(wick_sampling, samplers) == WEB_WIDTH(100, 104) && sizeof(((wick_sampling *)0)->samplers) == WEB_WIDTH(4, 8), "wick_sampling.samplers");
_Static_assert(offsetof(wick_sampling, bias) == WEB_WIDTH(104, 112) && sizeof(((wick_sampling *)0)->bias) == WEB_WIDTH(4, 8), "wick_sampling.bias");
_Static_assert(offsetof(wick_sampling, bias_count) == WEB_WIDTH(108, 120) && sizeof(((wick_sampling *)0)->bias_count) == 4, "wick_sampling.bias_count");
_Static_assert(offsetof(wick_sampling, logprobs) == WEB_WIDTH(112, 124) && sizeof(((wick_sampling *)0)->logprobs) == 4, "wick_sampling.logprobs");
_Static_assert(offsetof(wick_sampling, logprob) == WEB_WIDTH(116, 128) && sizeof(((wick_sampling *)0)->logprob) == 1, "wick_sampling.logprob");
_Static_assert(offsetof(wick_sampling, dry_sequence_breakers) == WEB_WIDTH(120, 136) && sizeof(((wick_sampling *)0)->dry_sequence_breakers) == WEB_WIDTH(4, 8), "wick_sampling.dry_sequence_breakers");
_Static_assert(offsetof(wick_sampling, dry_breaker_bytes) == WEB_WIDTH(124, 144) && sizeof(((wick_sampling *)0)->dry_breaker_bytes) == WEB_WIDTH(4, 8), "wick_sampling.dry_breaker_bytes");
_Static_assert(offsetof(wick_sampling, dry_breaker_count) == WEB_WIDTH(128, 152) && sizeof(((wick_sampling *)0)->dry_breaker_count) == 4, "wick_sampling.dry_breaker_count");
_Static_assert(offsetof(wick_sampling, logprobs_after) == WEB_WIDTH(132, 156) && sizeof(((wick_sampling *)0)->logprobs_after) == 1, "wick_sampling.logprobs_after");
_Static_assert(sizeof(wick_sampling) == WEB_WIDTH(136, 160), "wick_sampling");

typedef struct web_embed {
  uintptr_t texts;
  uint32_t text_count;
  uint32_t pooling;
  uint32_t dimensions;
  uint32_t normalizes;
  uint32_t truncates;
  uintptr_t adapters;
  uint32_t adapter_count;
} web_embed;
_Static_assert(offsetof(web_embed, texts) == 0 && sizeof(((web_embed *)0)->texts) == WEB_WIDTH(4, 8), "web_embed.texts");
_Static_assert(offsetof(web_embed, text_count) == WEB_WIDTH(4, 8) && sizeof(((web_embed *)0)->text_count) == 4, "web_embed.text_count");
_Static_assert(offsetof(web_embed, pooling) == WEB_WIDTH(8, 12) && sizeof(((web_embed *)0)->pooling) == 4, "web_embed.pooling");
_Static_assert(offsetof(web_embed, dimensions) == WEB_WIDTH(12, 16) && sizeof(((web_embed *)0)->dimensions) == 4, "web_embed.dimensions");
_Static_assert(offsetof(web_embed, normalizes) == WEB_WIDTH(16, 20) && sizeof(((web_embed *)0)->normalizes) == 4, "web_embed.normalizes");
_Static_assert(offsetof(web_embed, truncates) == WEB_WIDTH(20, 24) && sizeof(((web_embed *)0)->truncates) == 4, "web_embed.truncates");
_Static_assert(offsetof(web_embed, adapters) == WEB_WIDTH(24, 32) && sizeof(((web_embed *)0)->adapters) == WEB_WIDTH(4, 8), "web_embed.adapters");
_Static_assert(offsetof(web_embed, adapter_count) == WEB_WIDTH(28, 40) && sizeof(((web_embed *)0)->adapter_count) == 4, "web_embed.adapter_count");
_Static_assert(sizeof(web_embed) == WEB_WIDTH(32, 48), "web_embed");

_Static_assert(offsetof(wick_embed_text, text) == 0 && sizeof(((wick_embed_text *)0)->text) == WEB_WIDTH(4, 8), "wick_embed_text.text");
_Static_assert(offsetof(wick_embed_text, text_bytes) == WEB_WIDTH(4, 8) && sizeof(((wick_embed_text *)0)->text_bytes) == WEB_WIDTH(4, 8), "wick_embed_text.text_bytes");
_Static_assert(offsetof(wick_embed_text, document) == WEB_WIDTH(8, 16) && sizeof(((wick_embed_text *)0)->document) == WEB_WIDTH(4, 8), "wick_embed_text.document");
_Static_assert(offsetof(wick_embed_text, document_bytes) == WEB_WIDTH(12, 24) && sizeof(((wick_embed_text *)0)->document_bytes) == WEB_WIDTH(4, 8), "wick_embed_text.document_bytes");
_Static_assert(offsetof(wick_embed_text, tokens) == WEB_WIDTH(16, 32) && sizeof(((wick_embed_text *)0)->tokens) == WEB_WIDTH(4, 8), "wick_embed_text.tokens");
_Static_assert(offsetof(wick_embed_text, token_count) == WEB_WIDTH(20, 40) && sizeof(((wick_embed_text *)0)->token_count) == WEB_WIDTH(4, 8), "wick_embed_text.token_count");
_Static_assert(sizeof(wick_embed_text) == WEB_WIDTH(24, 48), "wick_embed_text");

typedef struct web_chat {
  uintptr_t json;
  uint32_t json_bytes;
  uint32_t now_s;
  uint32_t parse_special;
  uintptr_t prefix;
  uint32_t prefix_bytes;
} web_chat;
_Static_assert(offsetof(web_chat, json) == 0 && sizeof(((web_chat *)0)->json) == WEB_WIDTH(4, 8), "web_chat.json");
_Static_assert(offsetof(web_chat, json_bytes) == WEB_WIDTH(4, 8) && sizeof(((web_chat *)0)->json_bytes) == 4, "web_chat.json_bytes");
_Static_assert(offsetof(web_chat, now_s) == WEB_WIDTH(8, 12) && sizeof(((web_chat *)0)->now_s) == 4, "web_chat.now_s");
_Static_assert(offsetof(web_chat, parse_special) == WEB_WIDTH(12, 16) && sizeof(((web_chat *)0)->parse_special) == 4, "web_chat.parse_special");
_Static_assert(offsetof(web_chat, prefix) == WEB_WIDTH(16, 24) && sizeof(((web_chat *)0)->prefix) == WEB_WIDTH(4, 8), "web_chat.prefix");
_Static_assert(offsetof(web_chat, prefix_bytes) == WEB_WIDTH(20, 32) && sizeof(((web_chat *)0)->prefix_bytes) == 4, "web_chat.prefix_bytes");
_Static_assert(sizeof(web_chat) == WEB_WIDTH(24, 40), "web_chat");

typedef struct web_media_prompt {
  uintptr_t chat;
  uintptr_t text;
  uint32_t text_bytes;
  uintptr_t marker;
  uint32_t marker_bytes;
  uintptr_t media;
  uint32_t media_count;
} web_media_prompt;
_Static_assert(offsetof(web_media_prompt, chat) == 0 && sizeof(((web_media_prompt *)0)->chat) == WEB_WIDTH(4, 8), "web_media_prompt.chat");
_Static_assert(offsetof(web_media_prompt, text) == WEB_WIDTH(4, 8) && sizeof(((web_media_prompt *)0)->text) == WEB_WIDTH(4, 8), "web_media_prompt.text");
_Static_assert(offsetof(web_media_prompt, text_bytes) == WEB_WIDTH(8, 16) && sizeof(((web_media_prompt *)0)->text_bytes) == 4, "web_media_prompt.text_bytes");
_Static_assert(offsetof(web_media_prompt, marker) == WEB_WIDTH(12, 24) && sizeof(((web_media_prompt *)0)->marker) == WEB_WIDTH(4, 8), "web_media_prompt.marker");
_Static_assert(offsetof(web_media_prompt, marker_bytes) == WEB_WIDTH(16, 32) && sizeof(((web_media_prompt *)0)->marker_bytes) == 4, "web_media_prompt.marker_bytes");
_Static_assert(offsetof(web_media_prompt, media) == WEB_WIDTH(20, 40) && sizeof(((web_media_prompt *)0)->media) == WEB_WIDTH(4, 8), "web_media_prompt.media");
_Static_assert(offsetof(web_media_prompt, media_count) == WEB_WIDTH(24, 48) && sizeof(((web_media_prompt *)0)->media_count) == 4, "web_media_prompt.media_count");
_Static_assert(sizeof(web_media_prompt) == WEB_WIDTH(28, 56), "web_media_prompt");

_Static_assert(offsetof(wick_bias, token) == 0 && sizeof(((wick_bias *)0)->token) == 4, "wick_bias.token");
_Static_assert(offsetof(wick_bias, bias) == 4 && sizeof(((wick_bias *)0)->bias) == 4, "wick_bias.bias");
_Static_assert(sizeof(wick_bias) == 8, "wick_bias");

_Static_assert(offsetof(wick_adapter_use, adapter) == 0 && sizeof(((wick_adapter_use *)0)->adapter) == 4, "wick_adapter_use.adapter");
_Static_assert(offsetof(wick_adapter_use, scale) == 4 && sizeof(((wick_adapter_use *)0)->scale) == 4, "wick_adapter_use.scale");
_Static_assert(sizeof(wick_adapter_use) == 8, "wick_adapter_use");

_Static_assert(offsetof(wick_event, size_bytes) == 0 && sizeof(((wick_event *)0)->size_bytes) == 4, "wick_event.size_bytes");
_Static_assert(offsetof(wick_event, request) == 4 && sizeof(((wick_event *)0)->request) == 4, "wick_event.request");
_Static_assert(offsetof(wick_event, kind) == 8 && sizeof(((wick_event *)0)->kind) == 4, "wick_event.kind");
_Static_assert(offsetof(wick_event, token) == 12 && sizeof(((wick_event *)0)->token) == 4, "wick_event.token");
_Static_assert(offsetof(wick_event, logprob) == 16 && sizeof(((wick_event *)0)->logprob) == 4, "wick_event.logprob");
_Static_assert(offsetof(wick_event, top_count) == 20 && sizeof(((wick_event *)0)->top_count) == 4, "wick_event.top_count");
_Static_assert(offsetof(wick_event, text_bytes) == 24 && sizeof(((wick_event *)0)->text_bytes) == 4, "wick_event.text_bytes");
_Static_assert(offsetof(wick_event, finish) == 28 && sizeof(((wick_event *)0)->finish) == 2, "wick_event.finish");
_Static_assert(offsetof(wick_event, stop) == 30 && sizeof(((wick_event *)0)->stop) == 2, "wick_event.stop");
_Static_assert(offsetof(wick_event, status) == 32 && sizeof(((wick_event *)0)->status) == 2, "wick_event.status");
_Static_assert(offsetof(wick_event, subject) == 34 && sizeof(((wick_event *)0)->subject) == 2, "wick_event.subject");
_Static_assert(offsetof(wick_event, tokens_prompt) == 36 && sizeof(((wick_event *)0)->tokens_prompt) == 4, "wick_event.tokens_prompt");
_Static_assert(offsetof(wick_event, tokens_cached) == 40 && sizeof(((wick_event *)0)->tokens_cached) == 4, "wick_event.tokens_cached");
_Static_assert(offsetof(wick_event, tokens_out) == 44 && sizeof(((wick_event *)0)->tokens_out) == 4, "wick_event.tokens_out");
_Static_assert(offsetof(wick_event, queue_ms) == 48 && sizeof(((wick_event *)0)->queue_ms) == 8, "wick_event.queue_ms");
_Static_assert(offsetof(wick_event, prefill_ms) == 56 && sizeof(((wick_event *)0)->prefill_ms) == 8, "wick_event.prefill_ms");
_Static_assert(offsetof(wick_event, decode_ms) == 64 && sizeof(((wick_event *)0)->decode_ms) == 8, "wick_event.decode_ms");
_Static_assert(offsetof(wick_event, ttft_ms) == 72 && sizeof(((wick_event *)0)->ttft_ms) == 8, "wick_event.ttft_ms");
_Static_assert(sizeof(wick_event) == 80, "wick_event");

_Static_assert(offsetof(wick_logprob, token) == 0 && sizeof(((wick_logprob *)0)->token) == 4, "wick_logprob.token");
_Static_assert(offsetof(wick_logprob, logprob) == 4 && sizeof(((wick_logprob *)0)->logprob) == 4, "wick_logprob.logprob");
_Static_assert(sizeof(wick_logprob) == 8, "wick_logprob");

_Static_assert(offsetof(wick_error, status) == 0 && sizeof(((wick_error *)0)->status) == 4, "wick_error.status");
_Static_assert(offsetof(wick_error, subject) == 4 && sizeof(((wick_error *)0)->subject) == 4, "wick_error.subject");
_Static_assert(offsetof(wick_error, offset_bytes) == 8 && sizeof(((wick_error *)0)->offset_bytes) == 8, "wick_error.offset_bytes");
_Static_assert(offsetof(wick_error, numbers) == 16 && sizeof(((wick_error *)0)->numbers) == 24, "wick_error.numbers");
_Static_assert(offsetof(wick_error, message) == 40 && sizeof(((wick_error *)0)->message) == 256, "wick_error.message");
_Static_assert(sizeof(wick_error) == 296, "wick_error");

// a bit of web_request.flags, and a member of wick_request that is true or false
#define WEB_REQUEST_FLAGS(X) \
  X(0, ignore_end) \
  X(1, healing) \
  X(2, print_special) \
  X(3, sampling.logprobs_after)

// a number of wick_config
#define WEB_CONFIG_NUMBERS(X) \
  X(context_tokens) \
  X(batch_tokens) \
  X(kv_tokens_max) \
  X(grammar_bytes_max) \
  X(grammar_steps_max) \
  X(media_tiles_max) \
  X(media_rows_max)

// a member that is true or false
#define WEB_CONFIG_FLAGS(X) \
  X(directory_only) \
  X(metrics) \
  X(no_prefix_cache) \
  X(no_predictor)

// Places in `numbers` of web/exports.c
enum { WEB_COUNTER_BUDGET_BYTES = 0, WEB_COUNTER_BYTES_NOW = 1, WEB_COUNTER_BYTES_PEAK = 2, WEB_COUNTER_CALLS = 3, WEB_COUNTER_BLOCKS_NOW = 4, WEB_COUNTER_THREADS = 5, WEB_COUNTER_THREADS_DECODE = 6, WEB_COUNTER_THREADS_PREFILL = 7, WEB_COUNTER_LIMIT_BYTES = 8 };
enum { WEB_RANGE_FILE = 0, WEB_RANGE_OFFSET_BYTES = 1, WEB_RANGE_SIZE_BYTES = 2 };
enum { WEB_LOAD_BYTES_WANTED = 0, WEB_LOAD_BYTES_PLACED = 1, WEB_LOAD_FINGERPRINT = 2, WEB_LOAD_FILES = 3, WEB_LOAD_LAYERS_READY = 4, WEB_LOAD_IS_DIRECTORY_READY = 5, WEB_LOAD_IS_COMPLETE = 6 };
enum { WEB_ARRAY_ADDRESS = 0, WEB_ARRAY_COUNT = 1 };
enum { WEB_ASKED_LOGITS = 0, WEB_ASKED_VOCAB = 1, WEB_ASKED_TOKENS = 2, WEB_ASKED_COUNT = 3 };
enum { WEB_STATE_SESSION = 0, WEB_STATE_ENTRIES = 1 };
enum { WEB_VECTORS_ROWS = 0, WEB_VECTORS_WIDTH = 1, WEB_VECTORS_TOKENS = 2 };
enum { WEB_ADAPTER_ID = 0, WEB_ADAPTER_TENSORS = 1, WEB_ADAPTER_RANK = 2, WEB_ADAPTER_USERS = 3, WEB_ADAPTER_BYTES = 4, WEB_ADAPTER_IS_COMPLETE = 5 };
enum { WEB_MEDIA_ID = 0, WEB_MEDIA_TOKENS = 1, WEB_MEDIA_ROWS = 2, WEB_MEDIA_TILES = 3, WEB_MEDIA_MACS = 4, WEB_MEDIA_ROWS_BYTES = 5, WEB_MEDIA_ENCODE_BYTES = 6, WEB_MEDIA_IS_READY = 7 };

enum { WEB_REQUESTS_MAX = 1024 };

_Static_assert((int64_t)WICK_STEP_IDLE == 0, "WICK_STEP_IDLE");
_Static_assert((int64_t)WICK_STEP_PROGRESS == 1, "WICK_STEP_PROGRESS");
_Static_assert((int64_t)WICK_STEP_WAIT_BYTES == 2, "WICK_STEP_WAIT_BYTES");
_Static_assert((int64_t)WICK_EVENT_TOKEN == 1, "WICK_EVENT_TOKEN");
_Static_assert((int64_t)WICK_EVENT_PREFILL == 2, "WICK_EVENT_PREFILL");
_Static_assert((int64_t)WICK_EVENT_DONE == 3, "WICK_EVENT_DONE");
_Static_assert((int64_t)WICK_EVENT_LOGITS == 4, "WICK_EVENT_LOGITS");
_Static_assert((int64_t)WICK_EVENT_CONTENT == 5, "WICK_EVENT_CONTENT");
_Static_assert((int64_t)WICK_EVENT_REASONING == 6, "WICK_EVENT_REASONING");
_Static_assert((int64_t)WICK_EVENT_CALL == 7, "WICK_EVENT_CALL");
_Static_assert((int64_t)WICK_EVENT_ARGUMENTS == 8, "WICK_EVENT_ARGUMENTS");
_Static_assert((int64_t)WICK_EVENT_CALL_BROKEN == 10, "WICK_EVENT_CALL_BROKEN");
_Static_assert((int64_t)WICK_FINISH_STOP == 1, "WICK_FINISH_STOP");
_Static_assert((int64_t)WICK_FINISH_LENGTH == 2, "WICK_FINISH_LENGTH");
_Static_assert((int64_t)WICK_FINISH_ABORT == 3, "WICK_FINISH_ABORT");
_Static_assert((int64_t)WICK_FINISH_ERROR == 4, "WICK_FINISH_ERROR");
_Static_assert((int64_t)WICK_TOKENIZE_ADD_SPECIAL == 1, "WICK_TOKENIZE_ADD_SPECIAL");
_Static_assert((int64_t)WICK_TOKENIZE_PARSE_SPECIAL == 2, "WICK_TOKENIZE_PARSE_SPECIAL");
_Static_assert((int64_t)WICK_GRAMMAR_GBNF == 1, "WICK_GRAMMAR_GBNF");
_Static_assert((int64_t)WICK_GRAMMAR_JSON_SCHEMA == 2, "WICK_GRAMMAR_JSON_SCHEMA");
_Static_assert((int64_t)WICK_GRAMMAR_REGEX == 3, "WICK_GRAMMAR_REGEX");
_Static_assert((int64_t)WICK_GRAMMAR_CHOICE == 4, "WICK_GRAMMAR_CHOICE");
_Static_assert((int64_t)WICK_KV_F16 == 0, "WICK_KV_F16");
_Static_assert((int64_t)WICK_KV_F32 == 1, "WICK_KV_F32");
_Static_assert((int64_t)WICK_KV_Q8 == 2, "WICK_KV_Q8");
_Static_assert((int64_t)WICK_KV_Q4 == 3, "WICK_KV_Q4");
_Static_assert((int64_t)WICK_E_FULL == 10, "WICK_E_FULL");
_Static_assert((int64_t)WICK_POOLING_MODEL == 0, "WICK_POOLING_MODEL");
_Static_assert((int64_t)WICK_POOLING_RANK == 5, "WICK_POOLING_RANK");
_Static_assert((int64_t)WICK_COMPLETIONS_MAX == 16, "WICK_COMPLETIONS_MAX");
_Static_assert((int64_t)WICK_PRIORITY_MIN == -100, "WICK_PRIORITY_MIN");
_Static_assert((int64_t)WICK_PRIORITY_MAX == 100, "WICK_PRIORITY_MAX");
_Static_assert((int64_t)WICK_PASSES_WAITED_MAX == 512, "WICK_PASSES_WAITED_MAX");
_Static_assert((int64_t)WEB_HELPER_STACK_BYTES == 131072, "WEB_HELPER_STACK_BYTES");

#endif
// NOLINTEND(bugprone-sizeof-expression)
