// js/base/reasoning_effort.js — the amount of reasoning, in OpenAI's words. The engine passes the nearest word that
// the chat template knows (src/template/effort.c).

export const effortNames = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
