// examples/chat/formula_typesetting.js — formulas in TeX as MathML, by Temml, which is loaded with
// the first formula (rich_text.js).

import temml from 'temml';

/**
 * A formula that cannot be parsed stays unchanged, in the colour of errors.
 * @param {HTMLElement} element is filled with the formula
 * @param {string} tex
 * @param {boolean} isBlock on a separate line
 */
export function typeset(element, tex, isBlock) {
  temml.render(tex, element, {
    displayMode: isBlock,
    annotate: true, // so that copying gives TeX
    maxSize: [20, 20],
    maxExpand: 200,
    trust: false,
  });
}
