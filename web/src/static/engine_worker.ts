// The worker that the engine runs in.

import { EngineHost, type MakeModule } from './engine_host';
import type { ToWorker } from './protocol';

// Timers wait at least 4 ms once they are nested; a message does not.
const { port1, port2 } = new MessageChannel();
let soon: (() => void) | null = null;
port1.onmessage = () => {
  const step = soon;
  soon = null;
  step?.();
};

const scope = self as unknown as { postMessage: (message: unknown, transfer?: Transferable[]) => void; onmessage: ((event: MessageEvent<ToWorker>) => void) | null };

/** Rejects once the script of a thread cannot be loaded, for which Emscripten's module waits without an end. */
const threadFails = () => new Promise<never>((_, reject) => addEventListener('error', (event) => {
  event.preventDefault();
  reject(new Error(event.message));
}, { once: true }));

const host = new EngineHost({
  load: async (engine) => {
    const make = (await import(/* @vite-ignore */ engine)).default as MakeModule;
    return (answers) => (answers.heedThreads === undefined ? make(answers) : Promise.race([make(answers), threadFails()]));
  },
  post: (message, transfer) => scope.postMessage(message, transfer),
  fetch: (url) => fetch(url),
  later: (milliseconds, step) => {
    if (milliseconds > 0) {
      const timer = setTimeout(step, milliseconds);
      return () => clearTimeout(timer);
    }
    soon = step;
    port2.postMessage(null);
    return () => (soon = null);
  },
});

scope.onmessage = ({ data }) => host.take(data);
