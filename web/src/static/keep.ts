// Copies the reader's files into the store, in slices. In a worker.

import { openFile, type Store } from './store';

const slice = 8 << 20;

export async function keep(
  store: Store,
  { name, title, files }: { name: string; title: string; files: { path: string; file: Blob }[] },
  report: (done: number, total: number) => void,
): Promise<void> {
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  const folder = await store.folder(name);
  let done = 0;
  try {
    for (const { path, file } of files) {
      const copy = await openFile(folder, path);
      try {
        copy.truncate(0);
        for (let at = 0; at < file.size; at += slice) {
          const bytes = new Uint8Array(await file.slice(at, at + slice).arrayBuffer());
          copy.write(bytes, { at });
          report((done += bytes.length), total);
        }
        copy.flush();
      } finally {
        copy.close();
      }
    }
    await store.finish(name, title, files.map(({ path, file }) => ({ path, bytes: file.size })));
  } catch (error) {
    await store.remove(name); // a part of a copy is of no use
    throw error;
  }
}
