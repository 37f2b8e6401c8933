// js/sources.js — what `wick-llm` loads when the page reads a model's bytes itself, not its worker.

export { HttpSource } from './bytes/http_source.js';
export { BlobSource, createSource, StreamSource } from './bytes/model_sources.js';
