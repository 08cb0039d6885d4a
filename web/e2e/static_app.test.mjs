// The page as static files as an app: installed, without a network, and in two versions.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { startFiles, useExplorer } from './harness.mjs';
import { follow, folderOnly, root, skip, where, words } from './static_page.mjs';

const hasThreads = !folderOnly && readdirSync(path.resolve(root, where)).some((name) => name.startsWith('threads-engine-'));
const scratch = mkdtempSync(path.join(tmpdir(), 'heed-static-app-'));
after(() => rmSync(scratch, { recursive: true }));
const session = useExplorer();

/** Waits until the service worker has every file. */
async function kept(page) {
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    if (active.state !== 'activated') await new Promise((resolve) => active.addEventListener('statechange', resolve));
  });
  const models = await page.evaluate(() => JSON.parse(document.querySelector('meta[name="heed-release"]').content).models);
  const wanted = Object.values(models).flatMap(({ folder, files }) => files.map((file) => folder + file.path));
  // waitForFunction() takes a promise for an answer.
  const all = () => page.evaluate(async (paths) => (await Promise.all(paths.map((one) => caches.match(new URL(one, location.href).href)))).every(Boolean), wanted);
  for (const end = Date.now() + 60_000; !(await all()); ) {
    assert.ok(Date.now() < end, 'every file is kept within a minute');
    await page.waitForTimeout(100);
  }
}

test('can be installed, and runs no script and asks no origin that it did not come with', { skip }, async () => {
  const page = await session.open(follow);
  const client = await page.context().newCDPSession(page);
  const { errors, data } = await client.send('Page.getAppManifest');
  assert.deepEqual(errors, []);
  const { start_url, display, icons } = JSON.parse(data);
  assert.deepEqual([start_url, display, icons.map(({ sizes }) => sizes)], ['./', 'standalone', ['any', '192x192', '512x512']]);
  const { installabilityErrors } = await client.send('Page.getInstallabilityErrors');
  // Windows of tests are private ones.
  assert.deepEqual(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito'), []);
  const refused = await page.evaluate(async () => {
    const violations = [];
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => violations.push(effectiveDirective));
    const script = document.createElement('script');
    script.textContent = 'globalThis.injected = true';
    document.head.append(script);
    const answer = await fetch('https://example.com/').then(() => 'sent', () => 'refused');
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { answer, injected: globalThis.injected ?? false, violations: violations.sort() };
  });
  assert.deepEqual(refused, { answer: 'refused', injected: false, violations: ['connect-src', 'script-src-elem'] });
  await page.context().close();
});

test('works without a network after the first visit, in a second tab too, and with the other model', { skip: folderOnly }, async () => {
  const files = await startFiles(path.resolve(root, where));
  const context = await session.browser.newContext();
  const page = await context.newPage();
  let isUp = true;
  try {
    await page.goto(`${files.address}/${follow}`);
    await words(page).first().waitFor();
    await kept(page);
    await files.stop();
    isUp = false;
    await page.reload();
    await words(page).first().waitFor();
    const second = await context.newPage();
    await second.goto(`${files.address}/#/compare?model=english&text=The+dog+chased+the+cat`);
    await second.locator('main h1').first().waitFor();
    await second.getByText('The dog chased').first().waitFor().catch(() => {});
    assert.equal(await second.getByRole('alert').count(), 0);
    await words(page).nth(1).click();
    await page.getByRole('region', { name: 'At a glance' }).getByText('attends to').waitFor();
  } finally {
    await context.close();
    if (isUp) await files.stop();
  }
});

test('computes with threads from the second visit on, and shows the same', { skip: folderOnly || (hasThreads ? false : 'the engine with threads was not built') }, async () => {
  const files = await startFiles(path.resolve(root, where));
  const context = await session.browser.newContext();
  const page = await context.newPage();
  // Of a head that the link names, so that none is looked for.
  const shown = async (before) => {
    await page.goto(`${files.address}/${before}${follow}&layer=3&head=0&position=2`);
    const sentence = page.getByRole('region', { name: 'At a glance' }).getByText('attends to').first();
    await sentence.waitFor();
    return sentence.innerText();
  };
  const state = async () => [await page.evaluate(() => crossOriginIsolated), page.workers().some((worker) => worker.url().includes('threads-engine-'))];
  try {
    const first = await shown('');
    assert.deepEqual(await state(), [false, false]);
    await kept(page);
    await page.goto('about:blank');
    assert.equal(await shown('?threads=2'), first);
    assert.deepEqual(await state(), [true, true]);
    await page.goto('about:blank');
    assert.equal(await shown('?threads=1'), first);
    assert.deepEqual(await state(), [true, false]);
  } finally {
    await context.close();
    await files.stop();
  }
});

test('changes to another version as a whole: no tab has files of both', { skip: folderOnly }, async () => {
  const folders = ['1', '2'].map((version) => {
    const folder = path.join(scratch, `version-${version}`);
    cpSync(path.resolve(root, where), folder, { recursive: true });
    const edit = (name, change) => {
      writeFileSync(path.join(folder, name), change(readFileSync(path.join(folder, name), 'utf8')));
      utimesSync(path.join(folder, name), 0, 1e9 + 60 * Number(version)); // the server tells versions apart by whole seconds
    };
    edit('index.html', (html) => html.replace('</title>', `</title><meta name="test-version" content="${version}">`));
    edit('service-worker.js', (code) => code.replace(/"version":"[^"]*"/, `"version":"test-${version}"`));
    return folder;
  });
  const versionOf = (page) => page.locator('meta[name="test-version"]').getAttribute('content');
  let files = await startFiles(folders[0]);
  const port = new URL(files.address).port;
  const context = await session.browser.newContext();
  try {
    const first = await context.newPage();
    await first.goto(`${files.address}/${follow}`);
    await words(first).first().waitFor();
    await kept(first);
    await files.stop();
    files = await startFiles(folders[1], port);
    // A second tab beside the first: both have the former version, while the newer one is loaded.
    const second = await context.newPage();
    await second.goto(`${files.address}/${follow}`);
    await words(second).first().waitFor();
    assert.equal(await versionOf(second), '1');
    await second.getByRole('alert').filter({ hasText: 'A newer version of this page is ready' }).waitFor({ timeout: 60_000 });
    await words(first).nth(1).click();
    await first.getByRole('region', { name: 'At a glance' }).getByText('attends to').waitFor();
    assert.equal(await versionOf(first), '1');
    await first.close();
    await second.close();
    const third = await context.newPage();
    await third.goto(`${files.address}/${follow}`);
    await third.waitForFunction(() => document.querySelector('meta[name="test-version"]')?.content === '2', undefined, { timeout: 30_000 });
    await words(third).first().waitFor();
  } finally {
    await context.close();
    await files.stop();
  }
});
