// The service worker: keeps the shell for when the server is away, and notifies. It never keeps content.
const SHELL = 'clew-shell-2';
const NOTICES = 'clew-notices';
const base = new URL(registration.scope).pathname.replace(/\/$/, '');
const shell = ['style.css', 'icon.svg', 'icon-192.png', 'manifest.webmanifest'].map((name) => `${base}/static/${name}`);
const AWAY = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Clew is away</title><link rel="stylesheet" href="${base}/static/style.css"><main><h1>Clew cannot be reached</h1>
<p>The server is away, or this machine is offline. Nothing is kept here to be shown meanwhile; what you typed is.</p>
<p class="dim">Start it with <code>clew up</code>, or try again when it is back.</p><p><a class="button" href="">Try again</a></p></main></html>`;

self.addEventListener('install', (event) => {
  skipWaiting();
  event.waitUntil(caches.open(SHELL).then((kept) => kept.addAll(shell)));
});
self.addEventListener('activate', (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (![SHELL, NOTICES].includes(name)) await caches.delete(name);
  await clients.claim();
})()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.mode === 'navigate' && request.method === 'GET') {
    const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': "default-src 'none'; style-src 'self'" };
    event.respondWith(fetch(request).catch(() => new Response(AWAY, { status: 503, headers })));
  }
  if (request.method !== 'GET' || !new URL(request.url).pathname.startsWith(`${base}/static/`)) return;
  event.respondWith(fetch(request).then((answer) => {
    const copy = answer.clone();
    if (answer.ok) event.waitUntil(caches.open(SHELL).then((kept) => kept.put(request, copy)));
    return answer;
  }).catch(async () => (await caches.match(request)) ?? Response.error()));
});

// Notices are compared with those known before, so each is told once, whichever page or push asked.
let looking = null;
let wanted = null;
function look(how) {
  wanted = how;
  looking ??= (async () => {
    while (wanted) { const now = wanted; wanted = null; await compare(now).catch(() => {}); }
    looking = null;
  })();
  return looking;
}

async function compare({ first, title }) {
  const answer = await fetch(`${base}/api/v1/notices`);
  if (!answer.ok) return;
  const notices = await answer.json();
  const kept = await caches.open(NOTICES);
  const known = first ? null : await (await kept.match(`${base}/known`))?.json();
  await kept.put(`${base}/known`, new Response(JSON.stringify(notices.map(({ id }) => id))));
  // What was answered elsewhere needs nobody any more.
  for (const each of await registration.getNotifications()) if (!notices.some(({ id }) => id === each.tag)) each.close();
  const tabs = (await clients.matchAll({ type: 'window', includeUncontrolled: true })).filter((tab) => tab.visibilityState === 'visible');
  const looksAt = (path) => tabs.some((tab) => `${decodeURIComponent(new URL(tab.url).pathname)}/`.startsWith(`${path}/`));
  for (const notice of notices) {
    const { id, thread } = notice;
    if (!known || known.includes(id) || looksAt(`${base}/threads/${thread}`)) continue;
    const named = title ? await fetch(`${base}/api/v1/threads/${encodeURIComponent(thread)}?limit=1`).then((said) => said.json(), () => ({})) : {};
    await tell(notice, named.thread?.title);
  }
}

// One of the same tag takes the place of an earlier one, silently.
function tell({ id, kind, thread }, title = '') {
  const data = `${base}/threads/${encodeURIComponent(thread)}`;
  return registration.showNotification(`${thread} ${kind === 'needs' ? 'needs you' : 'is done'}`, { tag: id, data, icon: `${base}/static/icon-192.png`, body: title });
}

// While a page of Clew is visible it tells by itself what has to be told.
async function pushed(notice) {
  const tabs = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (tabs.some((tab) => tab.visibilityState === 'visible')) return;
  const kept = await caches.open(NOTICES);
  const known = await (await kept.match(`${base}/known`))?.json();
  if (known?.includes(notice.id) && !(await registration.getNotifications({ tag: notice.id })).length) return;
  if (known) await kept.put(`${base}/known`, new Response(JSON.stringify([...known, notice.id])));
  await tell(notice, notice.title);
}

async function subscribeAgain({ oldSubscription, newSubscription }) {
  const { key } = await (await fetch(`${base}/api/v1/push`)).json();
  const fresh = newSubscription ?? await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys: { p256dh, auth } } = fresh.toJSON();
  const body = JSON.stringify({ endpoint, keys: { p256dh, auth }, replaces: oldSubscription?.endpoint ?? null });
  await fetch(`${base}/api/v1/push/subscriptions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
}

self.addEventListener('push', (event) => { if (event.data) event.waitUntil(pushed(event.data.json())); });
self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(subscribeAgain(event)));

self.addEventListener('message', (event) => { if (event.data.look) event.waitUntil(look(event.data)); });
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const tabs = await clients.matchAll({ type: 'window', includeUncontrolled: true });
    const open = tabs.find((tab) => new URL(tab.url).pathname === event.notification.data);
    await (open ? open.focus() : clients.openWindow(event.notification.data));
  })());
});
