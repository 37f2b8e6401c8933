// The common parts of the pictures of bars (bars_svg.mjs) and of a curve (curve_svg.mjs).

/** @param {number} value three digits */
export const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

/** @param {string} text */
export const escapeXml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/**
 * A style sheet; grey text, which can be read on light and dark.
 * @param {string} rules of the picture
 * @param {string} dark rules of the picture on dark
 */
export const styleOf = (rules, dark) => `<style>
text { fill: #57606a } ${rules}
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } ${dark} }
</style>`;
