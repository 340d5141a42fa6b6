// Every page: parts that stay up to date, the state of the connection, times and keys.
import { call } from './actions.js';
import { AGAIN, Cut, part, prefix, scriptAddress, showTimes } from './dom.js';
import { connect, listen } from './stream.js';

const PACE = 150;
const parts = [...document.querySelectorAll('[data-part][data-live]')];
const waiting = new Set();
let timer = null;

// How a node is found again in its part: by its id, or by what it does within the nearest that has one.
function place(node) {
  if (node.id) return `#${CSS.escape(node.id)}`;
  const does = ['data-mark', 'data-call', 'href'].find((each) => node.hasAttribute(each));
  const around = node.closest('[id]');
  const kind = [...node.classList].map((each) => `.${CSS.escape(each)}`).join('');
  return does ? `${around ? `#${CSS.escape(around.id)} ` : ''}${kind}[${does}="${CSS.escape(node.getAttribute(does))}"]` : '';
}

// Reads parts of this page again. What has the focus or is open stays so.
async function refresh() {
  timer = null;
  const wanted = [...waiting];
  waiting.clear();
  await Promise.all(wanted.map(async (shown) => {
    try {
      const fresh = await part(location.href, shown.dataset.part);
      // Otherwise what came of a call would be told to a form that is gone.
      if (shown.querySelector('[aria-busy]')) { stale(shown); return; }
      // What a person is typing in is theirs.
      if (shown.contains(document.activeElement) && document.activeElement.matches('input, textarea, select')) return;
      const focused = shown.contains(document.activeElement) ? place(document.activeElement) : '';
      for (const open of shown.querySelectorAll('details[open][id]')) fresh.getElementById(open.id)?.setAttribute('open', '');
      // A refusal stays beside what was pressed.
      for (const problem of shown.querySelectorAll('[data-call] + .problem')) {
        fresh.querySelector(`[data-call="${CSS.escape(problem.previousElementSibling.dataset.call)}"]`)?.after(problem);
      }
      shown.replaceChildren(fresh);
      const again = focused && shown.querySelector(focused);
      if (again) {
        // What `n` leads to takes the focus only with this.
        if (again.matches('[data-next]')) again.tabIndex = -1;
        again.focus();
      }
    } catch (fault) {
      if (!(fault instanceof Cut)) throw fault;
      waiting.add(shown);
      timer ??= setTimeout(refresh, AGAIN);
    }
  }));
}

function stale(shown) {
  waiting.add(shown);
  timer ??= setTimeout(refresh, PACE);
}

listen('changed', ({ threads, runs, all }) => {
  for (const shown of parts) {
    const kinds = shown.dataset.live.split(' ');
    const only = shown.dataset.only;
    const concerned = only ? threads.includes(only) || runs.some((run) => document.querySelector(`[data-run="${CSS.escape(run)}"]`)) : (threads.length && kinds.includes('threads')) || (runs.length && kinds.includes('runs'));
    if (all || concerned) stale(shown);
  }
});
document.addEventListener('done', () => parts.forEach(stale));
// The last lines of running agents: no event of the stream names them, so what shows them is read now and then.
setInterval(() => {
  if (!document.hidden) parts.filter((each) => each.querySelector('[data-pace]')).forEach(stale);
}, 5000);

const shown = document.getElementById('live');
listen('state', (state) => {
  shown.hidden = state !== 'cut';
  shown.textContent = state === 'cut' ? 'Cut off from the server. Connecting again…' : '';
  document.body.classList.toggle('cut', state === 'cut');
});

const thread = document.querySelector('[data-thread]')?.dataset.thread;
// A page that says what is wrong has nothing that changes; who is not logged in hears nothing.
if ('live' in document.body.dataset) connect(thread ? [thread] : []);
document.querySelector('.top nav [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
if (thread) import('./thread.js').then(() => { document.body.dataset.ready = ''; });
if (document.querySelector('[data-diff]')) import('./changes.js');

showTimes();
setInterval(showTimes, 10000);
navigator.serviceWorker?.register(scriptAddress('/sw.js'), { scope: `${prefix}/` }).catch(() => {});

// Notifications, where a person turned them on: one tab of all looks when something changes, and the service worker
// tells what is new.
const wants = () => globalThis.Notification?.permission === 'granted' && localStorage.getItem(`clew-notify${prefix}`);
const look = (first) => {
  if (wants()) navigator.serviceWorker?.ready.then(({ active }) => active.postMessage({ look: true, first, title: wants() === 'title' }));
};
navigator.locks?.request(`clew-notify${prefix}`, () => {
  listen('changed', () => look(false));
  return new Promise(() => {});
});
const notify = document.getElementById('notify');
if (notify && globalThis.Notification && navigator.serviceWorker) {
  const [button, titled] = [notify.querySelector('button'), notify.querySelector('input')];
  const shows = () => {
    notify.hidden = false;
    button.textContent = wants() ? 'Turn off in this browser' : 'Notify me in this browser';
    document.dispatchEvent(new CustomEvent('notify'));
    titled.checked = wants() === 'title';
    titled.disabled = !wants();
    notify.querySelector('p').textContent = Notification.permission === 'denied' ? 'This browser forbids it. Allow notifications for this address in its settings, then load this page again.' : '';
  };
  const choose = (how) => { if (how) localStorage.setItem(`clew-notify${prefix}`, how); else localStorage.removeItem(`clew-notify${prefix}`); shows(); };
  button.addEventListener('click', async () => {
    if (wants()) choose('');
    else if (await Notification.requestPermission() === 'granted') { choose('plain'); look(true); } else shows();
  });
  titled.addEventListener('change', () => choose(titled.checked ? 'title' : 'plain'));
  shows();
}

// The same while no page is open, through the push service of this browser.
const push = notify && document.getElementById('push');
if (push && globalThis.PushManager && navigator.serviceWorker) {
  const [button, problem] = [push.querySelector('button'), push.querySelector('p')];
  const says = (fault) => { problem.textContent = fault ? `${fault.message} ${fault.remedy ?? 'This browser or its network does not allow push. Nothing was changed; try again, or use another browser.'}` : ''; };
  const keyOf = (subscription) => btoa(String.fromCharCode(...new Uint8Array(subscription.options.applicationServerKey))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  const known = async () => (await navigator.serviceWorker.ready).pushManager.getSubscription();
  // Told again each time: the server may have lost it, and the choice of the title may have changed.
  const keep = (subscription) => { const { endpoint, keys } = subscription.toJSON(); return call('POST', '/push/subscriptions', { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth }, title: wants() === 'title' }); };
  const turnOff = async (subscription) => { const { id } = await keep(subscription); await subscription.unsubscribe(); await call('DELETE', `/push/subscriptions/${id}`); };
  const turnOn = async () => {
    await (await known())?.unsubscribe(); // It was for another key of the server.
    const subscription = await (await navigator.serviceWorker.ready).pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: push.dataset.key });
    await keep(subscription);
  };
  let work = Promise.resolve();
  const act = (wanted) => { work = work.then(async () => {
    try {
      let subscription = await known();
      if (subscription && keyOf(subscription) !== push.dataset.key) subscription = null;
      if (wanted === 'on') await turnOn();
      else if (subscription && (wanted === 'off' || !wants())) await turnOff(subscription);
      else if (subscription) says({ message: (await keep(subscription)).failure ?? '', remedy: '' });
      if (wanted) says();
    } catch (fault) { says(fault); }
    push.hidden = !wants();
    const on = await known();
    button.textContent = on ? 'Only while a page is open' : 'Also while no page is open';
    button.dataset.does = on && keyOf(on) === push.dataset.key ? 'off' : 'on';
  }); };
  button.addEventListener('click', () => act(button.dataset.does));
  document.addEventListener('notify', () => act());
  act();
}

// <details data-load="address">: read when it is opened, once.
document.addEventListener('toggle', async ({ target }) => {
  if (!target.open || !target.dataset.load) return;
  const address = new URL(target.dataset.load, location.href);
  delete target.dataset.load;
  try {
    const fresh = await part(address, address.searchParams.get('part'));
    target.replaceChildren(target.querySelector('summary'), fresh);
  } catch {
    target.dataset.load = address.href;
    target.open = false;
  }
}, true);

// Keys for everything, listed under `?`.
const go = (path) => () => location.assign(`${prefix}${path}`);
const press = (mark) => () => (document.activeElement.closest('.thread') ?? document.getElementById('thread'))?.querySelector(`[data-mark=${mark}]`)?.click();
const keys = {
  n: ['Next thing that needs you', () => step(1)],
  p: ['The one before', () => step(-1)],
  '/': ['Search', () => document.querySelector('.find input').focus()],
  c: ['Write a message', () => document.querySelector('#composer textarea')?.focus()],
  s: ['Pin this thread, or unpin it', press('pin')],
  e: ['Archive this thread, or bring it back', press('archive')],
  m: ['Mark this thread as read or unread', press('read')],
  'f a': ['All threads', go('/#threads')],
  'f u': ['Unread threads', go('/?only=unread#threads')],
  'f p': ['Pinned threads', go('/?only=pinned#threads')],
  'f x': ['Archived threads', go('/?only=archived#threads')],
  'g h': ['Home', go('/')],
  'g r': ['Runs', go('/runs')],
  'g a': ['Agents', go('/agents')],
  'g m': ['Machines', go('/machines')],
  'g s': ['Sessions', go('/sessions')],
  'g w': ['Workspaces', go('/workspaces')],
  'g u': ['Usage', go('/usage')],
  'g ,': ['Settings', go('/settings')],
  '?': ['This list', help],
};
let before = '';

function step(by) {
  const all = [...document.querySelectorAll('[data-next]')];
  if (!all.length) return location.pathname === `${prefix}/` ? undefined : go('/#needs')();
  const at = all.indexOf(document.activeElement.closest('[data-next]'));
  const next = all[(at + by + all.length) % all.length];
  next.tabIndex = -1;
  next.focus();
  return next.scrollIntoView({ block: 'center' });
}

function help() {
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', 'Keys');
  const list = document.createElement('dl');
  list.className = 'facts';
  for (const [key, [what]] of Object.entries(keys)) {
    const term = document.createElement('dt');
    for (const each of key.split(' ')) term.append(Object.assign(document.createElement('kbd'), { textContent: each }), ' ');
    list.append(term, Object.assign(document.createElement('dd'), { textContent: what }));
  }
  const close = Object.assign(document.createElement('button'), { textContent: 'Close', onclick: () => dialog.close() });
  dialog.append(list, close);
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog[open]')) return;
  const found = keys[`${before} ${event.key}`.trim()] ?? keys[event.key];
  before = found ? '' : event.key;
  if (!found) return;
  event.preventDefault();
  found[1]();
});
