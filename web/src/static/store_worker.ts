// The worker that writes into the store: files can be written in place in a worker alone.

import { Download } from './download';
import { keep } from './keep';
import { browserStore } from './store';

export type ToStore =
  | { kind: 'download'; name: string; revision: string; title: string }
  | { kind: 'keep'; name: string; title: string; files: { path: string; file: Blob }[] }
  | { kind: 'cancel' };

export type FromStore =
  | { kind: 'report'; doing: string; done: number; total: number }
  /** `error`: why it failed; `cancelled`: it was called off. */
  | { kind: 'done'; error: string | null; cancelled: boolean };

const scope = self as unknown as { postMessage: (message: FromStore) => void; onmessage: ((event: MessageEvent<ToStore>) => void) | null };
const abort = new AbortController();
const report = (doing: string, done: number, total: number) => scope.postMessage({ kind: 'report', doing, done, total });

async function run(message: Exclude<ToStore, { kind: 'cancel' }>): Promise<void> {
  const store = browserStore();
  if (message.kind === 'keep') return keep(store, message, (done, total) => report('copying', done, total));
  await new Download(message.name, message.revision, { store, fetch: (address, options) => fetch(address, options), report, signal: abort.signal }).run(message.title);
}

scope.onmessage = ({ data }) => {
  if (data.kind === 'cancel') return abort.abort();
  run(data).then(
    () => scope.postMessage({ kind: 'done', error: null, cancelled: false }),
    (error) => scope.postMessage({ kind: 'done', error: error instanceof Error ? error.message : String(error), cancelled: abort.signal.aborted }),
  );
};
