// What differs in the build of static files: where the API is, the entry, the policy, and the app's description.

import { fileURLToPath } from 'node:url';
import type { HtmlTagDescriptor, Plugin } from 'vite';
import { iconPng } from './icon_png';

/** The entry of the service worker, which keeps its name: browsers look for a new version there. */
export const serviceWorker = 'service-worker';

const sources = fileURLToPath(new URL('../src/', import.meta.url));

/** No other origin but the hub of models, and that only for files that the reader asks for. */
export const policy = [
  "default-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'",
  "connect-src 'self' https://huggingface.co https://*.huggingface.co https://*.hf.co",
  "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:", "object-src 'none'", "base-uri 'none'", "form-action 'none'",
].join('; ');

const manifest = {
  name: 'heed: inside a transformer',
  short_name: 'heed',
  description: 'Explore a real transformer: every number from a prompt to the next word.',
  start_url: './',
  scope: './',
  display: 'standalone',
  background_color: '#fbfaf6',
  theme_color: '#3a3f9e',
  icons: [
    { src: 'icon.svg', sizes: 'any', type: 'image/svg+xml' },
    { src: 'icon-192.png', sizes: '192x192', type: 'image/png' },
    { src: 'icon-512.png', sizes: '512x512', type: 'image/png' },
  ],
};

export function staticPage(): Plugin {
  return {
    name: 'static-page',
    enforce: 'pre',
    config: () => ({ build: { rollupOptions: { input: { index: fileURLToPath(new URL('../index.html', import.meta.url)), [serviceWorker]: `${sources}static/service_worker.ts` } } } }),
    async resolveId(source, importer, options) {
      if (!/(^|\/)platform$/.test(source)) return undefined;
      const found = await this.resolve(source, importer, { ...options, skipSelf: true });
      return found?.id === `${sources}lib/platform.ts` ? `${sources}static/platform.ts` : found;
    },
    transformIndexHtml: {
      order: 'pre',
      handler(html) {
        const tag = (name: string, attrs: Record<string, string>): HtmlTagDescriptor => ({ tag: name, attrs, injectTo: 'head-prepend' });
        return {
          html: html.replace('/src/main.ts', '/src/static/main.ts'),
          tags: [
            tag('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
            tag('meta', { name: 'referrer', content: 'no-referrer' }),
            tag('meta', { name: 'theme-color', content: manifest.theme_color }),
            tag('link', { rel: 'manifest', href: './manifest.webmanifest' }),
            tag('link', { rel: 'apple-touch-icon', href: './icon-192.png' }),
          ],
        };
      },
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'manifest.webmanifest', source: `${JSON.stringify(manifest, null, 2)}\n` });
      for (const size of [192, 512]) this.emitFile({ type: 'asset', fileName: `icon-${size}.png`, source: iconPng(size) });
    },
  };
}
