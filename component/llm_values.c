// component/llm_values.c — results and errors of wick:llm.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm.h"

static abi_list text_of(const char *text) {
  // readers of a list do not write to it
  return (abi_list){.items = (void *)(uintptr_t)text, .count = (uint32_t)strlen(text)};
}

void llm_put_error(llm_error *out, const wick_error *from) {
  *out = (llm_error){
      .code = (uint8_t)(from->status - 1),
      .message = text_of(from->message),
      .setting = text_of(wick_subject_name(from->subject)),
      .has_offset = from->offset_bytes != WICK_NO_OFFSET,
      .offset_bytes = from->offset_bytes != WICK_NO_OFFSET ? from->offset_bytes : 0,
  };
}

llm_result *llm_give_result(void) {
  static llm_result result;
  result = (llm_result){0};
  return &result;
}

llm_result *llm_give_error(const wick_error *from) {
  static wick_error failure;
  failure = *from;
  llm_result *result = llm_give_result();
  result->is_error = 1;
  llm_put_error(&result->error, &failure);
  return result;
}

wick_status llm_lack_memory(const char *what, wick_error *error) {
  *error = (wick_error){.status = WICK_E_NOMEM, .offset_bytes = WICK_NO_OFFSET};
  snprintf(error->message, sizeof error->message, "Out of memory for %s", what);
  return WICK_E_NOMEM;
}

void llm_free(abi_list list) {
  if (list.count > 0) free(list.items);
}
