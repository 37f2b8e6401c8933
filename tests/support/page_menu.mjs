// The menu in the chat page's header.

/** @param {import('playwright-core').Page} page @param {string} row a selector */
export async function chooseInMenu(page, row) {
  await page.locator('#open-more svg').waitFor(); // the page has started
  await page.click('#open-more');
  await page.click(row);
}

/** @param {import('playwright-core').Page} page */
export const openDeveloper = (page) => chooseInMenu(page, '#open-developer');
