// Whether the server answers. When it does not, one probe asks again until it does; whoever waits goes on then.

const probeMilliseconds = 1500;

class Connection {
  lost = $state(false);
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

  async #probe(): Promise<void> {
    while (this.lost) {
      await new Promise((resolve) => setTimeout(resolve, probeMilliseconds));
      try {
        if ((await fetch('/health', { cache: 'no-store' })).ok) this.lost = false;
      } catch {
        continue;
      }
    }
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

export const connection = new Connection();
