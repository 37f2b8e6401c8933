// examples/models/index.js — `wick-llm-demo-model`: URLs of the model's files, for createEngine({url}).

/** 4.2 million parameters in Q8_0. */
export const modelUrl = new URL('./wick-4.2m-q8_0.gguf', import.meta.url);
/** The same model in Q4_0, about half the size. */
export const smallModelUrl = new URL('./wick-4.2m-q4_0.gguf', import.meta.url);

export default modelUrl;
