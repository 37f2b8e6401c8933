// examples/chat/file_text.js — the text of a file: of a text file, or of a PDF, whose reader is loaded with the first one.

import { textOf } from './blocks.js';
import { beginsWith } from './file_type.js';

const PDF_BYTES_MAX = 100e6;

/** The progress of slow files is reported at this interval. */
const REPORT_MS = 1000;

/**
 * Reports that a file is being read, and how far a slow one has been read.
 * @param {string} name
 * @param {(words: string) => void} say
 * @param {AbortSignal} signal ends the reading
 * @returns {(page: number, pages: number) => void} to be called for each page of a PDF
 */
export function reportReading(name, say, signal) {
  let reportedAt = performance.now();
  say(`Reading ${name} …`);
  return (page, pages) => {
    signal.throwIfAborted();
    if (performance.now() - reportedAt < REPORT_MS) return;
    reportedAt = performance.now();
    say(`${name}: reading page ${page} of ${pages}`);
  };
}

/**
 * @param {File} file
 * @param {(page: number, pages: number) => void} [onPage] called for each page of a PDF
 * @returns {Promise<{text: string} | {refusal: string}>}
 */
export async function readText(file, onPage) {
  if (await beginsWith(file, '%PDF-')) {
    if (file.size > PDF_BYTES_MAX) return { refusal: 'the PDF is larger than 100 MB' };
    const library = await import('./pdfs.js').catch(() => undefined);
    if (!library) return { refusal: 'the PDF reader could not be loaded' };
    const bytes = new Uint8Array(await file.arrayBuffer());
    return library.textOfPdf(bytes, onPage);
  }
  const text = await textOf(file);
  return text === undefined
    ? { refusal: 'not a model, a PDF, an image, a recording or a text file of at most 1 MB' }
    : { text };
}
