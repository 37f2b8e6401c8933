// js/base/version.js — the version of the package.

export const VERSION = '0.1.0';
