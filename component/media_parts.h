// component/media_parts.h — images and recordings in messages: parts with data URLs of PPM files,
// and with WAV files in base64.
#ifndef WICK_COMPONENT_MEDIA_PARTS_H
#define WICK_COMPONENT_MEDIA_PARTS_H

#include "base/json.h"
#include "body.h"

enum { MEDIA_MARKER_BYTES = 40 };

// The media of a conversation, in the order in which they appear.
typedef struct media_set {
  char marker[MEDIA_MARKER_BYTES];  // replaces each medium in the text
  uint32_t *numbers;                // [count], the engine's numbers
  uint32_t count;
} media_set;

void media_set_free(wick_engine *engine, media_set *set);  // accepts a zeroed set
// Returns the index of the first medium that is not encoded; `count` if all are encoded.
uint32_t media_set_next(const wick_engine *engine, const media_set *set);
// Checks that each part of an array is text, an image or a recording. `name` is the field's name.
bool media_check_parts(const body *read, uint32_t content, const char *name, refusal *refused);
// Whether checked messages contain an image or a recording.
bool media_is_in(const body *read, uint32_t messages);
// Decodes the media of checked messages and adds them to the engine and the set. Returns false if a
// medium cannot be decoded or encoded (the error names it), or if all media together exceed the
// context. The set then contains the media before the failure.
bool media_take_parts(wick_engine *engine, const body *read, uint32_t messages, media_set *to,
                      refusal *refused);
// How contents with media are written for the template: as strings with markers, or as lists of
// parts, for templates that ignore strings (SmolVLM's).
typedef enum media_form { MEDIA_AS_TEXTS, MEDIA_AS_LISTS } media_form;
// Writes the messages with a marker in place of each medium.
void media_put_messages(json_writer *json, buffer *out, const body *read, uint32_t messages,
                        const char *marker, media_form form);

// Sets the tokens of the request to those of the conversation, whose text contains the set's
// markers.
wick_status media_tokenize(wick_engine *engine, const wick_chat *chat, const media_set *set,
                           wick_request *request, wick_error *error);
// Whether the other media_form must be tried, because the template did not write each marker
// exactly once.
bool media_is_other_form(wick_status status, const wick_error *error);

#endif
