// Fuzzes requests with images and recordings through wick.h: a text model from the folders in
// WICK_REFERENCES, a changed mmproj file, media of any size that are encoded in parts or whole, and
// a request with them. Asserts that failures are typed, that an accepted request ends once, that
// the engine continues without encoders, and that nothing leaks.
#include <string.h>

#include "api/media_strips.h"
#include "references.h"

enum {
  INPUT_MAX = 1024,
  SIDE_MAX = 96,
  SAMPLES_MAX = 1 << 14,
  MACS_MAX = 1 << 27,
  STEPS_MAX = 2000
};

static reference_list encoders, texts;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  references_read(&encoders, "WICK_REFERENCES", "mmproj-");
  references_read(&texts, "WICK_REFERENCES", "text-");
  return 0;
}

static void check(wick_status status, const wick_error *error) {
  REQUIRE(status == WICK_OK || (error->status == status && error->message[0] != '\0'));
}

static wick_engine *open_text(input *in) {
  const memory_file *file = &texts.files[next_u8(in) % texts.count].file;
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error;
  wick_config_default(&config);
  config.context_tokens = 512;
  config.media_tiles_max = next_u8(in) % 8;
  config.media_rows_max = next_u8(in) % 2 == 0 ? 0 : 1 + next_u16(in) % 512;
  config.media_like_llama_cpp = next_u8(in) & 1;
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  REQUIRE(wick_load_feed(engine, 0, 0, file->bytes, file->size_bytes, &error) == WICK_OK);
  return engine;
}

static wick_status add_strips(wick_engine *engine, input *in, const uint8_t *rgb, uint32_t width,
                              uint32_t height, uint32_t *media, wick_error *error) {
  wick_status status = engine_media_begin_image(engine, width, height, media, error);
  for (uint32_t row = 0; status == WICK_OK && row < height;) {
    const uint32_t left = height - row, wanted = 1 + next_u8(in);
    const uint32_t rows = left < wanted ? left : wanted;
    status = engine_media_feed_image(engine, *media, rgb + (size_t)row * width * 3, rows, error);
    row += rows;
  }
  return status;
}

static wick_status add_input(wick_engine *engine, input *in, uint32_t *media, wick_error *error) {
  static uint8_t rgb[SIDE_MAX * SIDE_MAX * 3];
  static float samples[SAMPLES_MAX];
  if (wick_media_has(engine, WICK_MEDIA_AUDIO) && next_u8(in) % 2 == 0) {
    const uint32_t count = next_u16(in) % SAMPLES_MAX;
    for (uint32_t i = 0; i < count; i += 64) samples[i] = (float)(int8_t)next_u8(in) / 128;
    return wick_media_add_audio(engine, samples, count, media, error);
  }
  const uint32_t width = 1 + next_u8(in) % SIDE_MAX, height = 1 + next_u8(in) % SIDE_MAX;
  for (size_t i = 0; i < sizeof rgb; i += 997) rgb[i] = (uint8_t)next_u8(in);
  return next_u8(in) % 2 == 0 ? add_strips(engine, in, rgb, width, height, media, error)
                              : wick_media_add_image(engine, rgb, width, height, media, error);
}

static wick_status encode(wick_engine *engine, uint32_t media, wick_error *error) {
  wick_media_info info;
  bool is_ready = false;
  wick_status status = wick_media_get_info(engine, media, &info, error);
  if (status == WICK_OK && info.macs > MACS_MAX) return WICK_E_FULL;  // too slow to try
  while (status == WICK_OK && !is_ready) {
    status = wick_media_step(engine, media, 0, &is_ready, error);
    check(status, error);
  }
  return status;
}

// Runs the request until it ends.
static void run_request(wick_engine *engine, wick_request *request) {
  uint32_t id, ends = 0;
  wick_error error;
  request->max_tokens = 2;
  const wick_status status = wick_request_submit(engine, request, &id, &error);
  check(status, &error);
  for (uint32_t i = 0; status == WICK_OK && ends == 0; i++) {
    REQUIRE(i < STEPS_MAX);
    wick_step_units(engine, 1);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      ends += event->kind == WICK_EVENT_DONE;
    }
  }
  REQUIRE(ends == (status == WICK_OK));
}

static void ask(wick_engine *engine, input *in) {
  uint32_t media[2] = {0, 0};
  wick_error error;
  wick_request request;
  wick_request_default(&request);
  for (int i = 0; i < 2; i++) check(add_input(engine, in, &media[i], &error), &error);
  const bool is_known = media[0] != 0 && media[1] != 0;
  if (is_known && encode(engine, media[0], &error) == WICK_OK &&
      encode(engine, media[1], &error) == WICK_OK) {
    const wick_media_prompt prompt = {.text = "Once <m> and <m>",
                                      .text_bytes = 16,
                                      .marker = "<m>",
                                      .marker_bytes = 3,
                                      .media = media,
                                      .media_count = 2};
    const wick_status status =
        wick_media_tokenize(engine, &prompt, &request.tokens, &request.token_count, &error);
    check(status, &error);
    if (status == WICK_OK) run_request(engine, &request);
  }
  for (int i = 0; i < 2; i++) wick_media_remove(engine, media[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes > INPUT_MAX || encoders.count == 0 || texts.count == 0) return 0;
  input in = {data, size_bytes};
  wick_error error;
  wick_engine *engine = open_text(&in);
  memory_file file = reference_change(&encoders.files[next_u16(&in) % encoders.count], &in);
  const wick_status status = wick_media_load_bytes(engine, file.bytes, file.size_bytes, &error);
  check(status, &error);
  if (status == WICK_OK) ask(engine, &in);
  wick_request request;
  wick_request_default(&request);
  request.text = "Once";
  request.text_bytes = 4;
  run_request(engine, &request);
  wick_engine_destroy(engine);
  file_free(&file);
  return 0;
}
