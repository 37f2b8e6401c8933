// reply/scan.h — JSON (RFC 8259) that arrives byte by byte: checks whether it is still valid, and
// decodes its strings.
#ifndef WICK_REPLY_SCAN_H
#define WICK_REPLY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "reply/reply.h"

typedef enum reply_step {
  STEP_MORE,    // the byte belongs to the value
  STEP_DONE,    // the byte is the value's last one
  STEP_BEFORE,  // the value ended before the byte
  STEP_FAIL     // the byte is invalid
} reply_step;

typedef struct json_scan {
  uint8_t state, digits;
  bool is_key;
  uint8_t depth;
  const char *word;
  uint8_t in_object[(REPLY_DEPTH_MAX + 7) / 8];
} json_scan;

void scan_begin(json_scan *scan);
// Processes a byte of the value. Returns STEP_BEFORE only after a number.
reply_step scan_step(json_scan *scan, uint8_t byte);
// Whether text is one JSON value, which white space may surround. `first` is its first byte.
bool scan_holds(const uint8_t *text, size_t size_bytes, uint8_t *first);

// Decodes a string, starting at the byte after its opening quotation mark.
typedef struct json_unescape {
  uint8_t state;
  uint32_t code, high;
} json_unescape;

// Decodes a byte of the string: writes 0 to 4 bytes. Returns STEP_DONE at the closing quotation
// mark.
reply_step unescape_step(json_unescape *string, uint8_t byte, uint8_t out[4], size_t *count);

// Writes a byte as in a JSON string: 1 to 6 bytes.
size_t escape_byte(uint8_t byte, char out[6]);

#endif
