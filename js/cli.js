// js/cli.js — placeholder
