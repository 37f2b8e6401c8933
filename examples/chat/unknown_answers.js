// examples/chat/unknown_answers.js — recognises answers in which a small model says that it does
// not know the answer.

const IGNORANT =
  /\b(do not|don['’]t|cannot|can['’]t) (really )?(know|say|tell|answer|help)|\bnot sure\b|\bI only (know|answer)\b/i;

/** @param {string} answer */
export const knowsNothing = (answer) => IGNORANT.test(answer);
