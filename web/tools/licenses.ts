import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const rule = '='.repeat(80);

/** The folder of the npm package that holds a module: ".../node_modules/svelte", ".../node_modules/@scope/name". */
const packageFolder = (module: string) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1];

function license(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((file) => /^licen[cs]e(\.md|\.txt)?$/i.test(file));
  if (!file) throw new Error(`${name} is bundled, but its package has no licence file`);
  // Vite's file goes on with the licences of its own dependencies, none of which is bundled.
  const [text] = readFileSync(join(folder, file), 'utf8').split('# Licenses of bundled dependencies');
  return `${name} ${version} (${license})\n\n${text.trim()}`;
}

/** Writes licenses.txt: the licence of every package that is bundled, and of the fonts. */
export function licenses(): Plugin {
  let root = '';
  return {
    name: 'licenses',
    apply: 'build',
    configResolved(config) {
      root = config.root;
    },
    generateBundle() {
      const folders = new Set([...this.getModuleIds()].map(packageFolder).filter((folder) => folder !== undefined));
      // Vite's own modules are virtual: its loader of chunks is in the bundle.
      folders.add(join(root, 'node_modules/vite'));
      const fonts = readFileSync(new URL('katex-fonts-license.txt', import.meta.url), 'utf8');
      const parts = [
        'The page of heed contains the following software and fonts.',
        ...[...folders].sort().map(license),
        `KaTeX fonts (OFL-1.1)\n\n${fonts.trim()}`,
      ];
      this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: `${parts.join(`\n\n${rule}\n\n`)}\n` });
    },
  };
}
