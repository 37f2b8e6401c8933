// js/pipeline.js — the exports of `wick-llm/pipeline`.

export { pipeline } from './pipeline/pipeline.js';
export { cos_sim, Tensor } from './pipeline/tensor.js';
export { InterruptableStoppingCriteria, TextStreamer } from './pipeline/text_streamer.js';
