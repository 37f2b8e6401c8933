// component/llm_request.c — `generate` and `chat` of wick:llm: checks and submits a guest's
// request.
#include <stdlib.h>

#include "llm.h"

// The parameters of both functions. They are in memory, because there are too many for the
// canonical ABI to pass individually.
struct llm_asked {
  void *self;     // a model or a session
  abi_list text;  // the prompt, or the conversation
  struct {        // the record `options`
    uint32_t max_tokens;
    float temperature;
    uint32_t top_k;
    float top_p, min_p, repeat_penalty;
    _Alignas(8) uint64_t seed;
    bool has_control;
    abi_list stops;  // of strings
    abi_list salt;
    uint8_t form;  // the enum `constraint-kind`, as wick_grammar_kind
    abi_list form_text;
  } options;
};

_Static_assert(sizeof(llm_asked) == 80, "as in the canonical ABI");

static void free_asked(llm_asked *what) {
  llm_free(what->text);
  abi_free_lists(what->options.stops);
  llm_free(what->options.salt);
  llm_free(what->options.form_text);
  free(what);
}

static void set_sampling(const llm_asked *what, wick_sampling *sampling) {
  sampling->temperature = what->options.temperature;
  sampling->top_k = what->options.top_k;
  sampling->top_p = what->options.top_p;
  sampling->min_p = what->options.min_p;
  sampling->repeat_penalty = what->options.repeat_penalty;
  sampling->seed = what->options.seed;
}

// Sets the common settings of a prompt and a conversation, except for the stop strings.
static void set_common(const llm_asked *what, uint32_t session, wick_request *request) {
  wick_request_default(request);
  set_sampling(what, &request->sampling);
  request->session = session;
  request->max_tokens = what->options.max_tokens;
  if (session == 0 && what->options.salt.count > 0) {
    request->salt = what->options.salt.items;
    request->salt_bytes = what->options.salt.count;
  }
}

static wick_status submit(llm_model *model, const llm_asked *what, wick_request *request,
                          uint32_t *id, wick_error *error) {
  const uint32_t count = what->options.stops.count;
  const abi_list *stops = what->options.stops.items;
  const char **texts = calloc(count + 1, sizeof *texts);
  size_t *sizes = calloc(count + 1, sizeof *sizes);
  wick_status status;
  if (texts == NULL || sizes == NULL) {
    status = llm_lack_memory("the stop strings", error);
  } else {
    for (uint32_t i = 0; i < count; i++) texts[i] = stops[i].items, sizes[i] = stops[i].count;
    request->stops = texts;
    request->stop_bytes = sizes;
    request->stop_count = count;
    status = wick_request_submit(model->engine, request, id, error);
  }
  free(texts);
  free(sizes);
  return status;
}

static wick_grammar form_of(const llm_asked *what) {
  return (wick_grammar){.kind = (wick_grammar_kind)what->options.form,
                        .text = what->options.form_text.items,
                        .text_bytes = what->options.form_text.count};
}

static wick_status submit_prompt(const llm_asked *what, llm_started *started, wick_error *error) {
  wick_request request;
  const wick_grammar form = form_of(what);
  set_common(what, started->session, &request);
  request.text = what->text.items;
  request.text_bytes = what->text.count;
  request.tokenize_flags =
      WICK_TOKENIZE_ADD_SPECIAL | (what->options.has_control ? WICK_TOKENIZE_PARSE_SPECIAL : 0u);
  if (form.kind != WICK_GRAMMAR_NONE) request.grammar = &form;
  return submit(started->model, what, &request, &started->request, error);
}

// Submits a conversation whose media are encoded.
static wick_status submit_ready(const llm_asked *what, llm_started *started, wick_error *error) {
  wick_request request;
  const wick_grammar form = form_of(what);
  wick_conversation conversation = {
      .chat = {.json = what->text.items, .json_bytes = what->text.count}};
  wick_status status = WICK_OK;
  set_common(what, started->session, &request);
  request.conversation = &conversation;
  if (form.kind != WICK_GRAMMAR_NONE) request.grammar = &form;
  if (started->media.set.count > 0) {
    status = llm_media_tokenize(started->model->engine, &started->media, &conversation.chat,
                                &request, error);
  }
  return status == WICK_OK ? submit(started->model, what, &request, &started->request, error)
                           : status;
}

wick_status llm_request_submit(llm_started *started, wick_error *error) {
  const wick_status status = submit_ready(started->asked, started, error);
  llm_request_drop(started);
  return status;
}

void llm_request_drop(llm_started *started) {
  free_asked(started->asked);
  llm_media_free(started->model->engine, &started->media);
  started->asked = NULL;
}

static wick_status submit_chat(const llm_asked *what, llm_started *started, wick_error *error) {
  const wick_status status =
      llm_media_take(started->model->engine, what->text, &started->media, error);
  const bool waits = status == WICK_OK && started->media.set.count > 0;
  started->has_parts = true;
  return waits || status != WICK_OK ? status : submit_ready(what, started, error);
}

static void return_error(llm_returned *give, const wick_error *error) {
  llm_error failure;
  llm_put_error(&failure, error);
  give(1, failure.code, (intptr_t)failure.message.items, (intptr_t)failure.message.count,
       (intptr_t)failure.setting.items, (intptr_t)failure.setting.count, failure.has_offset,
       (int64_t)failure.offset_bytes);
}

typedef wick_status submitter(const llm_asked *what, llm_started *started, wick_error *error);

static int32_t begin(llm_asked *what, llm_started started, submitter *submit_it,
                     llm_returned *give) {
  wick_error error;
  const wick_status status = submit_it(what, &started, &error);
  if (started.media.set.count > 0) {
    llm_free(what->text);  // including all bytes of its media
    what->text = (abi_list){0};
    started.asked = what;
  } else {
    free_asked(what);
  }
  if (status == WICK_OK) return llm_generation_begin(&started, give);
  return_error(give, &error);
  return CODE_EXIT;
}

// ---- exports ----

#define FUNCTION(call, name)                                                            \
  LLM_IMPORT("[task-return][method]" name) llm_returned call##_return;                  \
  int32_t call(llm_asked *what) ABI_EXPORT("[async-lift]" LLM_ENGINE "#[method]" name); \
  int32_t call##_event(int32_t event, abi_handle waitable, int32_t code)                \
      ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#[method]" name);                 \
  int32_t call##_event(int32_t event, abi_handle waitable, int32_t code) {              \
    return llm_generation_event(event, waitable, code);                                 \
  }

FUNCTION(model_generate, "model.generate")
FUNCTION(model_chat, "model.chat")
FUNCTION(session_generate, "session.generate")

int32_t model_generate(llm_asked *what) {
  return begin(what, (llm_started){.model = what->self}, submit_prompt, model_generate_return);
}

int32_t model_chat(llm_asked *what) {
  return begin(what, (llm_started){.model = what->self}, submit_chat, model_chat_return);
}

int32_t session_generate(llm_asked *what) {
  const llm_session *session = what->self;
  return begin(what, (llm_started){.model = session->model, .session = session->id}, submit_prompt,
               session_generate_return);
}
