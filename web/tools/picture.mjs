// Takes the page's picture for the README with the embedded model.
//
//   node tools/picture.mjs [FILE]     [../docs/pictures/explorer.png]; the server is that of e2e/harness.mjs
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser, startServer } from '../e2e/harness.mjs';

const file = process.argv[2] ?? path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../docs/pictures/explorer.png');
const server = await startServer();
const browser = await startBrowser();
const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, reducedMotion: 'reduce' });
const page = await context.newPage();
await page.goto(`${server.address}/#/follow?text=${encodeURIComponent('Late one evening, a fluffy blue hare')}&layer=4&head=1`);
await page.locator('.said .figure').first().waitFor();
await page.waitForLoadState('networkidle');
await page.screenshot({ path: file });
await browser.close();
await server.stop();
