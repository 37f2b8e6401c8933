// examples/chat/formula_typesetting.js — converts TeX formulas to MathML with Temml, which is loaded with
// the first formula (rich_text.js).

import temml from 'temml';

/**
 * Typesets a formula. A formula that cannot be parsed is shown unchanged, in the colour of errors.
 * @param {HTMLElement} element is filled with the formula
 * @param {string} tex
 * @param {boolean} isBlock whether it is on a separate line
 */
export function typeset(element, tex, isBlock) {
  temml.render(tex, element, {
    displayMode: isBlock,
    annotate: true, // so that TeX is copied
    maxSize: [20, 20],
    maxExpand: 200,
    trust: false,
  });
}
