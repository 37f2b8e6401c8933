// js/sources.js — loaded by `wick-llm` when the page, not its worker, reads a model's bytes.

export { HttpSource } from './bytes/http_source.js';
export { BlobSource, createSource, StreamSource } from './bytes/model_sources.js';
