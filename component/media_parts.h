// component/media_parts.h — images and recordings in messages: parts with data URLs of PPM files,
// and with WAV files in base64.
#ifndef WICK_COMPONENT_MEDIA_PARTS_H
#define WICK_COMPONENT_MEDIA_PARTS_H

#include "base/json.h"
#include "media_jobs.h"

// Of an array of parts: is each a text, an image or a recording? `name` is the field's.
bool media_check_parts(const body *read, uint32_t content, const char *name, refusal *refused);
// Decodes the media of checked messages and gives them to the engine and the answer. False: one
// cannot be decoded or encoded; it is named.
bool media_take_parts(const server *of, const body *read, uint32_t messages, answer *to,
                      refusal *refused);
// How contents with media are written for the template: as texts with markers, or as lists of
// parts, for templates that write no text of others (SmolVLM's).
typedef enum media_form { MEDIA_AS_TEXTS, MEDIA_AS_LISTS } media_form;
// Writes the messages with a marker in place of each medium.
void media_put_messages(json_writer *json, buffer *out, const body *read, uint32_t messages,
                        const char *marker, media_form form);

#endif
