// examples/chat/formula_typesetting.js — formulas in TeX as MathML, by Temml. It comes when the first formula does (rich_text.js).

import temml from 'temml';

/**
 * A formula that cannot be read stays as it was written, in the colour of what is wrong.
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
