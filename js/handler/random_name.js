// js/handler/random_name.js — names of answers and requests that nobody else has.

import { randomWord } from '../base/random.js';

/** @returns {string} 128 random bits; crypto.randomUUID is for secure places alone */
export const randomName = () =>
  Array.from({ length: 4 }, () => randomWord().toString(36).padStart(7, '0')).join('');
