// Shared parts of bar charts (bars_svg.mjs) and curves (curve_svg.mjs).

/** Formats a number with three digits. @param {number} value */
export const short = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

/** @param {string} text */
export const escapeXml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/**
 * Makes a style sheet with grey text that is legible on light and dark backgrounds.
 * @param {string} rules of the chart
 * @param {string} dark rules of the chart on a dark background
 */
export const styleOf = (rules, dark) => `<style>
text { fill: #57606a } ${rules}
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } ${dark} }
</style>`;
