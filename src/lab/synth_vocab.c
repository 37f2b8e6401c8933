// lab/synth_vocab.c — the synthetic vocabulary.
#include "lab/synth_vocab.h"

#include <string.h>

#include "base/text.h"
#include "text/tokenizer.h"

enum { BYTES = 256, LETTERS = 26, CONTROLS = 3, PIECE_BYTES_MAX = 16 };

static const char *const controls[CONTROLS] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

static const char chat_template[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

typedef struct piece {
  char bytes[PIECE_BYTES_MAX];
  size_t size_bytes;
} piece;

// Returns the character that stands for a byte in byte-level BPE (GPT-2's bytes_to_unicode): the
// byte itself if it is printable, else the next free character starting at U+0100.
static uint32_t character_of_byte(uint32_t byte) {
  uint32_t hidden = 0;
  for (uint32_t i = 0; i <= byte; i++) {
    const bool is_seen = (i > 32 && i < 127) || (i > 160 && i != 173);
    if (i == byte) return is_seen ? byte : 256 + hidden;
    if (!is_seen) hidden++;
  }
  return 0;
}

static void append_byte(piece *to, uint32_t byte) {
  uint8_t utf8[4];
  const size_t size = utf8_encode(character_of_byte(byte), utf8);
  memcpy(to->bytes + to->size_bytes, utf8, size);
  to->size_bytes += size;
}

static void append_letter(piece *to, uint32_t index) { append_byte(to, 'a' + index % LETTERS); }

static void append_pair(piece *to, uint32_t index) {
  append_letter(to, index / LETTERS);
  append_letter(to, index);
}

// Gets the two halves of merge `index`, which are bytes or earlier merges. Merges are, in this
// order: space + letter, pairs of letters, space + letter + pair, pairs of pairs (456,976, which is
// more than any vocabulary).
static void merge_at(uint32_t index, piece *left, piece *right) {
  enum { PAIRS = LETTERS * LETTERS, WORDS = LETTERS * PAIRS };
  *left = (piece){0};
  *right = (piece){0};
  if (index < LETTERS) {
    append_byte(left, ' ');
    append_letter(right, index);
    return;
  }
  index -= LETTERS;
  if (index < PAIRS) {
    append_letter(left, index / LETTERS);
    append_letter(right, index);
    return;
  }
  index -= PAIRS;
  if (index < WORDS) {
    append_byte(left, ' ');
    append_letter(left, index / PAIRS);
    append_pair(right, index % PAIRS);
    return;
  }
  index -= WORDS;
  append_pair(left, index / PAIRS);
  append_pair(right, index % PAIRS);
}

static void add_tokens(gguf_writer *writer, uint32_t vocab) {
  gguf_writer_add_strings(writer, "tokenizer.ggml.tokens", vocab);
  for (uint32_t i = 0; i < BYTES; i++) {
    piece token = {0};
    append_byte(&token, i);
    gguf_writer_add_item(writer, token.bytes, token.size_bytes);
  }
  for (uint32_t i = 0; i < vocab - BYTES - CONTROLS; i++) {
    piece left, right;
    merge_at(i, &left, &right);
    memcpy(left.bytes + left.size_bytes, right.bytes, right.size_bytes);
    gguf_writer_add_item(writer, left.bytes, left.size_bytes + right.size_bytes);
  }
  for (int i = 0; i < CONTROLS; i++) gguf_writer_add_item(writer, controls[i], strlen(controls[i]));
}

static void add_merges(gguf_writer *writer, uint32_t vocab) {
  gguf_writer_add_strings(writer, "tokenizer.ggml.merges", vocab - BYTES - CONTROLS);
  for (uint32_t i = 0; i < vocab - BYTES - CONTROLS; i++) {
    piece left, right;
    merge_at(i, &left, &right);
    left.bytes[left.size_bytes++] = ' ';
    memcpy(left.bytes + left.size_bytes, right.bytes, right.size_bytes);
    gguf_writer_add_item(writer, left.bytes, left.size_bytes + right.size_bytes);
  }
}

// Adds the kinds of the tokens. If memory runs out, they are omitted, and readers then treat all
// tokens as normal ones.
static void add_kinds(gguf_writer *writer, uint32_t vocab, memory_gate *memory) {
  int32_t *kinds = memory_alloc_array(memory, vocab, sizeof *kinds);
  if (kinds == NULL) return;
  for (uint32_t i = 0; i < vocab; i++)
    kinds[i] = i < vocab - CONTROLS ? TOKEN_NORMAL : TOKEN_CONTROL;
  gguf_writer_add_array(writer, "tokenizer.ggml.token_type", GGUF_I32, kinds, vocab);
  memory_free(memory, kinds);
}

static void add_text(gguf_writer *writer, const char *key, const char *text) {
  gguf_writer_add_string(writer, key, text, strlen(text));
}

void synth_add_vocab(gguf_writer *writer, const synth_shape *shape, memory_gate *memory) {
  const uint32_t vocab = shape->vocab;
  add_text(writer, "tokenizer.ggml.model", "gpt2");
  add_text(writer, "tokenizer.ggml.pre", shape->pre_tokenizer);
  add_tokens(writer, vocab);
  add_kinds(writer, vocab, memory);
  add_merges(writer, vocab);
  gguf_writer_add_u32(writer, "tokenizer.ggml.bos_token_id", vocab - CONTROLS);
  gguf_writer_add_u32(writer, "tokenizer.ggml.eos_token_id", vocab - 1);
  gguf_writer_add_bool(writer, "tokenizer.ggml.add_bos_token", false);
  add_text(writer, "tokenizer.chat_template", chat_template);
}
