// The service worker: keeps the shell for when the server is away, so that the page can say so.
const SHELL = 'clew-shell-1';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const address = new URL(event.request.url);
  if (event.request.method !== 'GET' || !address.pathname.includes('/static/')) return;
  event.respondWith(
    fetch(event.request)
      .then((answer) => {
        const copy = answer.clone();
        event.waitUntil(caches.open(SHELL).then((shell) => shell.put(event.request, copy)));
        return answer;
      })
      .catch(async () => (await caches.match(event.request)) ?? Response.error()),
  );
});
