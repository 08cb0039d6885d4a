import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';
import { licenses } from './tools/licenses';
import { preload } from './tools/preload';
import { serviceWorker, staticPage } from './tools/static_build';

// `npm run dev` shows the page with the answers of a running `heed explore`, which takes no other origin's requests.
const server = process.env.HEED_SERVER ?? 'http://127.0.0.1:8080';

/** Every browser that runs this page reads woff2: KaTeX's other font formats stay out. */
const onlyWoff2: Plugin = {
  name: 'only-woff2',
  enforce: 'pre',
  transform: (code, id) =>
    id.includes('katex.min.css') ? code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[^"]*"\)/g, '') : undefined,
};

/** Libraries have chunks of their own, which change only with the library. */
const libraries = ['svelte', 'd3', 'katex', 'leaflet', 'uplot'];
/** What the modes share is one chunk, which comes with the first script, after the common styles; formulas load KaTeX when they are shown. */
const isShared = (module: string) => /\/src\/(components\/|lib\/|app\.css)/.test(module) && !module.endsWith('/typeset.ts');
const chunkOf = (module: string) => libraries.find((name) => module.includes(`/node_modules/${name}`)) ?? (isShared(module) ? 'shared' : undefined);

/** `npm run build:static`: files for any web server, whose names have the hash of their content, so that two versions stay apart. */
const isStatic = process.argv.includes('--mode') && process.argv.includes('static');
const names = isStatic ? '[name]-[hash]' : '[name]';

export default defineConfig({
  base: isStatic ? './' : '/',
  plugins: [onlyWoff2, svelte(), licenses(), preload('modes/learn/Learn.svelte'), ...(isStatic ? [staticPage()] : [])],
  // Names stay as written, so that a small change in the source is a small change in the built page.
  esbuild: { minifyIdentifiers: false },
  build: {
    // Committed and embedded in the binary, whose build needs no Node.js.
    outDir: isStatic ? 'dist-static' : 'built',
    target: 'es2022',
    // The server's Content-Security-Policy allows no data: fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
    rollupOptions: {
      output: {
        entryFileNames: ({ name }) => (name === serviceWorker ? `${name}.js` : `assets/${names}.js`),
        chunkFileNames: `assets/${names}.js`,
        assetFileNames: `assets/${names}[extname]`,
        minifyInternalExports: false,
        manualChunks: chunkOf,
      },
    },
  },
  worker: { format: 'es', rollupOptions: { output: { entryFileNames: `assets/${names}.js`, chunkFileNames: `assets/${names}.js` } } },
  server: {
    host: '127.0.0.1',
    proxy: Object.fromEntries(['/api', '/health', '/props', '/v1'].map((path) => [path, { target: server, changeOrigin: true, headers: { Origin: server } }])),
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
