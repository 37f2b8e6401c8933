// component/llm_media.c — images and recordings of wick:llm: the encoders of an mmproj file, and
// the media of conversations.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm.h"

LLM_IMPORT("[future-new-1][method]model.load-media") abi_ends media_loaded_create(void);
LLM_IMPORT("[async-lower][future-write-1][method]model.load-media")
int32_t media_loaded_write(abi_handle future, const llm_result *result);
LLM_IMPORT("[future-drop-writable-1][method]model.load-media")
void media_loaded_drop(abi_handle future);
LLM_IMPORT("[task-return][method]model.load-media") void media_return(abi_handle future);

int32_t model_load_media(llm_model *model, abi_handle file)
    ABI_EXPORT("[async-lift]" LLM_ENGINE "#[method]model.load-media");
int32_t model_load_media_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#[method]model.load-media");

// ---- the file ----

enum { PIECE_BYTES = 1 << 18 };

typedef struct media_loading {
  llm_model *model;
  abi_handle set, file, loaded;
  bool is_reading, is_closing;
  buffer bytes;  // the whole file, whose directory contains the offsets of weights
  llm_result result;
  wick_error error;  // the error that the result points to
} media_loading;

static int32_t close_task(media_loading *mine) {
  set_join(mine->loaded, 0);
  media_loaded_drop(mine->loaded);
  set_drop(mine->set);
  llm_model_leave(mine->model);
  free(mine);
  return CODE_EXIT;
}

static int32_t end(media_loading *mine) {
  wick_engine *engine = mine->model->engine;
  wick_status status = WICK_E_NOMEM;
  set_join(mine->file, 0);
  file_drop(mine->file);
  if (mine->bytes.has_failed) {
    llm_lack_memory("the mmproj file", &mine->error);
  } else {
    status = wick_media_load_bytes(engine, mine->bytes.bytes, mine->bytes.size_bytes, &mine->error);
  }
  buffer_free(&mine->bytes);
  mine->result.is_error = status != WICK_OK;
  if (status != WICK_OK) llm_put_error(&mine->result.error, &mine->error);
  mine->is_closing = true;
  const int32_t written = media_loaded_write(mine->loaded, &mine->result);
  return written == STATUS_BLOCKED ? wait_for(mine->set) : close_task(mine);
}

// Takes the bytes that were read; returns how reading continues.
static int32_t take(media_loading *mine, int32_t status) {
  mine->is_reading = false;
  buffer_grow(&mine->bytes, (uint32_t)status >> STATE_BITS);
  return (status & STATE_MASK) == STATE_COMPLETED ? CODE_YIELD : end(mine);
}

static int32_t go_on(media_loading *mine) {
  if (mine->is_reading || mine->is_closing) return wait_for(mine->set);
  char *room = buffer_reserve(&mine->bytes, PIECE_BYTES);
  if (room == NULL) return end(mine);
  const int32_t status = file_read(mine->file, room, PIECE_BYTES);
  mine->is_reading = status == STATUS_BLOCKED;
  return mine->is_reading ? wait_for(mine->set) : take(mine, status);
}

int32_t model_load_media(llm_model *model, abi_handle file) {
  media_loading *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  model->users++;
  mine->model = model;
  mine->set = set_create();
  mine->file = file;
  set_join(file, mine->set);
  const abi_ends loaded = media_loaded_create();
  mine->loaded = writable_of(loaded);
  set_join(mine->loaded, mine->set);
  context_set(mine);
  media_return(readable_of(loaded));
  return go_on(mine);
}

int32_t model_load_media_event(int32_t event, abi_handle waitable, int32_t code) {
  media_loading *mine = context_get();
  if (event == EVENT_FUTURE_WRITE && waitable == mine->loaded) return close_task(mine);
  if (event == EVENT_STREAM_READ && waitable == mine->file) return take(mine, code);
  return go_on(mine);
}

// ---- conversations ----

// Converts a refusal to an error with the same message.
static wick_status refuse_status(const refusal *refused, wick_error *error) {
  static const struct {
    const char *code;
    wick_status status;
  } CODES[] = {{"nomem", WICK_E_NOMEM},
               {"unsupported_value", WICK_E_UNSUPPORTED},
               {"context_length_exceeded", WICK_E_FULL}};
  wick_status status = refused->status >= 500 ? WICK_E_FORMAT : WICK_E_ARG;
  for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
    if (strcmp(refused->code, CODES[i].code) == 0) status = CODES[i].status;
  }
  *error = (wick_error){.status = status, .offset_bytes = WICK_NO_OFFSET};
  snprintf(error->message, sizeof error->message, "conversation: %.*s",
           (int)sizeof error->message - 16, refused->message);
  return status;
}

// Copies the conversation to terminated memory for `body_read`.
static bool copy_terminated(abi_list conversation, buffer *out, wick_error *error) {
  buffer_put(out, conversation.items, conversation.count);
  buffer_put(out, "", 1);
  if (out->has_failed) llm_lack_memory("the conversation", error);
  return !out->has_failed;
}

// Creates a marker that the conversation does not contain. If the conversation contains the marker
// in an escaped form, it is rejected later because of the additional marker.
static void make_marker(const buffer *json, media_set *set) {
  for (uint32_t number = 0;; number++) {
    snprintf(set->marker, sizeof set->marker, "<media-%u>", (unsigned)number);
    if (strstr(json->bytes, set->marker) == NULL) return;
  }
}

static bool check_parts(const body *read, uint32_t messages, refusal *refused) {
  BODY_EACH(read, message, messages) {
    const uint32_t content = body_find(read, message, "content");
    char name[REFUSAL_PARAM_BYTES];
    snprintf(name, sizeof name, "messages[%u].content", (unsigned)body_node(read, message)->index);
    if (body_node(read, content)->kind == JSON_ARRAY &&
        !media_check_parts(read, content, name, refused)) {
      return false;
    }
  }
  return true;
}

static void put_conversation(buffer *out, const body *read, const media_set *set, media_form form) {
  json_writer json;
  json_begin(&json, buffer_put, out);
  json_open(&json, NULL, '{');
  BODY_EACH(read, node, BODY_ROOT) {
    if (text_is(body_node(read, node)->key, "messages")) continue;
    json_member(&json, (const char *)body_node(read, node)->key.bytes);
    body_put_source(read, node, out);
  }
  media_put_messages(&json, out, read, body_field(read, "messages"), set->marker, form);
  json_close(&json, '{');
}

static wick_status take_media(wick_engine *engine, const buffer *json, const body *read,
                              llm_media *media, wick_error *error) {
  const uint32_t messages = body_field(read, "messages");
  refusal refused = {0};
  if (!media_is_in(read, messages)) return WICK_OK;
  make_marker(json, &media->set);
  if (!check_parts(read, messages, &refused) ||
      !media_take_parts(engine, read, messages, &media->set, &refused)) {
    return refuse_status(&refused, error);
  }
  bool has_failed = false;
  for (int form = MEDIA_AS_TEXTS; form <= MEDIA_AS_LISTS; form++) {
    put_conversation(&media->forms[form], read, &media->set, (media_form)form);
    has_failed = has_failed || media->forms[form].has_failed;
  }
  return has_failed ? llm_lack_memory("the conversation", error) : WICK_OK;
}

void llm_media_free(wick_engine *engine, llm_media *media) {
  media_set_free(engine, &media->set);
  for (int form = MEDIA_AS_TEXTS; form <= MEDIA_AS_LISTS; form++) buffer_free(&media->forms[form]);
}

wick_status llm_media_take(wick_engine *engine, abi_list conversation, llm_media *media,
                           wick_error *error) {
  buffer json = {0};
  body read;
  refusal refused;
  wick_status status = WICK_E_NOMEM;
  if (copy_terminated(conversation, &json, error)) {
    // JSON errors are reported when the conversation is rendered
    status = body_read(&read, json.bytes, json.size_bytes - 1, &refused)
                 ? take_media(engine, &json, &read, media, error)
                 : WICK_OK;
    body_end(&read);
  }
  buffer_free(&json);
  if (status != WICK_OK) llm_media_free(engine, media);
  return status;
}

wick_status llm_media_tokenize(wick_engine *engine, const llm_media *media, wick_chat *chat,
                               wick_request *request, wick_error *error) {
  wick_status status = WICK_OK;
  for (int form = MEDIA_AS_TEXTS; form <= MEDIA_AS_LISTS; form++) {
    chat->json = media->forms[form].bytes;
    chat->json_bytes = media->forms[form].size_bytes;
    status = media_tokenize(engine, chat, &media->set, request, error);
    if (!media_is_other_form(status, error)) break;
  }
  return status;
}

wick_status llm_media_step(wick_engine *engine, const llm_media *media, bool *is_ready,
                           wick_error *error) {
  const media_set *set = &media->set;
  const uint32_t next = media_set_next(engine, set);
  *is_ready = next == set->count;
  bool is_encoded;
  return *is_ready ? WICK_OK : wick_media_step(engine, set->numbers[next], 0, &is_encoded, error);
}
