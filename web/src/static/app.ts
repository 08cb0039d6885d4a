// Keeps the page for visits without a network, once its first view is there, and takes a newer version.

/** Resolves once the page has nothing to load at the moment. */
const atRest = () => new Promise<void>((resolve) => {
  const wait = () => ('requestIdleCallback' in window ? requestIdleCallback(() => resolve(), { timeout: 10_000 }) : setTimeout(resolve, 3000));
  if (document.readyState === 'complete') wait();
  else addEventListener('load', wait, { once: true });
});

/** `firstView` resolves once the reader has something to look at. */
export async function keepOffline(firstView: Promise<unknown>, tell: (message: string) => void): Promise<void> {
  const { serviceWorker } = navigator;
  if (!serviceWorker) return; // browsers have it for https: and this machine alone
  const waiting = (await serviceWorker.getRegistration())?.waiting;
  if (waiting) {
    // Where this is the only tab, the newer version takes over, and the page starts anew with it.
    serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
    waiting.postMessage('take over');
  }
  await firstView;
  await atRest();
  // A browser may refuse, as in some private windows: the page works without.
  const registration = await serviceWorker.register('./service-worker.js', { scope: './', updateViaCache: 'none' }).catch(() => undefined);
  if (!registration) return;
  // The first one replaces none.
  const say = () => {
    if (registration.waiting && registration.active) tell('A newer version of this page is ready. It opens once the tabs with this one are closed.');
  };
  const watch = () => registration.installing?.addEventListener('statechange', say);
  registration.addEventListener('updatefound', watch);
  watch();
  say();
  const { active } = await serviceWorker.ready;
  const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } };
  if (!connection?.saveData) active?.postMessage('take the rest');
}
