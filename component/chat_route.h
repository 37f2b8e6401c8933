// component/chat_route.h — the messages and tools of a conversation in the body of a request.
#ifndef WICK_COMPONENT_CHAT_ROUTE_H
#define WICK_COMPONENT_CHAT_ROUTE_H

#include "media_parts.h"

// Checks the field `messages`.
bool messages_check(const body *read, refusal *refused);
// Checks the field `tools`, whose node is `list`; 0: it is missing.
bool messages_check_tools(const body *read, uint32_t list, refusal *refused);
// Writes the object that the template reads: checked messages and template variables. `tools` 0: no
// tools. `media` NULL: messages contain only text.
void messages_put(buffer *out, const body *read, uint32_t tools, const media_set *media,
                  media_form form);

#endif
