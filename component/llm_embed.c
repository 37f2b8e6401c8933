// component/llm_embed.c — `embed` of wick:llm. The engine embeds the texts of one call at a time,
// so other calls wait for their turn.
#include <stdlib.h>
#include <string.h>

#include "llm.h"

#define EMBED "[method]model.embed"
LLM_IMPORT("[future-new-0]" EMBED) abi_ends vectors_create(void);
LLM_IMPORT("[async-lower][future-write-0]" EMBED)
int32_t vectors_write(abi_handle future, const llm_result *result);
LLM_IMPORT("[future-drop-writable-0]" EMBED) void vectors_drop(abi_handle future);
LLM_IMPORT("[task-return]" EMBED) void embed_return(abi_handle future);

int32_t embed(llm_model *model, abi_list *texts, uint32_t count, uint32_t dimensions,
              int32_t normalizes) ABI_EXPORT("[async-lift]" LLM_ENGINE "#[method]model.embed");
int32_t embed_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#[method]model.embed");

typedef struct embedding {
  llm_model *model;
  abi_list texts;  // of strings
  uint32_t dimensions;
  bool normalizes, has_begun, is_closing;
  abi_handle set, vectors;
  llm_result result;
  wick_error error;  // the error that the result points to
} embedding;

static int32_t close_task(embedding *mine) {
  if (mine->has_begun) {
    wick_embed_end(mine->model->engine);
    mine->model->is_embedding = false;
  }
  if (!mine->result.is_error) llm_free(mine->result.list);
  abi_free_lists(mine->texts);
  set_join(mine->vectors, 0);
  vectors_drop(mine->vectors);
  set_drop(mine->set);
  llm_model_leave(mine->model);
  free(mine);
  return CODE_EXIT;
}

// Reports the result.
static int32_t end(embedding *mine) {
  mine->is_closing = true;
  const int32_t status = vectors_write(mine->vectors, &mine->result);
  return status == STATUS_BLOCKED ? wait_for(mine->set) : close_task(mine);
}

static int32_t fail(embedding *mine, const wick_error *error) {
  mine->error = *error;
  mine->result = (llm_result){.is_error = 1};
  llm_put_error(&mine->result.error, &mine->error);
  return end(mine);
}

static int32_t lack_memory(embedding *mine) {
  wick_error error;
  llm_lack_memory("the vectors", &error);
  return fail(mine, &error);
}

static wick_status begin(embedding *mine, wick_error *error) {
  const uint32_t count = mine->texts.count;
  const abi_list *from = mine->texts.items;
  wick_embed_text *texts = calloc(count + 1, sizeof *texts);
  if (texts == NULL) return llm_lack_memory("the texts", error);
  for (uint32_t i = 0; i < count; i++) {
    texts[i] = (wick_embed_text){.text = from[i].items, .text_bytes = from[i].count};
  }
  wick_embed_request request;
  wick_embed_default(&request);
  request.texts = texts;
  request.text_count = count;
  request.dimensions = mine->dimensions;
  request.normalizes = mine->normalizes;
  const wick_status status = wick_embed(mine->model->engine, &request, error);
  free(texts);
  mine->has_begun = mine->model->is_embedding = status == WICK_OK;
  return status;
}

// Passes the vectors to the caller. The engine owns them until the task ends.
static int32_t give(embedding *mine) {
  const uint32_t count = mine->texts.count;
  abi_list *vectors = calloc(count, sizeof *vectors);
  if (vectors == NULL) return lack_memory(mine);
  for (uint32_t i = 0; i < count; i++) {
    wick_vectors of;
    if (!wick_embed_get(mine->model->engine, i, &of)) continue;
    vectors[i] = (abi_list){.items = (void *)(uintptr_t)of.values, .count = of.rows * of.width};
  }
  mine->result.list = (abi_list){.items = vectors, .count = count};
  return end(mine);
}

static int32_t go_on(embedding *mine) {
  wick_error error;
  wick_step_result result = WICK_STEP_PROGRESS;
  if (!mine->has_begun && mine->model->is_embedding) return CODE_YIELD;
  if (!mine->has_begun) {
    return begin(mine, &error) == WICK_OK ? CODE_YIELD : fail(mine, &error);
  }
  if (wick_embed_step(mine->model->engine, 0, &result, &error) != WICK_OK) {
    return fail(mine, &error);
  }
  return result == WICK_STEP_IDLE ? give(mine) : CODE_YIELD;
}

int32_t embed(llm_model *model, abi_list *texts, uint32_t count, uint32_t dimensions,
              int32_t normalizes) {
  embedding *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  model->users++;
  *mine = (embedding){.model = model,
                      .texts = {texts, count},
                      .dimensions = dimensions,
                      .normalizes = normalizes != 0};
  mine->set = set_create();
  const abi_ends vectors = vectors_create();
  mine->vectors = writable_of(vectors);
  set_join(mine->vectors, mine->set);
  context_set(mine);
  embed_return(readable_of(vectors));
  return CODE_YIELD;
}

int32_t embed_event(int32_t event, abi_handle waitable, int32_t code) {
  embedding *mine = context_get();
  (void)code;
  if (event == EVENT_FUTURE_WRITE && waitable == mine->vectors) return close_task(mine);
  return mine->is_closing ? wait_for(mine->set) : go_on(mine);
}
