// Whether the server responds. After a lost connection one probe polls it; pending requests are then retried.

import { platform } from './platform';
import type { Coming } from './platform_types';

const probeMilliseconds = 1500;
const watchMilliseconds = 5000;

class Connection {
  lost = $state(false);
  /** What happened to the engine, for the reader. */
  notice: string | null = $state(null);
  /** The model that is being loaded, where the page loads it. */
  coming: Coming | null = $state.raw(null);
  /** Number of reconnections: the server may have been restarted, and its trace ids then mean other traces. */
  returns = $state(0);
  #waiting: (() => void)[] = [];

  /** Call when a request got no response; resolves once the server responds again. */
  waitUntilBack(): Promise<void> {
    const back = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.lost) {
      this.lost = true;
      void this.#probe();
    }
    return back;
  }

  /** Polls the server while the page is visible, to notice a lost connection without a request. Call once. */
  watch(): void {
    platform.onNotice((message) => (this.notice = message), (model) => (this.coming = model));
    if (!platform.isServer) return;
    const look = () => {
      if (this.lost || document.visibilityState !== 'visible') return;
      // The body is read so that the request ends.
      platform.fetch('/health', { cache: 'no-store' }).then((answer) => answer.text()).catch(() => void this.waitUntilBack());
    };
    setInterval(look, watchMilliseconds);
    document.addEventListener('visibilitychange', look);
  }

  async #probe(): Promise<void> {
    while (this.lost) {
      await new Promise((resolve) => setTimeout(resolve, probeMilliseconds));
      try {
        if ((await platform.fetch('/health', { cache: 'no-store' })).ok) this.lost = false;
      } catch {
        continue;
      }
    }
    this.returns += 1;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

export const connection = new Connection();
