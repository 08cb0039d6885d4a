// Models that this browser keeps, in the origin's private file system: a folder each, below models/. A model is there
// whole once its description is, which is written last.

import type { ModelFile } from './protocol';

export interface StoredModel {
  name: string;
  title: string;
  files: { path: string; bytes: number }[];
}

const descriptionName = '.heed.json';

/** A folder's name for a model's: no two models share one. */
const folderName = (name: string) => encodeURIComponent(name).replaceAll('.', '%2E');
const nameOf = (folder: string) => decodeURIComponent(folder);

type Folder = FileSystemDirectoryHandle & { entries(): AsyncIterableIterator<[string, FileSystemHandle]> };

async function textOf(folder: FileSystemDirectoryHandle, name: string): Promise<string | null> {
  try {
    return await (await (await folder.getFileHandle(name)).getFile()).text();
  } catch {
    return null;
  }
}

export class Store {
  constructor(private readonly root: () => Promise<FileSystemDirectoryHandle>) {}

  async #models(): Promise<Folder> {
    return (await (await this.root()).getDirectoryHandle('models', { create: true })) as Folder;
  }

  /** The folder of a model, made where there is none. */
  async folder(name: string): Promise<FileSystemDirectoryHandle> {
    return (await this.#models()).getDirectoryHandle(folderName(name), { create: true });
  }

  async list(): Promise<StoredModel[]> {
    const found: StoredModel[] = [];
    for await (const [folder, handle] of (await this.#models()).entries()) {
      if (handle.kind !== 'directory') continue;
      const text = await textOf(handle as FileSystemDirectoryHandle, descriptionName);
      if (text !== null) found.push({ ...JSON.parse(text), name: nameOf(folder) });
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Bytes of a model that is not whole. */
  async partialBytes(name: string): Promise<number> {
    try {
      const folder = (await (await this.#models()).getDirectoryHandle(folderName(name))) as Folder;
      if ((await textOf(folder, descriptionName)) !== null) return 0;
      let sum = 0;
      for await (const [, handle] of folder.entries()) if (handle.kind === 'file') sum += (await (handle as FileSystemFileHandle).getFile()).size;
      return sum;
    } catch {
      return 0;
    }
  }

  /** Its files, to be read in slices; null: there is no whole model of that name. */
  async files(name: string): Promise<ModelFile[] | null> {
    try {
      const folder = await (await this.#models()).getDirectoryHandle(folderName(name));
      const text = await textOf(folder, descriptionName);
      if (text === null) return null;
      const { files } = JSON.parse(text) as StoredModel;
      return await Promise.all(files.map(async ({ path, bytes }) => ({ path, bytes, file: await (await folder.getFileHandle(path)).getFile() })));
    } catch {
      return null;
    }
  }

  /** Call once all files are written: the model is there from now on. In a worker. */
  async finish(name: string, title: string, files: { path: string; bytes: number }[]): Promise<void> {
    const file = await openFile(await this.folder(name), descriptionName);
    try {
      file.truncate(0);
      file.write(new TextEncoder().encode(JSON.stringify({ title, files })), { at: 0 });
      file.flush();
    } finally {
      file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await (await this.#models()).removeEntry(folderName(name), { recursive: true });
  }
}

/** What a worker writes by. */
export interface SyncFile {
  getSize(): number;
  truncate(size: number): void;
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}

export async function openFile(folder: FileSystemDirectoryHandle, name: string): Promise<SyncFile> {
  const handle = await folder.getFileHandle(name, { create: true });
  return (handle as unknown as { createSyncAccessHandle: () => Promise<SyncFile> }).createSyncAccessHandle();
}

export const browserStore = () => new Store(() => navigator.storage.getDirectory());
