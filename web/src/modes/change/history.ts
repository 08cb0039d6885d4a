// Undo and redo over states that are strings.

export class History {
  #past: string[] = [];
  #future: string[] = [];

  constructor(private state: string) {}

  get canUndo(): boolean {
    return this.#past.length > 0;
  }

  get canRedo(): boolean {
    return this.#future.length > 0;
  }

  push(state: string): void {
    if (state === this.state) return;
    this.#past.push(this.state);
    this.#future = [];
    this.state = state;
  }

  undo(): string {
    return this.#step(this.#past, this.#future);
  }

  redo(): string {
    return this.#step(this.#future, this.#past);
  }

  #step(from: string[], to: string[]): string {
    const state = from.pop();
    if (state !== undefined) {
      to.push(this.state);
      this.state = state;
    }
    return this.state;
  }
}
