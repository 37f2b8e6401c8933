/** A chat model of 4.2 million parameters in Q8_0, for `createEngine({ url: modelUrl })`. */
export const modelUrl: URL;
/** The same model in Q4_0, about half the size. */
export const smallModelUrl: URL;
export default modelUrl;
