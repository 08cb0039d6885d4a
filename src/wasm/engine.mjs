// The engine as WebAssembly in Node.js, called as a page's worker calls it.
import { existsSync, mkdtempSync, openSync, readFileSync, readSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** All files of a folder, as paths below it. */
function filesBelow(folder, below = '') {
  return readdirSync(path.join(folder, below)).flatMap((name) => {
    const file = path.join(below, name);
    return statSync(path.join(folder, file)).isDirectory() ? filesBelow(folder, file) : [file];
  });
}

/** A file as a worker's FileReaderSync reads it: bytes come when a slice is read. */
class LazyFile {
  constructor(descriptor, begin, size) {
    Object.assign(this, { descriptor, begin, size });
  }

  slice(begin, end) {
    const last = Math.min(end, this.size);
    return new LazyFile(this.descriptor, this.begin + begin, Math.max(last - begin, 0));
  }
}

class LazyFileReader {
  readAsArrayBuffer({ descriptor, begin, size }) {
    const bytes = new Uint8Array(size);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, size, begin)).slice().buffer;
  }
}

export class Engine {
  #module;
  #replies = new Map();
  #last = 0;

  /** `threads`: of a module with threads, how many are to compute. */
  static async load(script, { threads } = {}) {
    // Emscripten 3.1.6 looks for CommonJS's names in Node.js, and Node.js for a module in *.mjs.
    globalThis.__dirname ??= path.dirname(script);
    globalThis.require ??= createRequire(import.meta.url);
    globalThis.FileReaderSync ??= LazyFileReader;
    globalThis.importScripts = () => undefined; // what Emscripten knows a worker by, as WORKERFS demands
    const copies = mkdtempSync(path.join(tmpdir(), 'heed-wasm-'));
    try {
      const copy = path.join(copies, 'heed.mjs');
      writeFileSync(copy, readFileSync(script));
      const ofWorkers = script.replace(/\.js$/, '.worker.js');
      if (existsSync(ofWorkers)) writeFileSync(path.join(copies, 'heed.worker.js'), readFileSync(ofWorkers, 'utf8').replaceAll('./heed.js', './heed.mjs'));
      const { default: createHeed } = await import(pathToFileURL(copy));
      const engine = new Engine();
      engine.#module = await createHeed({
        ...(threads !== undefined && { heedThreads: threads }),
        wasmBinary: readFileSync(script.replace(/\.js$/, '.wasm')),
        heedHead: (id, status, headers) => engine.#of(id, { status, headers: Object.fromEntries(JSON.parse(headers)) }),
        heedChunk: (id, bytes) => {
          const reply = engine.#replies.get(id);
          reply.chunks.push(Buffer.from(bytes));
          return reply.onChunk?.(reply) !== false;
        },
        heedEnd: (id, error) => engine.#of(id, { ended: true, error }),
      });
      return engine;
    } finally {
      delete globalThis.importScripts;
      rmSync(copies, { recursive: true });
    }
  }

  #of(id, more) {
    Object.assign(this.#replies.get(id), more);
  }

  /** Threads that compute at the same time, with the caller's. */
  get threadCount() {
    return this.#module.heedThreadCount();
  }

  get memoryBytes() {
    return this.#module.HEAPU8?.length ?? 0;
  }

  /** Writes the files of a model's directory into /models/NAME. */
  put(name, directory) {
    for (const file of filesBelow(directory)) {
      const place = `/models/${name}/${file}`;
      this.#module.FS.mkdirTree(path.dirname(place));
      this.#module.FS.writeFile(place, readFileSync(path.join(directory, file)));
    }
  }

  /** Mounts a model's directory as /models/NAME, whose files are read in slices, as a reader's own in a page. */
  mount(name, directory) {
    const { FS, WORKERFS } = this.#module;
    delete WORKERFS.node_ops.readlink; // as engine_host.ts says
    const blobs = filesBelow(directory).map((file) => {
      const place = path.join(directory, file);
      return { name: file, data: new LazyFile(openSync(place, 'r'), 0, statSync(place).size) };
    });
    FS.mkdirTree(`/models/${name}`);
    FS.mount(WORKERFS, { blobs }, `/models/${name}`);
  }

  /** The bytes of each file of a folder, by name. */
  files(folder) {
    const { FS } = this.#module;
    return new Map(FS.readdir(folder).filter((name) => FS.isFile(FS.stat(`${folder}/${name}`).mode)).map((name) => [name, Buffer.from(FS.readFile(`${folder}/${name}`))]));
  }

  open(model, options) {
    this.#module.heedOpen(model, options);
  }

  /** Writes a model in another format to a folder: heed_convert of heed.h. */
  convert(model, out, options) {
    this.#module.heedConvert(model, out, options);
  }

  begin(method, target, body = '', onChunk) {
    const id = ++this.#last;
    const reply = { id, chunks: [], ended: false, onChunk };
    this.#replies.set(id, reply);
    this.#module.heedRequest(id, method, target, { 'Content-Type': 'application/json' }, body === '' ? '' : JSON.stringify(body));
    return reply;
  }

  stop(reply) {
    this.#module.heedStop(reply.id);
  }

  work() {
    return this.#module.heedWork();
  }

  /** Works until the reply has ended. */
  async ask(method, target, body, onChunk) {
    const reply = this.begin(method, target, body, onChunk);
    while (!reply.ended) {
      const wait = this.work();
      if (wait < 0 && !reply.ended) throw new Error(`${method} ${target}: nothing waits, and it has not ended`);
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    }
    this.#replies.delete(reply.id);
    return { status: reply.status, headers: reply.headers, error: reply.error, bytes: Buffer.concat(reply.chunks) };
  }
}
