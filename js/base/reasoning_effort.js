// js/base/reasoning_effort.js — the reasoning effort, with OpenAI's names. The engine passes the
// nearest value that the chat template supports (src/template/effort.c).

export const effortNames = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
