// js/worker/own_source.js — the sources that a worker reads directly.

import { ChunkSource } from '../bytes/chunk_source.js';
import { createSource } from '../bytes/model_sources.js';

/**
 * @param {import('../connection/messages.js').OwnSource} description
 * @param {(attempt: number, waitMs: number) => void} onRetry
 * @returns {import('../bytes/model_sources.js').Source}
 */
export function ownSource(description, onRetry) {
  if (description.kind === 'chunks') return new ChunkSource(description.files);
  return createSource(description, onRetry);
}
