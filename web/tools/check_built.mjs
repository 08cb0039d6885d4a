// Builds the page into a temporary folder and fails where a file of built/ differs.
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

function filesIn(folder) {
  const names = readdirSync(folder, { recursive: true }).map(String);
  return names.filter((name) => statSync(path.join(folder, name)).isFile());
}

/** One line for each file that differs. */
function differences(committed, fresh) {
  const [old, now] = [new Set(filesIn(committed)), new Set(filesIn(fresh))];
  const missing = [...now].filter((name) => !old.has(name)).map((name) => `missing: ${name}`);
  const extra = [...old].filter((name) => !now.has(name)).map((name) => `no longer built: ${name}`);
  const changed = [...now]
    .filter((name) => old.has(name) && !readFileSync(path.join(committed, name)).equals(readFileSync(path.join(fresh, name))))
    .map((name) => `different: ${name}`);
  return [...missing, ...extra, ...changed].sort();
}

const fresh = mkdtempSync(path.join(tmpdir(), 'heed-page-'));
try {
  await build({ root, logLevel: 'error', build: { outDir: fresh, emptyOutDir: true } });
  const found = differences(path.join(root, 'built'), fresh);
  if (found.length > 0) {
    console.error(`web/built differs from what web/ builds:\n  ${found.join('\n  ')}\nRun "make page" and commit web/built.`);
    process.exitCode = 1;
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
