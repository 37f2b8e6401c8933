// cli/media_chat.h — conversations whose first question has images and recordings. They are
// inserted where the chat template puts parts like {"type": "image"}, or before the question if the
// template does not support such parts.
#ifndef WICK_CLI_MEDIA_CHAT_H
#define WICK_CLI_MEDIA_CHAT_H

#include <stdlib.h>

#include "base/json.h"
#include "cli/media_request.h"

enum { MEDIA_MARKER_TOKENS_MAX = 32 };

typedef struct media_chat {
  media_input *input;  // NULL: only text
  bool takes_parts;    // message contents are lists of parts
  bool has_asked;      // there is a user message
  // the tokens that the template writes for a part, by media_kind
  int32_t markers[2][MEDIA_MARKER_TOKENS_MAX];
  size_t marker_counts[2];
  int32_t *probe;  // [probe_count] tokens of a conversation with a different first question
  size_t probe_count;
} media_chat;

// ---- media_chat.c: only with images ----

exit_code media_chat_learn(media_chat *chat, media_input *input, wick_engine *engine,
                           const char *system);
void media_chat_put_parts(media_chat *chat, json_writer *json, const char *role, const char *text,
                          size_t text_bytes);
exit_code media_chat_follow(media_chat *chat, wick_engine *engine, const wick_request *request,
                            generation_on_token on_token, void *context, generation *done);

// ---- with images or without ----

// Determines what the engine's template writes. If `input` is NULL, this and the other functions
// handle a conversation with only text. Functions that return an exit code report errors.
static inline exit_code media_chat_begin(media_chat *chat, media_input *input, wick_engine *engine,
                                         const char *system) {
  return input == NULL ? EXIT_DONE : media_chat_learn(chat, input, engine, system);
}
static inline void media_chat_end(media_chat *chat) { free(chat->probe); }  // may be all zeros
// Whether the messages must be passed to the template unchanged (wick_chat.keeps_arguments).
static inline bool media_chat_takes_parts(const media_chat *chat) { return chat->takes_parts; }
// Writes the member "content" of a message. The images are in the user's first message.
static inline void media_chat_put(media_chat *chat, json_writer *json, const char *role,
                                  const char *text, size_t text_bytes) {
  if (chat->takes_parts) {
    media_chat_put_parts(chat, json, role, text, text_bytes);
  } else {
    json_string(json, "content", text, text_bytes);
  }
}
// Like generation_run, but inserts the images between the tokens of the conversation.
static inline exit_code media_chat_run(media_chat *chat, wick_engine *engine,
                                       const wick_request *request, generation_on_token on_token,
                                       void *context, generation *done) {
  return chat->input == NULL ? generation_run(engine, request, on_token, context, done)
                             : media_chat_follow(chat, engine, request, on_token, context, done);
}

#endif
