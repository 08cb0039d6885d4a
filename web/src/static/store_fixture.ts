// The origin's private file system, in memory, as far as the store uses it.

import { Store, type SyncFile } from './store';

class FakeFile {
  kind = 'file' as const;
  content = new Uint8Array(0);
  #open = false;

  constructor(readonly name: string) {}

  async getFile(): Promise<File> {
    return new File([this.content], this.name);
  }

  async createSyncAccessHandle(): Promise<SyncFile> {
    if (this.#open) throw new Error('the file is open already');
    this.#open = true;
    return {
      getSize: () => this.content.length,
      truncate: (size) => {
        const next = new Uint8Array(size);
        next.set(this.content.subarray(0, size));
        this.content = next;
      },
      read: (into, { at }) => {
        const part = this.content.subarray(at, at + into.length);
        into.set(part);
        return part.length;
      },
      write: (bytes, { at }) => {
        const next = new Uint8Array(Math.max(this.content.length, at + bytes.length));
        next.set(this.content);
        next.set(bytes, at);
        this.content = next;
        return bytes.length;
      },
      flush: () => undefined,
      close: () => {
        this.#open = false;
      },
    };
  }
}

class FakeFolder {
  kind = 'directory' as const;
  #entries = new Map<string, FakeFolder | FakeFile>();

  #get(name: string, kind: 'file' | 'directory', create: boolean | undefined, make: () => FakeFolder | FakeFile) {
    if (name === '' || name === '.' || name === '..' || name.includes('/')) throw new TypeError(`"${name}" is no name`);
    let found = this.#entries.get(name);
    if (!found && create) this.#entries.set(name, (found = make()));
    if (!found) throw new DOMException(`${name} is not there`, 'NotFoundError');
    if (found.kind !== kind) throw new DOMException(`${name} is a ${found.kind}`, 'TypeMismatchError');
    return found;
  }

  async getDirectoryHandle(name: string, { create }: { create?: boolean } = {}) {
    return this.#get(name, 'directory', create, () => new FakeFolder());
  }

  async getFileHandle(name: string, { create }: { create?: boolean } = {}) {
    return this.#get(name, 'file', create, () => new FakeFile(name));
  }

  async removeEntry(name: string) {
    if (!this.#entries.delete(name)) throw new DOMException(`${name} is not there`, 'NotFoundError');
  }

  async *entries() {
    yield* this.#entries;
  }
}

export function fakeStore(): Store {
  const root = new FakeFolder() as unknown as FileSystemDirectoryHandle;
  return new Store(async () => root);
}
