// cli/media_image.c — reads the images of media.h: PPM files and raw pixels.
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/media.h"
#include "media/formats.h"

static exit_code take_pixels(const char *path, const input_text *file, media_part *part) {
  size_t at = 0;
  wick_error error;
  if (part->width == 0 && part->height == 0 &&
      !ppm_parse((const uint8_t *)file->bytes, file->size_bytes, &part->width, &part->height,
                 &at)) {
    report("%s: not a PPM file (P6, at most 255)", path);
    return EXIT_USAGE;
  }
  if (image_check(part->width, part->height, &error) != WICK_OK) return report_error(path, &error);
  const uint64_t size_bytes = (uint64_t)part->width * part->height * 3;
  if (at > file->size_bytes || file->size_bytes - at < size_bytes) {
    report("%s: ends before the last pixel of an image of %u x %u", path, (unsigned)part->width,
           (unsigned)part->height);
    return EXIT_USAGE;
  }
  part->rgb = malloc((size_t)size_bytes);
  if (part->rgb == NULL) {
    report("out of memory for an image");
    return EXIT_MEMORY;
  }
  memcpy(part->rgb, file->bytes + at, (size_t)size_bytes);
  return EXIT_DONE;
}

exit_code media_image_read(const char *path, media_part *part) {
  input_text file;
  exit_code code = media_check_size(path);
  if (code == EXIT_DONE) code = input_read(NULL, path, "", &file);
  if (code != EXIT_DONE) return code;
  code = take_pixels(path, &file, part);
  input_free(&file);
  return code;
}
