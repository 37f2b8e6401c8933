// reply/scan.c — validates JSON byte by byte.
#include "reply/scan.h"

#include <string.h>

#include "base/text.h"

enum {
  AT_VALUE,
  AT_FIRST_ITEM,
  AT_FIRST_KEY,
  AT_KEY,
  AT_COLON,
  AT_NEXT,
  IN_STRING,
  IN_ESCAPE,
  IN_HEX,
  IN_WORD,
  AT_DIGIT,  // after a minus sign
  IN_ZERO,
  IN_DIGITS,
  AT_FRACTION,
  IN_FRACTION,
  AT_EXPONENT,
  AT_EXPONENT_DIGIT,
  IN_EXPONENT
};

static int index_of(const char *letters, uint8_t byte) {
  for (int i = 0; letters[i] != '\0'; i++) {
    if ((uint8_t)letters[i] == byte) return i;
  }
  return -1;
}

static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

void scan_begin(json_scan *scan) { memset(scan, 0, sizeof *scan); }

static bool is_in_object(const json_scan *scan) {
  const unsigned top = scan->depth - 1u;
  return (scan->in_object[top / 8] >> top % 8 & 1) != 0;
}

static reply_step leave_value(json_scan *scan) {
  scan->state = AT_NEXT;
  return scan->depth == 0 ? STEP_DONE : STEP_MORE;
}

static reply_step open_value(json_scan *scan, bool is_object) {
  if (scan->depth == REPLY_DEPTH_MAX) return STEP_FAIL;
  const unsigned top = scan->depth++;
  const uint8_t bit = (uint8_t)(1u << top % 8);
  scan->in_object[top / 8] &= (uint8_t)~bit;
  if (is_object) scan->in_object[top / 8] |= bit;
  scan->state = is_object ? AT_FIRST_KEY : AT_FIRST_ITEM;
  return STEP_MORE;
}

static reply_step close_value(json_scan *scan) {
  scan->depth--;
  return leave_value(scan);
}

static reply_step begin_value(json_scan *scan, uint8_t byte) {
  if (byte == '{' || byte == '[') return open_value(scan, byte == '{');
  scan->is_key = false;
  scan->word = byte == 't' ? "rue" : byte == 'f' ? "alse" : byte == 'n' ? "ull" : NULL;
  if (byte == '"') {
    scan->state = IN_STRING;
  } else if (scan->word != NULL) {
    scan->state = IN_WORD;
  } else if (byte == '-') {
    scan->state = AT_DIGIT;
  } else if (is_digit(byte)) {
    scan->state = byte == '0' ? IN_ZERO : IN_DIGITS;
  } else {
    return STEP_FAIL;
  }
  return STEP_MORE;
}

static reply_step step_in_string(json_scan *scan, uint8_t byte) {
  if (scan->state == IN_ESCAPE) {
    scan->digits = 0;
    scan->state = byte == 'u' ? IN_HEX : IN_STRING;
    return byte == 'u' || index_of("\"\\/bfnrt", byte) >= 0 ? STEP_MORE : STEP_FAIL;
  }
  if (scan->state == IN_HEX) {
    if (++scan->digits == 4) scan->state = IN_STRING;
    return text_hex_value(byte) < 16 ? STEP_MORE : STEP_FAIL;
  }
  if (byte == '\\') scan->state = IN_ESCAPE;
  if (byte != '"') return byte < 0x20 ? STEP_FAIL : STEP_MORE;
  if (!scan->is_key) return leave_value(scan);
  scan->state = AT_COLON;
  return STEP_MORE;
}

static reply_step step_in_word(json_scan *scan, uint8_t byte) {
  if ((uint8_t)*scan->word != byte) return STEP_FAIL;
  return *++scan->word == '\0' ? leave_value(scan) : STEP_MORE;
}

// Returns the next state for a character in a number; 0 if the number has ended, or must not end
// here.
static uint8_t next_in_number(uint8_t state, uint8_t byte) {
  const bool is_exponent = (byte | 32) == 'e';
  if (state == AT_DIGIT) return byte == '0' ? IN_ZERO : is_digit(byte) ? IN_DIGITS : 0;
  if (state == IN_ZERO || state == IN_DIGITS) {
    if (byte == '.') return AT_FRACTION;
    if (is_exponent) return AT_EXPONENT;
    return state == IN_DIGITS && is_digit(byte) ? IN_DIGITS : 0;
  }
  if (state == AT_FRACTION || state == IN_FRACTION) {
    if (is_exponent && state == IN_FRACTION) return AT_EXPONENT;
    return is_digit(byte) ? IN_FRACTION : 0;
  }
  if (state == AT_EXPONENT && (byte == '+' || byte == '-')) return AT_EXPONENT_DIGIT;
  return is_digit(byte) ? IN_EXPONENT : 0;
}

static bool may_end_number(uint8_t state) {
  return state == IN_ZERO || state == IN_DIGITS || state == IN_FRACTION || state == IN_EXPONENT;
}

static reply_step step_between(json_scan *scan, uint8_t byte) {
  if (json_is_space(byte)) return STEP_MORE;
  switch (scan->state) {
    case AT_VALUE:
      return begin_value(scan, byte);
    case AT_FIRST_ITEM:
      return byte == ']' ? close_value(scan) : begin_value(scan, byte);
    case AT_FIRST_KEY:
    case AT_KEY:
      if (byte == '}' && scan->state == AT_FIRST_KEY) return close_value(scan);
      scan->is_key = true;
      scan->state = IN_STRING;
      return byte == '"' ? STEP_MORE : STEP_FAIL;
    case AT_COLON:
      scan->state = AT_VALUE;
      return byte == ':' ? STEP_MORE : STEP_FAIL;
    default:
      break;
  }
  if (scan->depth == 0) return STEP_FAIL;
  const bool is_object = is_in_object(scan);
  if (byte == (is_object ? '}' : ']')) return close_value(scan);
  scan->state = is_object ? AT_KEY : AT_VALUE;
  return byte == ',' ? STEP_MORE : STEP_FAIL;
}

reply_step scan_step(json_scan *scan, uint8_t byte) {
  if (scan->state < IN_STRING) return step_between(scan, byte);
  if (scan->state <= IN_HEX) return step_in_string(scan, byte);
  if (scan->state == IN_WORD) return step_in_word(scan, byte);
  const uint8_t next = next_in_number(scan->state, byte);
  if (next != 0) {
    scan->state = next;
    return STEP_MORE;
  }
  if (!may_end_number(scan->state)) return STEP_FAIL;
  scan->state = AT_NEXT;
  return scan->depth == 0 ? STEP_BEFORE : step_between(scan, byte);
}

bool scan_holds(const uint8_t *text, size_t size_bytes, uint8_t *first) {
  json_scan scan;
  scan_begin(&scan);
  size_t at = 0;
  while (at < size_bytes && json_is_space(text[at])) at++;
  *first = at < size_bytes ? text[at] : 0;
  reply_step step = STEP_MORE;
  for (; at < size_bytes && step == STEP_MORE; at++) step = scan_step(&scan, text[at]);
  if (step == STEP_MORE) return size_bytes > 0 && scan.depth == 0 && may_end_number(scan.state);
  if (step == STEP_BEFORE) at--;
  while (at < size_bytes && json_is_space(text[at])) at++;
  return step != STEP_FAIL && at == size_bytes;
}

// ---- strings ----

enum { PLAIN, ESCAPED, HEX_0, HEX_1, HEX_2, HEX_3, LOW_BACKSLASH, LOW_U };

static reply_step take_code(json_unescape *string, uint8_t out[4], size_t *count) {
  const uint32_t code = string->code;
  string->state = PLAIN;
  if (string->high != 0) {
    if (code < 0xdc00 || code > 0xdfff) return STEP_FAIL;
    *count = utf8_encode(0x10000 + ((string->high - 0xd800) << 10) + (code - 0xdc00), out);
    string->high = 0;
    return STEP_MORE;
  }
  if (code >= 0xd800 && code < 0xdc00) {
    string->high = code;
    string->state = LOW_BACKSLASH;
    return STEP_MORE;
  }
  *count = utf8_encode(code, out);
  return *count > 0 ? STEP_MORE : STEP_FAIL;
}

static reply_step take_hex(json_unescape *string, uint8_t byte, uint8_t out[4], size_t *count) {
  const uint32_t digit = text_hex_value(byte);
  if (digit == 16) return STEP_FAIL;
  string->code = string->code * 16 + digit;
  return string->state++ == HEX_3 ? take_code(string, out, count) : STEP_MORE;
}

reply_step unescape_step(json_unescape *string, uint8_t byte, uint8_t out[4], size_t *count) {
  static const char NAMES[] = "\"\\/bfnrt", CODES[] = "\"\\/\b\f\n\r\t";
  *count = 0;
  if (string->state == PLAIN) {
    if (byte == '"') return STEP_DONE;
    if (byte < 0x20) return STEP_FAIL;
    string->state = byte == '\\' ? ESCAPED : PLAIN;
    if (byte != '\\') out[(*count)++] = byte;
    return STEP_MORE;
  }
  if (string->state >= HEX_0 && string->state <= HEX_3) return take_hex(string, byte, out, count);
  if (string->state == LOW_BACKSLASH) {
    string->state = LOW_U;
    return byte == '\\' ? STEP_MORE : STEP_FAIL;
  }
  if (byte == 'u') {
    string->state = HEX_0;
    string->code = 0;
    return STEP_MORE;
  }
  const int name = string->state == LOW_U ? -1 : index_of(NAMES, byte);
  if (name < 0) return STEP_FAIL;
  string->state = PLAIN;
  out[(*count)++] = (uint8_t)CODES[name];
  return STEP_MORE;
}

size_t escape_byte(uint8_t byte, char out[6]) {
  static const char NAMES[] = "\"\\\b\f\n\r\t", LETTERS[] = "\"\\bfnrt", HEX[] = "0123456789abcdef";
  const int name = index_of(NAMES, byte);
  if (name < 0 && byte >= 0x20) {
    out[0] = (char)byte;
    return 1;
  }
  out[0] = '\\';
  out[1] = name < 0 ? 'u' : LETTERS[name];
  if (name >= 0) return 2;
  out[2] = out[3] = '0';
  out[4] = HEX[byte >> 4];
  out[5] = HEX[byte & 15];
  return 6;
}
