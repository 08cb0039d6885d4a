/** A value as it was once it had stayed the same for `pause` milliseconds: what is typed is asked for when the typing rests. */
export function settled<T>(read: () => T, pause: number): { readonly value: T } {
  let value = $state.raw(read());
  $effect(() => {
    const latest = read();
    const timer = setTimeout(() => (value = latest), pause);
    return () => clearTimeout(timer);
  });
  return { get value() { return value; } };
}
