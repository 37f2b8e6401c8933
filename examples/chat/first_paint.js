// examples/chat/first_paint.js — runs before the first paint: sets the chosen theme, and whether the list is closed.

try {
  const { dataset } = document.documentElement;
  const { theme } = JSON.parse(localStorage.getItem('wick-chat-settings') ?? '{}');
  if (theme === 'light' || theme === 'dark') dataset.theme = theme;
  if (localStorage.getItem('wick-chat-list') === 'closed') dataset.list = 'closed';
} catch {
  // no storage, or invalid content
}
