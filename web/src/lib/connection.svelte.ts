// Whether the server answers. When it does not, one probe asks again until it does; whoever waits goes on then.

const probeMilliseconds = 1500;
const watchMilliseconds = 5000;

class Connection {
  lost = $state(false);
  /** How often the server came back: it may be another process, whose traces are others under the same names. */
  returns = $state(0);
  #waiting: (() => void)[] = [];

  /** Call when a request got no answer at all; resolves once the server answers again. */
  waitUntilBack(): Promise<void> {
    const back = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.lost) {
      this.lost = true;
      void this.#probe();
    }
    return back;
  }

  /** Notices a lost server also while nothing is asked, as long as the page is seen. Call once. */
  watch(): void {
    const look = () => {
      if (this.lost || document.visibilityState !== 'visible') return;
      // The body is read so that the request ends.
      fetch('/health', { cache: 'no-store' }).then((answer) => answer.text()).catch(() => void this.waitUntilBack());
    };
    setInterval(look, watchMilliseconds);
    document.addEventListener('visibilitychange', look);
  }

  async #probe(): Promise<void> {
    while (this.lost) {
      await new Promise((resolve) => setTimeout(resolve, probeMilliseconds));
      try {
        if ((await fetch('/health', { cache: 'no-store' })).ok) this.lost = false;
      } catch {
        continue;
      }
    }
    this.returns += 1;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

export const connection = new Connection();
