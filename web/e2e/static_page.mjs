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
