// Engines with the encoders of vectors/vision, for image and audio tests through wick.h.
#ifndef WICK_TESTS_MEDIA_ENGINES_H
#define WICK_TESTS_MEDIA_ENGINES_H

#include "media_rig.h"
#include "media_vectors.h"

static inline wick_status media_load(wick_engine *engine, const vectors *v, uint32_t type,
                                     wick_error *error) {
  size_t size_bytes;
  uint8_t *bytes = media_read_file(vectors_text(v, type, "mmproj"), &size_bytes);
  const wick_status status = wick_media_load_bytes(engine, bytes, size_bytes, error);
  free(bytes);
  return status;
}

static inline wick_engine *media_open_text(const vectors *v, uint32_t type) {
  static const media_setup SETUP = {512, 2, 1024, WICK_KV_F32};
  fixture_file file = {0};
  file.bytes = media_read_file(vectors_text(v, type, "text_model"), &file.size_bytes);
  wick_engine *engine = media_engine(&file, &SETUP);
  free(file.bytes);
  if (engine != NULL) engine->config.media_like_llama_cpp = true;  // like the reference
  return engine;
}

static inline wick_engine *media_open_type(const vectors *v, uint32_t type) {
  wick_error error = {0};
  wick_engine *engine = media_open_text(v, type);
  if (engine != NULL && CHECK_EQ_INT(media_load(engine, v, type, &error), WICK_OK)) return engine;
  CHECK_EQ_STR(error.message, "");
  wick_engine_destroy(engine);
  return NULL;
}

static inline void media_encode(wick_engine *engine, uint32_t media) {
  wick_error error = {0};
  bool is_ready = false;
  wick_status status = WICK_OK;
  while (status == WICK_OK && !is_ready) {
    status = wick_media_step(engine, media, 0, &is_ready, &error);
  }
  CHECK_EQ_STR(error.message, "");
  CHECK(is_ready);
}

#endif
