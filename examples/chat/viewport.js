// examples/chat/viewport.js — keeps the page above the screen keyboard of iOS, which covers a page instead of resizing it.

/** The page is as high as what is visible of it. */
function fit() {
  const view = window.visualViewport;
  if (!view) return;
  const { style } = document.documentElement;
  const isCovered = view.scale <= 1.01 && view.height < innerHeight - 1; // not zoomed in
  if (!isCovered) return void style.removeProperty('--view-height');
  style.setProperty('--view-height', `${view.height}px`);
  scrollTo(0, 0); // the browser has scrolled the field into view
}

export function startViewport() {
  window.visualViewport?.addEventListener('resize', fit);
}
