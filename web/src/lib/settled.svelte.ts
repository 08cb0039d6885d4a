/** A debounced value: follows `read` once that has not changed for `pause` milliseconds. */
export function settled<T>(read: () => T, pause: number): { readonly value: T } {
  let value = $state.raw(read());
  $effect(() => {
    const latest = read();
    if (JSON.stringify(latest) === JSON.stringify(value)) return; // as at first
    const timer = setTimeout(() => (value = latest), pause);
    return () => clearTimeout(timer);
  });
  return { get value() { return value; } };
}
