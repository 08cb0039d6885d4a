// The opening view's files are requested with the page, not only once its first script has run.

import type { OutputBundle, OutputChunk } from 'rollup';
import type { HtmlTagDescriptor, Plugin } from 'vite';

function chunkOf(bundle: OutputBundle, name: string): OutputChunk | undefined {
  const file = bundle[name];
  return file?.type === 'chunk' ? file : undefined;
}

/** A chunk and all that it imports before it runs. */
function needed(bundle: OutputBundle, name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  for (const other of chunkOf(bundle, name)?.imports ?? []) needed(bundle, other, found);
  return found;
}

/** `module` is the end of a path, such as "modes/follow/Follow.svelte". */
export function preload(module: string): Plugin {
  let base = '/';
  return {
    name: 'preload',
    apply: 'build',
    configResolved: (config) => {
      base = config.base;
    },
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle = {} }) {
        const opening = Object.values(bundle).find((file) => file.type === 'chunk' && file.moduleIds.some((id) => id.endsWith(module)));
        if (!opening) throw new Error(`no chunk for ${module}`);
        const link = (attributes: Record<string, string | boolean>): HtmlTagDescriptor => ({ tag: 'link', attrs: { ...attributes, crossorigin: true }, injectTo: 'head' });
        const tags: HtmlTagDescriptor[] = [];
        for (const name of needed(bundle, opening.fileName)) {
          if (!html.includes(`/${name}"`)) tags.push(link({ rel: 'modulepreload', href: `${base}${name}` }));
          for (const style of chunkOf(bundle, name)?.viteMetadata?.importedCss ?? []) if (!html.includes(`/${style}"`)) tags.push(link({ rel: 'preload', as: 'style', href: `${base}${style}` }));
        }
        return tags;
      },
    },
  };
}
