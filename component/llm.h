// component/llm.h — the typed interface wick:llm (wit/llm.wit) over the engine. A long call is a
// task. Each turn of a task returns the events to wait for, as in http_p3.c; a task that has
// nothing to send lets its model work for all tasks and yields. Nothing is imported from the host:
// llm_wasi.c replaces WASI.
#ifndef WICK_COMPONENT_LLM_H
#define WICK_COMPONENT_LLM_H

#include "abi.h"
#include "buffer.h"
#include "media_parts.h"
#include "wick.h"

#define LLM_ENGINE "wick:llm/engine@0.2.0"
#define LLM_EXPORT(name) ABI_EXPORT(LLM_ENGINE "#" name)
#define LLM_IMPORT(name) ABI_IMPORT("[export]" LLM_ENGINE, name)

typedef struct llm_task llm_task;

// A model. It exists until its handle is dropped and no session or task uses it.
typedef struct llm_model {
  wick_engine *engine;
  uint32_t users;
  llm_task *generations;  // in progress
  bool is_embedding;      // one task at a time
} llm_model;

typedef struct llm_session {
  llm_model *model;
  uint32_t id;
} llm_session;

void llm_model_leave(llm_model *model);

// ---- the memory layout of values ----

typedef struct llm_error {  // the variant `error`
  uint8_t code;             // wick_status, less 1
  _Alignas(8) abi_list message;
  abi_list setting;
  uint8_t has_offset;
  uint64_t offset_bytes;
} llm_error;

typedef struct llm_ending {  // the record `ending`
  uint8_t finish;
  uint32_t tokens_prompt, tokens_cached, tokens_out;
} llm_ending;

typedef struct llm_result {
  uint8_t is_error;
  union {
    _Alignas(8) llm_error error;
    abi_handle handle;
    uint32_t number;
    abi_list list;
    llm_ending ending;
  };
} llm_result;

_Static_assert(sizeof(llm_error) == 40 && sizeof(llm_result) == 48, "as in the canonical ABI");

// Converts an error. The result points into `from`.
void llm_put_error(llm_error *out, const wick_error *from);
// Returns the result of a synchronous call, which is valid until the next call.
llm_result *llm_give_error(const wick_error *from);
// Returns WICK_E_NOMEM, with the error "Out of memory for WHAT".
wick_status llm_lack_memory(const char *what, wick_error *error);
llm_result *llm_give_result(void);
void llm_free(abi_list list);

// ---- tasks ----

// A file's byte stream, which several functions accept.
LLM_IMPORT("[async-lower][stream-read-0]load")
int32_t file_read(abi_handle stream, void *bytes, size_t size_bytes);
LLM_IMPORT("[stream-drop-readable-0]load") void file_drop(abi_handle stream);

// ---- images and recordings (llm_media.c) ----

// The media of a conversation, and the conversation with markers in each form.
typedef struct llm_media {
  media_set set;
  buffer forms[MEDIA_AS_LISTS + 1];
} llm_media;

void llm_media_free(wick_engine *engine, llm_media *media);  // accepts a zeroed set
// Adds the media of a conversation, if there are any, to the engine and the set. A prompt whose
// media alone exceed the context is rejected. After an error, nothing needs to be freed.
wick_status llm_media_take(wick_engine *engine, abi_list conversation, llm_media *media,
                           wick_error *error);
// Sets the tokens of the request to those of a conversation with media. Sets `chat` to the
// conversation with markers.
wick_status llm_media_tokenize(wick_engine *engine, const llm_media *media, wick_chat *chat,
                               wick_request *request, wick_error *error);
// Runs a slice of encoding. Sets *is_ready once everything is encoded.
wick_status llm_media_step(wick_engine *engine, const llm_media *media, bool *is_ready,
                           wick_error *error);

// ---- generations ----

// The flattened result of a function that begins a generation: the readable ends of stream and
// future, or an error's code, message, setting and offset.
typedef void llm_returned(int32_t is_error, intptr_t stream_or_code, intptr_t future_or_message,
                          intptr_t message_bytes, intptr_t setting, intptr_t setting_bytes,
                          intptr_t has_offset, int64_t offset_bytes);

typedef struct llm_asked llm_asked;

typedef struct llm_started {
  llm_model *model;
  uint32_t session, request;
  bool has_parts;    // whether the text is a reply to a conversation, as JSON parts
  llm_media media;   // of the conversation
  llm_asked *asked;  // submitted once the media are encoded; NULL: already submitted
} llm_started;

// Submits the conversation that waited for its media, and frees it.
wick_status llm_request_submit(llm_started *started, wick_error *error);
// Frees a request without submitting it.
void llm_request_drop(llm_started *started);

// Starts the task of a request and returns its stream and its future.
int32_t llm_generation_begin(const llm_started *started, llm_returned *give);
int32_t llm_generation_event(int32_t event, abi_handle waitable, int32_t code);

// Ends the request on a session and closes the session. Returns false if no request runs on it.
bool llm_close_after_request(const llm_session *session);

#endif
