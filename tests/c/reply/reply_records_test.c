// Records, for the replies in the shared folder's structure/toolcalls, unchanged and with bytes
// changed, removed or inserted: what the parser reads in them, and which bytes a grammar for the
// tools allows at each position. tests/c/reply/reply_records.txt has the results
// (recorded_lines.h), one line per few replies.
#include <inttypes.h>

#include "base/hash.h"
#include "grammar/machine.h"
#include "hold_rig.h"
#include "random.h"
#include "recorded_lines.h"
#include "vectors.h"

enum {
  REPLIES_A_LINE = 8,
  REPLY_BYTES_MAX = 2000,
  CHANGED_REPLIES = 6,
  ENDING_BYTES_MAX = 512,
  STEPS_BETWEEN_ROOM = 64
};

static uint64_t line_hash, random_state;

static void note(uint64_t value) { line_hash = hash_mix_u64(line_hash * 31 + value); }

static void note_text(const rig_text *text) {
  const size_t kept = text->size_bytes < RIG_TEXT_BYTES - 1 ? text->size_bytes : RIG_TEXT_BYTES - 1;
  note(text->size_bytes);
  line_hash = hash_bytes(text->bytes, kept, line_hash);
}

static void note_parsed(reply_rig *rig, const char *text, size_t size_bytes) {
  rig_parse(rig, text, size_bytes, (size_t)random_below(&random_state, 20), 7);
  note(rig->status);
  if (rig->status != WICK_OK) {
    line_hash = hash_bytes(rig->error.message, strlen(rig->error.message), line_hash);
  }
  note_text(&rig->content);
  note_text(&rig->reasoning);
  note(rig->call_count);
  for (uint32_t i = 0; i < rig->call_count && i < RIG_CALLS; i++) {
    note_text(&rig->calls[i].name);
    note_text(&rig->calls[i].id);
    note_text(&rig->calls[i].arguments);
    note(rig->calls[i].has_ended);
  }
}

// Records the allowed bytes at each position, up to the first byte that does not match.
static void note_held(grammar *grammar, const char *text, size_t size_bytes) {
  grammar_matcher matcher;
  machine *machine = grammar->machine;
  matcher_begin(grammar, &matcher);
  for (size_t i = 0; i <= size_bytes; i++) {
    uint64_t allowed[4] = {0};
    if (i % STEPS_BETWEEN_ROOM == 0) machine_make_room(machine);
    for (uint32_t byte = 0; byte < 256; byte++) {
      if (machine_step(machine, matcher.mark.state, (uint8_t)byte) == MACHINE_DEAD) continue;
      allowed[byte / 64] |= (uint64_t)1 << byte % 64;
    }
    line_hash = hash_bytes(allowed, sizeof allowed, line_hash);
    note(machine_accepts(machine, matcher.mark.state));
    if (i == size_bytes || !matcher_take_bytes(&matcher, (const uint8_t *)text + i, 1)) break;
  }
  matcher_end(&matcher);
}

// Changes, removes or inserts one byte, using bytes that are significant in some format.
static size_t change(char *text, size_t size_bytes) {
  static const char BYTES[] = "{}[]()<>|/\"',:=\\ \n\t01e-.tnfaA#`";
  const size_t at = (size_t)random_below(&random_state, size_bytes);
  const char byte = BYTES[random_below(&random_state, sizeof BYTES - 1)];
  const uint64_t how = random_below(&random_state, 3);
  if (how == 0) {
    memmove(text + at, text + at + 1, size_bytes - at - 1);
    return size_bytes - 1;
  }
  if (how == 1) memmove(text + at + 1, text + at, size_bytes - at);
  text[at] = byte;
  return size_bytes + (how == 1);
}

static void note_replies(reply_rig *rig, grammar *grammar, document_text raw) {
  static char text[REPLY_BYTES_MAX + 2];
  size_t size_bytes = raw.size_bytes < REPLY_BYTES_MAX ? raw.size_bytes : REPLY_BYTES_MAX;
  for (int i = 0; i <= CHANGED_REPLIES && size_bytes > 1; i++) {
    size_bytes = raw.size_bytes < REPLY_BYTES_MAX ? raw.size_bytes : REPLY_BYTES_MAX;
    memcpy(text, raw.bytes, size_bytes);
    for (int changes = 0; changes < (i + 1) / 2; changes++) size_bytes = change(text, size_bytes);
    note_parsed(rig, text, size_bytes);
    if (grammar != NULL && i % 2 == 0) note_held(grammar, text, size_bytes);
  }
}

static void note_case(const vectors *v, uint32_t one, uint32_t index) {
  static const char *const CHOICES[] = {"\"auto\"", "\"required\"", "\"none\""};
  static reply_rig rig;
  static char ending[ENDING_BYTES_MAX];
  char path[256];
  size_t template_bytes = 0;
  const document_text name = vectors_text(v, one, "template"),
                      prompt = vectors_text(v, one, "generation_prompt");
  const json_node *tools = vectors_node(v, document_find(&v->document, 1, "tools"));
  const char *given = (const char *)v->source + tools->at;
  const size_t given_bytes = tools->end - tools->at;
  uint8_t *template_text = NULL;
  snprintf(path, sizeof path, "vectors/templates/%.*s", (int)name.size_bytes,
           (const char *)name.bytes);
  if (name.size_bytes != 0) template_text = check_read_file(check_shared(path), &template_bytes);
  memset(ending, 0, sizeof ending);
  if (CHECK(prompt.size_bytes < sizeof ending) && prompt.size_bytes > 0) {
    memcpy(ending, prompt.bytes, prompt.size_bytes);
  }
  rig_open(&rig, (const char *)template_text, template_bytes, given, given_bytes, ending);
  if (CHECK_EQ_INT(rig.status, WICK_OK)) {
    grammar *grammar =
        open_grammar(&rig, given, given_bytes, CHOICES[index % 3], index / 3 % 2 != 0);
    note(rig.status);
    note_replies(&rig, grammar, vectors_text(v, one, "raw"));
    grammar_destroy(grammar);
  }
  rig_close(&rig);
  free(template_text);
}

TEST(parsing_and_constraints_match_the_records) {
  vectors v;
  uint32_t count = 0;
  if (!vectors_open(&v, "vectors/structure/toolcalls/cases.json")) SKIP("no shared folder");
  const uint32_t cases = document_find(&v.document, 1, "cases");
  for (uint32_t one = vectors_node(&v, cases)->first; one != 0; one = vectors_node(&v, one)->next) {
    note_case(&v, one, count++);
    if (count % REPLIES_A_LINE != 0 && vectors_node(&v, one)->next != 0) continue;
    record_line("replies up to %u: %016" PRIx64 "\n", count, line_hash);
    line_hash = random_state = count;
  }
  vectors_close(&v);
  recorded_check("reply/reply_records.txt");
}
