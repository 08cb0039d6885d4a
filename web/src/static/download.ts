// Fetches a published model from the hub into the store: goes on where an earlier download ended, and checks every
// file against the hash that the hub lists. In a worker.

import { Sha256 } from './sha256';
import { openFile, type Store, type SyncFile } from './store';

export const hubAddress = 'https://huggingface.co';

interface Sibling {
  rfilename: string;
  size: number;
  /** Git's name of a small file: the SHA-1 of its content after a header. */
  blobId: string;
  lfs?: { sha256: string; size: number };
}

export interface DownloadOptions {
  store: Store;
  fetch: (address: string, options?: RequestInit) => Promise<Response>;
  hub?: string;
  report: (doing: string, done: number, total: number) => void;
  signal: AbortSignal;
}

const descriptions = ['config.json', 'generation_config.json', 'tokenizer_config.json', 'chat_template.jinja'];
/** Of tokenizers without a tokenizer.json. */
const parts = ['vocab.json', 'target_vocab.json', 'merges.txt', 'vocab.txt', 'spiece.model', 'source.spm', 'target.spm'];
/** Pieces that a file is hashed in. */
const piece = 1 << 20;

/** What heed reads of a repository: as `heed pull`. Throws where that is no model. */
export function filesToFetch(siblings: Sibling[], shards: string[] = []): Sibling[] {
  const has = (name: string) => siblings.some(({ rfilename }) => rfilename === name);
  const tokenizer = has('tokenizer.json') ? ['tokenizer.json'] : parts;
  const weights = has('model.safetensors') ? ['model.safetensors'] : ['model.safetensors.index.json', ...shards];
  const wanted = [...descriptions, ...tokenizer, ...weights];
  return siblings.filter(({ rfilename }) => wanted.includes(rfilename));
}

async function answered(response: Response, what: string): Promise<Response> {
  if (response.ok) return response;
  await response.body?.cancel();
  throw new Error(`${what}: the hub answered ${response.status} ${response.statusText}`.trim());
}

const hex = (bytes: ArrayBuffer) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Throws where the content is not what the hub lists. */
async function verify(file: SyncFile, { rfilename, size, blobId, lfs }: Sibling, report: (done: number) => void): Promise<void> {
  const buffer = new Uint8Array(Math.min(piece, size));
  let hash: string;
  if (lfs) {
    const sha = new Sha256();
    for (let at = 0; at < size; at += buffer.length) {
      const read = file.read(buffer, { at });
      sha.update(buffer.subarray(0, read));
      report(at + read);
    }
    hash = sha.digest();
  } else {
    const header = new TextEncoder().encode(`blob ${size}\0`);
    const whole = new Uint8Array(header.length + size);
    whole.set(header);
    file.read(whole.subarray(header.length), { at: 0 });
    hash = hex(await crypto.subtle.digest('SHA-1', whole));
  }
  const expected = lfs?.sha256 ?? blobId;
  if (hash !== expected) throw new Error(`${rfilename} has the hash ${hash} instead of ${expected}: it was damaged on the way, or is another file`);
}

export class Download {
  #commit = '';

  constructor(
    private readonly name: string,
    private readonly revision: string,
    private readonly options: DownloadOptions,
  ) {}

  async run(title: string): Promise<void> {
    const { store, report, hub = hubAddress } = this.options;
    report('asking the hub', 0, 0);
    const asked = await this.#get(`${hub}/api/models/${this.name}/revision/${encodeURIComponent(this.revision)}?blobs=true`);
    const { sha, siblings } = (await (await answered(asked, this.name)).json()) as { sha: string; siblings: Sibling[] };
    this.#commit = sha;
    const folder = await store.folder(this.name);
    let files = filesToFetch(siblings);
    const index = files.find(({ rfilename }) => rfilename === 'model.safetensors.index.json');
    if (index) {
      const { weight_map } = JSON.parse(await this.#textOf(folder, index));
      files = filesToFetch(siblings, Object.values(weight_map));
    }
    if (!files.some(({ rfilename }) => rfilename === 'config.json') || !files.some(({ rfilename }) => rfilename.endsWith('.safetensors'))) {
      throw new Error(`${this.name} has no config.json, or no weights in safetensors files`);
    }
    for (const file of files) await this.#file(folder, file);
    await store.finish(this.name, title, files.map(({ rfilename: path, size: bytes }) => ({ path, bytes })));
  }

  #get(address: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.options.fetch(address, { headers, signal: this.options.signal, credentials: 'omit', referrerPolicy: 'no-referrer' });
  }

  async #textOf(folder: FileSystemDirectoryHandle, listed: Sibling): Promise<string> {
    await this.#file(folder, listed);
    return (await (await folder.getFileHandle(listed.rfilename)).getFile()).text();
  }

  async #file(folder: FileSystemDirectoryHandle, listed: Sibling): Promise<void> {
    const { rfilename: name, size } = listed;
    const { report, hub = hubAddress } = this.options;
    const file = await openFile(folder, name);
    try {
      if (file.getSize() > size) file.truncate(0);
      let at = file.getSize();
      if (at < size) {
        const where = `${hub}/${this.name}/resolve/${this.#commit}/${name}`;
        const response = await answered(await this.#get(where, at > 0 ? { Range: `bytes=${at}-` } : {}), name);
        if (at > 0 && response.status !== 206) file.truncate((at = 0)); // the whole file comes
        const reader = response.body!.getReader();
        for (let read = await reader.read(); !read.done; read = await reader.read()) {
          if (at + read.value.length > size) {
            await reader.cancel();
            file.truncate(0);
            throw new Error(`${name} has more than the ${size} bytes that the hub lists`);
          }
          file.write(read.value, { at });
          report(`downloading ${name}`, (at += read.value.length), size);
        }
        file.flush();
        if (at < size) throw new Error(`${name} ended after ${at} of ${size} bytes; the download can go on from there`);
      }
      try {
        await verify(file, listed, (done) => report(`checking ${name}`, done, size));
      } catch (error) {
        file.truncate(0); // nothing of it can be used
        throw error;
      }
    } finally {
      file.close();
    }
  }
}
