// js/base/reasoning_effort.js — how much a model should reason, in OpenAI's words and as chat templates know it.

/** OpenAI's efforts, and those of templates that come nearest. */
const efforts = {
  none: undefined,
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

export const effortNames = Object.keys(efforts);

/**
 * @param {string | null | undefined} effort one of `effortNames`; undefined: as the template has it
 * @returns {{enable_thinking?: boolean, reasoning_effort?: string}} variables of the chat template
 */
export function effortVariables(effort) {
  if (effort === undefined || effort === null) return {};
  const known = efforts[/** @type {keyof typeof efforts} */ (effort)];
  return known ? { enable_thinking: true, reasoning_effort: known } : { enable_thinking: false };
}
