// The service worker of the static page (offline.ts).

import { Offline, type VersionFiles } from './offline';

type Waits = { waitUntil: (promise: Promise<unknown>) => void };
interface Scope {
  heedFiles: VersionFiles;
  registration: { scope: string };
  clients: { matchAll: (options: object) => Promise<unknown[]>; claim: () => Promise<void> };
  skipWaiting: () => Promise<void>;
  addEventListener: (type: string, listener: (event: never) => void) => void;
}

const scope = self as unknown as Scope;
const offline = new Offline(scope.heedFiles, {
  caches,
  fetch: (request, options) => fetch(request, options),
  scope: scope.registration.scope,
  windows: async () => (await scope.clients.matchAll({ type: 'window', includeUncontrolled: true })).length,
  skipWaiting: () => scope.skipWaiting(),
});

scope.addEventListener('install', (event: Waits) => event.waitUntil(offline.install()));
scope.addEventListener('activate', (event: Waits) => event.waitUntil(offline.activate().then(() => scope.clients.claim())));
scope.addEventListener('message', (event: Waits & { data: string }) => {
  if (event.data === 'take the rest') event.waitUntil(offline.takeRest());
  if (event.data === 'take over') event.waitUntil(offline.takeOver());
});
scope.addEventListener('fetch', (event: { request: Request; respondWith: (response: Promise<Response>) => void }) => {
  if (offline.concerns(event.request)) event.respondWith(offline.answer(event.request).then((kept) => kept ?? fetch(event.request)));
});
