// model/convolution.c — see convolution.h.
#include "model/convolution.h"

#include "base/checked.h"
#include "model/segments.h"

// Computes units of KERNEL_CONV_CHANNELS channels, each for all tokens in order.
static void convolve(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_convolution *conv = context;
  const uint32_t end = last * KERNEL_CONV_CHANNELS;
  segment_walk walk = segments_begin(conv->pass, conv->state_offset_bytes);
  state_segment segment;
  (void)thread;
  while (segments_next(&walk, &segment)) {
    float *rows = conv->rows + (size_t)segment.first * conv->stride;
    const kernel_conv run = {.tokens = segment.count,
                             .channels = conv->channels,
                             .width = conv->taps,
                             .weight = conv->filter,
                             .bias = conv->bias,
                             .state_in = segment.from,
                             .state_out = segment.to,
                             .x = rows,
                             .y = rows,
                             .x_stride = conv->stride,
                             .y_stride = conv->stride};
    conv->pass->kernels->conv(&run, first * KERNEL_CONV_CHANNELS,
                              end < conv->channels ? end : conv->channels);
  }
}

void convolution_run(const model_convolution *convolution) {
  const uint32_t units = ceil_div_u32(convolution->channels, KERNEL_CONV_CHANNELS);
  thread_pool_for(convolution->pass->threads, units, convolve, (void *)convolution);
}
