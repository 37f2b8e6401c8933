// js/handler/random_name.js — unique names for responses and requests.

import { randomWord } from '../base/random.js';

/** @returns {string} 128 random bits; crypto.randomUUID exists only in secure contexts */
export const randomName = () =>
  Array.from({ length: 4 }, () => randomWord().toString(36).padStart(7, '0')).join('');
