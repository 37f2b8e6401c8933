// component/llm_text.c — text functions of wick:llm: tokens and the chat template.
#include <stdlib.h>

#include "llm.h"

llm_result *llm_model_tokenize(llm_model *model, char *text, uint32_t text_bytes,
                               int32_t has_control) LLM_EXPORT("[method]model.tokenize");
void llm_model_tokenized(llm_result *result)
    ABI_EXPORT("cabi_post_" LLM_ENGINE "#[method]model.tokenize");
llm_result *llm_model_detokenize(llm_model *model, int32_t *tokens, uint32_t count)
    LLM_EXPORT("[method]model.detokenize");
void llm_model_detokenized(llm_result *result)
    ABI_EXPORT("cabi_post_" LLM_ENGINE "#[method]model.detokenize");
llm_result *llm_model_render(llm_model *model, char *conversation, uint32_t size_bytes)
    LLM_EXPORT("[method]model.render");
llm_result *llm_model_template(llm_model *model, char *source, uint32_t size_bytes)
    LLM_EXPORT("[method]model.set-template");

// Returns the list, which the result owns until it is freed, or the error.
static llm_result *give(wick_status status, abi_list list, const wick_error *error) {
  if (status != WICK_OK) {
    free(list.items);
    return llm_give_error(error);
  }
  llm_result *result = llm_give_result();
  result->list = list;
  return result;
}

static void free_list(llm_result *result) {
  if (!result->is_error) free(result->list.items);
}

static wick_status tokenize(llm_model *model, abi_list text, uint32_t flags, abi_list *out,
                            wick_error *error) {
  size_t count = 0;
  wick_status status =
      wick_tokenize(model->engine, text.items, text.count, flags, NULL, 0, &count, error);
  if (status != WICK_E_FULL) return status;
  *out = (abi_list){.items = calloc(count, sizeof(int32_t)), .count = (uint32_t)count};
  if (out->items == NULL) return llm_lack_memory("the tokens", error);
  return wick_tokenize(model->engine, text.items, text.count, flags, out->items, count, &count,
                       error);
}

llm_result *llm_model_tokenize(llm_model *model, char *text, uint32_t text_bytes,
                               int32_t has_control) {
  const uint32_t flags =
      WICK_TOKENIZE_ADD_SPECIAL | (has_control != 0 ? WICK_TOKENIZE_PARSE_SPECIAL : 0u);
  const abi_list from = {text, text_bytes};
  wick_error error;
  abi_list tokens = {NULL, 0};
  const wick_status status = tokenize(model, from, flags, &tokens, &error);
  llm_free(from);
  return give(status, tokens, &error);
}

void llm_model_tokenized(llm_result *result) { free_list(result); }

static wick_status detokenize(llm_model *model, abi_list tokens, abi_list *out, wick_error *error) {
  const size_t room_bytes = wick_detokenize_bytes_max(model->engine, tokens.count);
  size_t size_bytes = 0;
  out->items = room_bytes < UINT32_MAX ? malloc(room_bytes + 1) : NULL;
  if (out->items == NULL) return llm_lack_memory("the tokens", error);
  const wick_status status = wick_detokenize(model->engine, tokens.items, tokens.count, true, true,
                                             out->items, &size_bytes, error);
  out->count = (uint32_t)size_bytes;
  return status;
}

llm_result *llm_model_detokenize(llm_model *model, int32_t *tokens, uint32_t count) {
  const abi_list from = {tokens, count};
  wick_error error;
  abi_list text = {NULL, 0};
  const wick_status status = detokenize(model, from, &text, &error);
  llm_free(from);
  return give(status, text, &error);
}

void llm_model_detokenized(llm_result *result) { free_list(result); }

// Renders a conversation. The engine owns the text.
llm_result *llm_model_render(llm_model *model, char *conversation, uint32_t size_bytes) {
  wick_chat chat;
  wick_error error;
  wick_chat_text text;
  wick_chat_default(&chat);
  chat.json = conversation;
  chat.json_bytes = size_bytes;
  const wick_status status = wick_chat_render(model->engine, &chat, &text, &error);
  llm_free((abi_list){conversation, size_bytes});
  if (status != WICK_OK) return llm_give_error(&error);
  llm_result *result = llm_give_result();
  result->list = (abi_list){.items = (void *)(uintptr_t)text.text.bytes,  // it is only read
                            .count = (uint32_t)text.text.size_bytes};
  return result;
}

llm_result *llm_model_template(llm_model *model, char *source, uint32_t size_bytes) {
  wick_error error;
  const wick_status status =
      wick_chat_set_template(model->engine, size_bytes > 0 ? source : NULL, size_bytes, &error);
  llm_free((abi_list){source, size_bytes});
  return status == WICK_OK ? llm_give_result() : llm_give_error(&error);
}
