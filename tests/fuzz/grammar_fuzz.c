// Fuzzes constraints: any GBNF, JSON schema, regular expression, list of choices or set of tools,
// with any text. Properties: each call returns a grammar or a typed error and frees everything;
// text is accepted as a whole if it is accepted byte by byte, and a recompiled grammar accepts the
// same text; rejected text leaves the state unchanged; if only one byte may follow, it is accepted
// and all others are rejected.
#include <stdint.h>
#include <string.h>

#include "grammar/grammar.h"
#include "platform/platform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES_MAX = 64 << 20, KINDS = 5, TEXT_BYTES_MAX = 512, ONLY_BYTES_MAX = 64 };

static void require(bool condition) {
  if (!condition) __builtin_trap();
}

typedef struct fuzz_input {
  wick_grammar wanted;
  uint32_t fail_at_call;  // 0: none
  const uint8_t *text;
  size_t text_bytes;
} fuzz_input;

// Input: {a byte for the kind and the failing allocation, the source, 0, the text}.
static fuzz_input split_input(const uint8_t *data, size_t size) {
  fuzz_input input = {.text = data + size};
  const uint8_t *source = data + 1, *border = memchr(source, 0, size - 1);
  input.wanted = (wick_grammar){.kind = (wick_grammar_kind)(1 + data[0] % KINDS),
                                .text = (const char *)source,
                                .text_bytes = size - 1,
                                .any_spelling = (data[0] & 64) != 0};
  if (data[0] >= 192) input.fail_at_call = 1u + data[0] % 32;
  if (border == NULL) return input;
  input.wanted.text_bytes = (size_t)(border - source);
  input.text = border + 1;
  input.text_bytes = size - 2 - input.wanted.text_bytes;
  if (input.text_bytes > TEXT_BYTES_MAX) input.text_bytes = TEXT_BYTES_MAX;
  return input;
}

static grammar *compile(memory_gate *memory, const fuzz_input *input) {
  grammar *made = NULL;
  wick_error error = {0};
  memory_init(memory, MEMORY_BYTES_MAX, platform_alloc, platform_free);
  memory->fail_at_call = input->fail_at_call;
  const wick_status status = grammar_create(memory, NULL, &input->wanted, &made, &error);
  if (status != WICK_OK) {
    require(made == NULL && error.status == status && error.message[0] != '\0');
    require(memory->blocks_now == 0);
  }
  return made;
}

static void check_only_bytes(grammar_matcher *matcher) {
  uint8_t only[ONLY_BYTES_MAX];
  grammar_matcher ahead;
  const size_t count = matcher_only_bytes(matcher, only, sizeof only);
  require(count <= sizeof only);
  if (count == 0) return;
  require(!matcher_accepts(matcher));
  const uint8_t other = only[0] ^ 1;
  require(!matcher_take_bytes(matcher, &other, 1));
  matcher_copy(matcher, &ahead);
  require(matcher_take_bytes(&ahead, only, count));
  matcher_end(&ahead);
}

// Feeds the text byte by byte and returns the number of bytes accepted.
static size_t walk(grammar *made, const fuzz_input *input, bool *accepts) {
  grammar_matcher matcher;
  size_t taken = 0;
  matcher_begin(made, &matcher);
  while (taken < input->text_bytes) {
    const bool before = matcher_accepts(&matcher);
    check_only_bytes(&matcher);
    if (!matcher_take_bytes(&matcher, input->text + taken, 1)) {
      require(matcher_accepts(&matcher) == before);
      break;
    }
    taken++;
  }
  *accepts = matcher_accepts(&matcher);
  matcher_end(&matcher);
  return taken;
}

static void check_whole(grammar *made, const fuzz_input *input, size_t taken, bool accepts) {
  grammar_matcher matcher;
  matcher_begin(made, &matcher);
  require(matcher_take_bytes(&matcher, input->text, taken));
  require(matcher_accepts(&matcher) == accepts);
  if (taken < input->text_bytes) {
    require(!matcher_take_bytes(&matcher, input->text + taken, input->text_bytes - taken));
    require(matcher_accepts(&matcher) == accepts);
  }
  matcher_end(&matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  memory_gate memory, again_memory;
  const fuzz_input input = split_input(data, size);
  grammar *made = compile(&memory, &input);
  if (made == NULL) return 0;
  if (input.fail_at_call == 0) {
    bool accepts, accepts_again;
    const size_t taken = walk(made, &input, &accepts);
    check_whole(made, &input, taken, accepts);
    grammar *again = compile(&again_memory, &input);
    require(again != NULL);
    require(walk(again, &input, &accepts_again) == taken && accepts_again == accepts);
    grammar_destroy(again);
    require(again_memory.blocks_now == 0);
  }
  grammar_destroy(made);
  require(memory.blocks_now == 0);
  return 0;
}
