// What the tests of the page as static files share. They run with HEED_STATIC alone (tools/run_e2e.mjs --static).
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const where = process.env.HEED_STATIC;
export const skip = where ? false : 'needs the page as static files: HEED_STATIC';
export const folderOnly = skip || (where.startsWith('http:') ? 'needs a folder of static files' : false);
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

export const sentence = 'Late one evening, a fluffy blue hare';
export const follow = `#/follow?text=${encodeURIComponent(sentence)}`;
export const words = (page) => page.getByRole('region', { name: 'At a glance' }).locator('.tokens > button');

export const menu = (page) => page.getByRole('button', { name: /^Model: / });
export const panel = (page) => page.getByRole('group', { name: 'Models' });

/** Chooses files of a model in the list of models. */
export async function choose(page, files) {
  await menu(page).click();
  await panel(page).getByLabel('Files of a model').setInputFiles(files);
}

/** Drops files, or a folder, on the page, as a reader does. */
export async function drop(page, files) {
  if (process.env.FIREFOX) return choose(page, files); // its protocol drops no files
  const client = await page.context().newCDPSession(page);
  for (const type of ['dragEnter', 'dragOver', 'drop']) await client.send('Input.dispatchDragEvent', { type, x: 300, y: 300, data: { items: [], files, dragOperationsMask: 1 } });
}
