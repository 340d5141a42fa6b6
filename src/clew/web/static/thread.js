// The thread's page: what the agent does as it does it, new entries as they become durable, and the composer.
import { call, clearProblem, Refused, showProblem } from './actions.js';
import { Cut, nodesOf, part } from './dom.js';
import { listen } from './stream.js';

const thread = document.getElementById('thread');
const journal = document.getElementById('journal');
const form = document.getElementById('composer');
const id = thread.dataset.thread;
const newest = !new URL(location.href).searchParams.has('before');
let reading = null;
let again = false;

// From the end, so that it takes no longer on a long page.
function lastSeq(which = '[data-seq]') {
  let item = journal.lastElementChild;
  while (item && !item.matches(which)) item = item.previousElementSibling;
  return Number(item?.dataset.seq ?? 0);
}
const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 160;

// What a visible page shows is read. One that was marked as unread stays so until something new comes.
let seen = Number(thread.dataset.seen);
function noteRead() {
  const news = lastSeq('[data-seq].item:not(.human)');
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
    for (const item of items) {
      const old = document.getElementById(item.id);
      const streams = old?.matches('.live') && item.matches('.live') && old.querySelector('.steps') && item.querySelector('.steps');
      if (streams) continue;
      if (old) old.replaceWith(item); else journal.append(item);
    }
    noteRead();
    if (follow) { trim(); scrollTo({ top: document.body.scrollHeight }); }
  })();
  try { await reading; } catch (fault) { if (!(fault instanceof Cut)) throw fault; } finally { reading = null; }
  if (again) { again = false; catchUp(); }
}

// A page that stays open at its end stays small: what was far above is read again. It begins with an entry, as that page
// ends before one.
const MOST = 300;
function trim() {
  const first = journal.children.length > MOST && [...journal.children].slice(-MOST, -MOST / 2).find((each) => each.dataset.seq);
  if (!first) return;
  while (journal.firstElementChild !== first) journal.firstElementChild.remove();
  const link = document.querySelector('[data-earlier]') ?? Object.assign(document.createElement('a'), { className: 'button', textContent: 'Earlier entries' });
  link.href = `${location.pathname}?before=${first.dataset.seq}`;
  link.dataset.earlier = '';
  journal.before(link);
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

// Whole lines go into blocks: one of all text would be laid out anew with each line, for longer and longer.
const BLOCK = 4000;
function addText(text, words) {
  const cut = words.lastIndexOf('\n') + 1;
  const last = () => text.lastElementChild ?? text;
  if (cut) last().append(words.slice(0, cut));
  if (cut && (last() === text || last().textContent.length > BLOCK)) text.append(document.createElement('div'));
  if (cut < words.length) last().append(words.slice(cut));
}

// As text nodes: nothing that an agent writes becomes markup here.
function show(log, { seq, kind, body }) {
  if (seq <= Number(log.dataset.seq)) return;
  log.dataset.seq = seq;
  const follow = atEnd();
  const text = log.parentElement.querySelector('.stream');
  if (kind === 'text') {
    if (body.final === false) addText(text, body.text); else text.textContent = body.text;
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
  let key = crypto.randomUUID();
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
  box.addEventListener('input', () => { localStorage.setItem(kept, box.value); foresee(); });
  form.addEventListener('change', foresee);
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
      // The same key again is the same message, so a repeated try after a cut connection sends nothing twice.
      key = crypto.randomUUID();
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
document.querySelector('[data-earlier]')?.addEventListener('click', async (event) => {
  event.preventDefault();
  const link = event.currentTarget;
  let page;
  // A server that is away is told by the page that the link leads to.
  try { page = nodesOf(await (await fetch(link.href)).text()); } catch { location.assign(link.href); return; }
  const before = document.body.scrollHeight;
  journal.prepend(...page.querySelectorAll('#journal > li'));
  scrollBy({ top: document.body.scrollHeight - before });
  const next = page.querySelector('[data-earlier]');
  if (next) link.href = next.href; else link.remove();
});

noteRead();
if (newest && !location.hash) scrollTo({ top: document.body.scrollHeight });
