// Checks code quoted in documents: a fenced block right below a line that ends with a
// file name in backticks and a colon quotes that file. Each of its lines must be in the file,
// in this order; a line "..." means that lines are left out.

/** A line that ends with a file name in backticks and a colon, then a fenced block. */
const quotes = /`([\w./-]+\.\w+)`:\n+```\w*\n([\s\S]*?)^```$/gm;

/**
 * @param {string} document
 * @param {(path: string) => string | undefined} read returns the text of a file, if it exists
 * @returns {{quotes: number, faults: string[]}} the number of quotes, and their errors
 */
export function checkQuotes(document, read) {
  const found = [...document.matchAll(quotes)];
  const faults = found.flatMap(([, path, code]) => {
    const text = read(path);
    if (text === undefined) return [`quotes ${path}, which does not exist`];
    const lines = text.split('\n');
    let next = 0;
    for (const line of code.split('\n')) {
      if (line.trim() === '' || line.trim() === '...') continue;
      const at = lines.indexOf(line, next);
      if (at < 0) return [`quotes a line that ${path} does not contain: ${line}`];
      next = at + 1;
    }
    return [];
  });
  return { quotes: found.length, faults };
}
