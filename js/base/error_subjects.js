// js/base/error_subjects.js — maps the subject of an engine's error (include/wick.h, wick_subject)
// to the corresponding option of this package.

import { subjects } from './option_table.js';

/**
 * Adds the option's name to the engine's message. The C name stays in the message, because chat.completions uses
 * the same names. Example: "top_p is 2" becomes "top_p is 2 (option topP)".
 * @param {string} message
 * @param {number} number of the error's subject
 * @returns {string}
 */
export function nameOption(message, number) {
  const [subject = 'none', option] = subjects[number] ?? [];
  const isNamed = option === undefined || (option === subject && message.includes(option));
  if (isNamed) return message;
  return `${message} (${option.includes(',') ? 'options' : 'option'} ${option})`;
}

/** @param {number} number of a subject @returns {string | undefined} the option, or several */
export function optionOf(number) {
  return subjects[number]?.[1];
}

/** @param {number} number of a subject @returns {string} */
export const subjectName = (number) => subjects[number]?.[0] ?? 'none';
