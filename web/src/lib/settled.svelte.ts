/** A debounced value: follows `read` once that has not changed for `pause` milliseconds. */
export function settled<T>(read: () => T, pause: number): { readonly value: T } {
  let value = $state.raw(read());
  let begun = false;
  $effect(() => {
    const latest = read();
    if (!begun) return void (begun = true); // it is the value already
    const timer = setTimeout(() => (value = latest), pause);
    return () => clearTimeout(timer);
  });
  return { get value() { return value; } };
}
