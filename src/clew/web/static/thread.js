// The thread's page: what the agent does as it does it, new entries as they become durable, and the composer.
import { call, clearProblem, Refused, showProblem } from './actions.js';
import { AGAIN, Cut, nodesOf, part } from './dom.js';
import { listen } from './stream.js';

const thread = document.getElementById('thread');
const journal = document.getElementById('journal');
const form = document.getElementById('composer');
const id = thread.dataset.thread;
const newest = !new URL(location.href).searchParams.has('before');
let reading = null;
let again = false;
let later = null;

// From the end, so that it takes no longer on a long page.
function lastSeq() {
  let item = journal.lastElementChild;
  while (item && !item.dataset.seq) item = item.previousElementSibling;
  return Number(item?.dataset.seq ?? 0);
}
const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 160;

// What a visible page shows is read. One that was marked as unread stays so until something new comes.
let seen = Number(thread.dataset.seen);
function noteRead() {
  const news = Math.max(0, ...[...journal.querySelectorAll('[data-seq].item:not(.human)')].map((each) => Number(each.dataset.seq)));
  if (document.hidden || !newest || news <= seen) return;
  const before = seen;
  seen = lastSeq();
  call('POST', `/threads/${encodeURIComponent(id)}/read`, { entry: seen }).catch(() => { seen = before; });
}

// Reads what came since the last entry here. Each item has an id, so nothing stands here twice.
async function catchUp() {
  if (!newest) return;
  if (reading) { again = true; return; }
  reading = (async () => {
    const follow = atEnd();
    const address = new URL(location.href);
    address.search = '';
    const fresh = await part(address, 'turns', { after: lastSeq() });
    if (fresh.querySelector('[data-gap]')) { location.reload(); return; }
    const items = [...fresh.querySelectorAll('li.item, li.break')];
    const here = new Set(items.map((each) => each.id));
    const wrote = new Set(items.filter((each) => each.dataset.seq).map((each) => each.dataset.run));
    for (const old of journal.querySelectorAll('li.run')) {
      if (wrote.has(old.dataset.run) || (old.matches('.live') && !here.has(old.id))) old.remove();
    }
    // From the end, so that each stands before the one that follows it.
    let next = null;
    for (const item of items.reverse()) {
      const old = document.getElementById(item.id);
      const streams = old?.matches('.live') && item.matches('.live') && old.querySelector('.steps') && item.querySelector('.steps');
      if (!streams && old) old.replaceWith(item);
      if (!old) journal.insertBefore(item, next);
      next = streams ? old : item;
    }
    noteRead();
    if (follow) scrollTo({ top: document.body.scrollHeight });
  })();
  // The stream may live while this was cut: nothing else would tell of the change once more.
  try { await reading; } catch (fault) { if (!(fault instanceof Cut)) throw fault; clearTimeout(later); later = setTimeout(catchUp, AGAIN); } finally { reading = null; }
  if (again) { again = false; catchUp(); }
}

// A line of a live run. One that is missing before it is read from the store.
const filling = new Set();
async function addLine(line) {
  const log = journal.querySelector(`[data-log="${CSS.escape(line.run)}"]`);
  if (!log) { catchUp(); return; }
  const seen = Number(log.dataset.seq);
  if (line.seq <= seen) return;
  if (line.seq > seen + 1) {
    if (filling.has(line.run)) return;
    filling.add(line.run);
    try {
      const missed = await call('GET', `/runs/${line.run}/events?after=${seen}&limit=500`);
      for (const each of missed) show(log, { ...each, run: line.run });
    } catch (fault) { if (!(fault instanceof Refused)) throw fault; } finally { filling.delete(line.run); }
    return;
  }
  show(log, line);
}

const words = (body) => body.command ?? body.file ?? body.words ?? body.text ?? '';

// As text nodes: nothing that an agent writes becomes markup here.
function show(log, { seq, kind, body }) {
  if (seq <= Number(log.dataset.seq)) return;
  log.dataset.seq = seq;
  const follow = atEnd();
  const text = log.parentElement.querySelector('.stream');
  if (kind === 'text') {
    if (body.final === false) text.append(body.text); else text.textContent = body.text;
  } else if (kind === 'tool-finished') {
    const begun = log.querySelector(`[data-tool="${CSS.escape(body.id)}"]`);
    begun?.classList.toggle('bad', !body.ok);
    begun?.append(body.ok ? ' ✓' : ' failed');
  } else if (!['used', 'session', 'done'].includes(kind)) {
    const line = Object.assign(document.createElement('li'), { className: `step ${kind}` });
    if (kind === 'tool-started') line.dataset.tool = body.id;
    line.append(Object.assign(document.createElement('span'), { className: 'what', textContent: body.name ?? body.what ?? kind }), ' ');
    line.append(Object.assign(document.createElement('code'), { textContent: String(words(body)).slice(0, 300) }));
    log.append(line);
    while (log.children.length > 60) log.firstElementChild.remove();
    log.parentElement.querySelector('[data-working]').textContent = `${body.name ?? body.what ?? kind}…`;
  }
  if (follow) scrollTo({ top: document.body.scrollHeight });
}

listen('log', addLine);
listen('changed', ({ threads, runs, all }) => {
  const mine = runs.some((run) => journal.querySelector(`[data-run="${CSS.escape(run)}"].live`));
  if (all || threads.includes(id) || mine) catchUp();
});
document.addEventListener('done', catchUp);

// The composer. What is typed stays in the browser until the server has it.
if (form) {
  const box = form.querySelector('textarea');
  const preview = document.getElementById('preview');
  const kept = `clew-draft-${id}`;
  // The key belongs to these words: sent again after a cut connection, or a reload, they are the same message; others
  // are another.
  const renew = (key = crypto.randomUUID()) => { localStorage.setItem(`${kept}-key`, key); return key; };
  let key = localStorage.getItem(`${kept}-key`) ?? renew();
  // What was typed before this script came stays.
  box.value ||= localStorage.getItem(kept) ?? '';
  let asking = null;
  let foreseen;
  const choices = () => ({ agent: form.agent.value || undefined, overlap: form.overlap.value || undefined, fresh: form.fresh.checked });

  const foresee = () => {
    clearTimeout(asking);
    asking = setTimeout(async () => {
      if (!box.value.trim() || box.value.startsWith('/note')) { preview.textContent = box.value.startsWith('/note') ? 'A note: it wakes nobody.' : ''; return; }
      const query = new URLSearchParams(Object.entries(choices()).filter(([, value]) => value));
      const said = await call('GET', `/threads/${thread.dataset.ref}/preview?${query}`).catch(() => null);
      preview.textContent = said ? `Preview: ${said.words}` : '';
      foreseen = said?.token;
    }, 250);
  };
  box.addEventListener('input', () => { localStorage.setItem(kept, box.value); });
  form.addEventListener('input', () => { key = renew(); foresee(); });
  foresee();
  listen('changed', ({ threads }) => { if (threads.includes(id) && box.value) foresee(); });

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!box.value.trim() || form.hasAttribute('aria-busy')) return;
    clearProblem(form);
    const note = /^\/note\s+/.exec(box.value);
    const body = note ? { text: box.value.slice(note[0].length), wakes: false } : { text: box.value, ...choices(), key, preview: foreseen };
    form.toggleAttribute('aria-busy', true);
    try {
      await call('POST', `/threads/${thread.dataset.ref}/words`, body);
      key = renew();
      box.value = '';
      form.fresh.checked = false;
      foreseen = undefined;
      localStorage.removeItem(kept);
      preview.textContent = '';
      await catchUp();
      scrollTo({ top: document.body.scrollHeight });
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      showProblem(form, fault);
    } finally { form.removeAttribute('aria-busy'); }
  });
  box.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
}

// Earlier entries come above, and the place that is read stays where it is.
async function loadEarlier(link) {
  let page;
  // A server that is away is told by the page that the link leads to.
  try { page = nodesOf(await (await fetch(link.href)).text()); } catch { location.assign(link.href); return false; }
  const before = document.body.scrollHeight;
  journal.prepend(...page.querySelectorAll('#journal > li'));
  scrollBy({ top: document.body.scrollHeight - before });
  const next = page.querySelector('[data-earlier]');
  if (next) link.href = next.href; else link.remove();
  return true;
}
document.querySelector('[data-earlier]')?.addEventListener('click', (event) => {
  event.preventDefault();
  loadEarlier(event.currentTarget);
});

// Back, forward and reload keep the place, also among earlier entries, which are read again; a link leads to its entry,
// and everything else to the newest.
const place = `clew-place-${location.pathname}${location.search}`;
history.scrollRestoration = 'manual';
addEventListener('pagehide', () => {
  const top = [...journal.querySelectorAll('.item[data-seq]')].find((each) => each.getBoundingClientRect().bottom > 60);
  sessionStorage.setItem(place, JSON.stringify(top && !(newest && atEnd()) ? { seq: Number(top.dataset.seq), top: top.getBoundingClientRect().top } : {}));
});
const came = performance.getEntriesByType('navigation')[0]?.type;
const left = (came !== 'navigate' && JSON.parse(sessionStorage.getItem(place))) || {};
const earlier = () => Number(journal.querySelector('[data-seq]')?.dataset.seq) > left.seq && document.querySelector('[data-earlier]');
while (earlier() && await loadEarlier(earlier()));
const found = document.getElementById(`e-${left.seq}`);
if (found) scrollBy({ top: found.getBoundingClientRect().top - left.top });
else if (newest && !location.hash) scrollTo({ top: document.body.scrollHeight });
noteRead();
