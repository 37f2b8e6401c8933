// component/shape.h — writes JSON by templates of its shape.
#ifndef WICK_COMPONENT_SHAPE_H
#define WICK_COMPONENT_SHAPE_H

#include "buffer.h"
#include "wick.h"

// Writes a template: JSON, or a part of it, with ' in place of " and with these values:
//   %s  a string (const char *), null for NULL     %r  JSON (const char *)
//   %t  a string (wick_text)                       %T  JSON (wick_text)
//   %b  a string (const buffer *)                  %j  JSON (const buffer *)
//   %y  the bytes of a text as an array (wick_text)
//   %u, %U  a number (uint32_t, uint64_t)          %d, %D  a number (int32_t, int64_t)
//   %f  a number (double)                          %g  a number of float precision (double)
//   %?  true or false (int)
void shape_put(buffer *out, const char *shape, ...);

#endif
