// component/reply_constraint.h — the reply to a conversation in JSON, as the engine's reader and
// its grammar take it: the tools that it may call and the form of its content.
#ifndef WICK_COMPONENT_REPLY_CONSTRAINT_H
#define WICK_COMPONENT_REPLY_CONSTRAINT_H

#include "body.h"
#include "buffer.h"

// `tools` is their node, or 0; `content` is the form of the content, or of kind WICK_GRAMMAR_NONE.
// Settings of wick_reply_create.
void reply_put_settings(buffer *out, const body *read, uint32_t tools, const wick_grammar *content);
// The text of a WICK_GRAMMAR_TOOLS, which has these settings, too.
void reply_put_constraint(buffer *out, const body *read, uint32_t tools,
                          const wick_grammar *content, wick_text ending);
// Whether the reply may be written without calls.
bool reply_is_optional(const body *read);

#endif
