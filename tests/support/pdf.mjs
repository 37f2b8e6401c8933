// Small PDFs for tests.

/**
 * Creates a PDF with a line of text on each page; an empty line results in a page without text.
 * @param {string[]} lines
 * @param {string} [trailer] additional trailer entries
 */
export function pdfOf(lines, trailer = '') {
  const kids = lines.map((_, index) => `${4 + 2 * index} 0 R`).join(' ');
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    `<</Type/Pages/Kids[${kids}]/Count ${lines.length}>>`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
  ];
  for (const [index, line] of lines.entries()) {
    const content = line === '' ? '' : `BT /F1 20 Tf 40 100 Td (${line}) Tj ET`;
    const page = `<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents ${5 + 2 * index} 0 R`;
    objects.push(`${page}/Resources<</Font<</F1 3 0 R>>>>>>`);
    objects.push(`<</Length ${content.length}>>\nstream\n${content}\nendstream`);
  }
  let text = '%PDF-1.4\n';
  const offsets = objects.map((body, index) => {
    const offset = text.length;
    text += `${index + 1} 0 obj\n${body}\nendobj\n`;
    return offset;
  });
  const rows = offsets.map((one) => `${String(one).padStart(10, '0')} 00000 n \n`).join('');
  const count = objects.length + 1;
  const table = `xref\n0 ${count}\n0000000000 65535 f \n${rows}`;
  const id = '<00112233445566778899aabbccddeeff>';
  return `${text}${table}trailer\n<</Size ${count}/Root 1 0 R/ID[${id}${id}]${trailer}>>\nstartxref\n${text.length}\n%%EOF`;
}
