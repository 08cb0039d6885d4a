// The engine in a worker, as `fetch` is to a server: requests become messages, and the messages that answer a Response.

import type { FileBytes, FromWorker, ModelSpec, ToWorker } from './protocol';
import type { EngineChoice } from './threads';

/** What is used of a Worker. */
export interface Port {
  postMessage(message: ToWorker, transfer?: Transferable[]): void;
  terminate(): void;
  onmessage: ((event: { data: FromWorker }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
}

interface Pending {
  /** Before the reply begins. */
  resolve: (response: Response) => void;
  reject: (reason: unknown) => void;
  /** Of its body, once it has begun. */
  body: ReadableStreamDefaultController<Uint8Array> | null;
  /** Forgets the signal. */
  release: () => void;
}

/** Replies with these have no body. */
const empty = [204, 304];

/** An error reply as the server's. */
export function errorResponse(status: number, message: string): Response {
  return new Response(JSON.stringify({ error: { message } }), { status, headers: { 'Content-Type': 'application/json' } });
}

export class Engine {
  /** Why it cannot go on; null: it can. */
  lost: string | null = null;
  #port: Port;
  #next = 1;
  #pending = new Map<number, Pending>();
  #calls = new Map<number, { resolve: (files: FileBytes[]) => void; reject: (error: Error) => void }>();

  constructor(
    make: () => Port,
    engines: EngineChoice[],
    private readonly told: { progress?: (name: string, done: number, total: number) => void; lost?: (message: string) => void } = {},
  ) {
    this.#port = make();
    this.#port.onmessage = ({ data }) => this.#take(data);
    this.#port.onerror = ({ message }) => this.#end(message || 'the worker of the engine ended');
    this.#port.postMessage({ kind: 'start', engines });
  }

  /** Makes a model known to the engine, which opens it once a request names it. */
  async add(model: ModelSpec): Promise<void> {
    await this.#call({ kind: 'add', call: this.#next++, model });
  }

  /** Opens a model: requests that name none are about it. Rejects with the engine's message. */
  async open(model: ModelSpec, besides: ModelSpec[] = []): Promise<void> {
    await this.#call({ kind: 'open', call: this.#next++, model, besides });
  }

  /** Files that it has written. */
  read(paths: string[]): Promise<FileBytes[]> {
    return this.#call({ kind: 'read', call: this.#next++, paths });
  }

  /** Gives it files that another engine has written. */
  async put(files: FileBytes[]): Promise<void> {
    await this.#call({ kind: 'put', call: this.#next++, files }, files.map(({ bytes }) => bytes.buffer as ArrayBuffer));
  }

  /** Ends it; what is pending fails. */
  close(): void {
    this.#end('the engine was closed');
  }

  /** As the global `fetch`, of a path of the API. */
  async fetch(path: string, { method = 'GET', headers, body, signal }: RequestInit = {}): Promise<Response> {
    signal?.throwIfAborted();
    if (this.lost !== null) return errorResponse(503, this.lost);
    const id = this.#next++;
    const bytes = new TextEncoder().encode(typeof body === 'string' ? body : '');
    return new Promise((resolve, reject) => {
      const onabort = () => {
        const pending = this.#pending.get(id);
        if (!pending) return;
        this.#stop(id);
        if (pending.body) pending.body.error(signal!.reason);
        else reject(signal!.reason);
      };
      signal?.addEventListener('abort', onabort);
      this.#pending.set(id, { resolve, reject, body: null, release: () => signal?.removeEventListener('abort', onabort) });
      this.#port.postMessage({ kind: 'request', id, method, target: path, headers: Object.fromEntries(new Headers(headers)), body: bytes }, [bytes.buffer]);
    });
  }

  #call(message: Extract<ToWorker, { call: number }>, transfer?: Transferable[]): Promise<FileBytes[]> {
    if (this.lost !== null) return Promise.reject(new Error(this.lost));
    return new Promise((resolve, reject) => {
      this.#calls.set(message.call, { resolve, reject });
      this.#port.postMessage(message, transfer);
    });
  }

  #forget(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    pending?.release();
    this.#pending.delete(id);
    return pending;
  }

  #stop(id: number): void {
    if (this.#forget(id)) this.#port.postMessage({ kind: 'stop', id });
  }

  #take(message: FromWorker): void {
    switch (message.kind) {
      case 'done': {
        const call = this.#calls.get(message.call);
        this.#calls.delete(message.call);
        if (message.error === null) call?.resolve(message.files ?? []);
        else call?.reject(new Error(message.error));
        return;
      }
      case 'progress':
        this.told.progress?.(message.name, message.done, message.total);
        return;
      case 'head': {
        const pending = this.#pending.get(message.id);
        if (!pending) return; // stopped meanwhile
        const { id, status, headers } = message;
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            pending.body = controller;
          },
          cancel: () => this.#stop(id),
        });
        pending.resolve(new Response(empty.includes(status) ? null : body, { status, headers }));
        return;
      }
      case 'chunk':
        this.#pending.get(message.id)?.body?.enqueue(message.bytes);
        return;
      case 'end': {
        const pending = this.#forget(message.id);
        if (!pending) return;
        if (message.error === '' && pending.body) pending.body.close();
        else if (pending.body) pending.body.error(new Error(message.error));
        else pending.resolve(errorResponse(500, message.error || 'the engine gave no reply'));
        return;
      }
      case 'lost':
        this.#end(message.message);
    }
  }

  /** Nothing more comes: requests that wait are answered, replies that have begun break off. */
  #end(message: string): void {
    if (this.lost !== null) return;
    this.lost = message;
    this.#port.terminate();
    for (const id of [...this.#pending.keys()]) {
      const pending = this.#forget(id)!;
      if (pending.body) pending.body.error(new Error(message));
      else pending.resolve(errorResponse(503, message));
    }
    for (const { reject } of this.#calls.values()) reject(new Error(message));
    this.#calls.clear();
    this.told.lost?.(message);
  }
}
