import { page } from '../../lib/state.svelte';

/** Opens Follow at one of its parts. */
export function goTo(part: string): void {
  page.view.mode = 'follow';
  page.view.extra = {};
  // The mode is loaded, and drawn a moment later.
  requestAnimationFrame(() => setTimeout(() => {
    const target = document.getElementById(part);
    target?.scrollIntoView();
    target?.focus({ preventScroll: true });
  }, 300));
}
