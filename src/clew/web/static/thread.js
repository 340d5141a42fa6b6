// The thread's page: what the agent does as it does it, new entries as they become durable, and the composer.
import { call, clearProblem, Refused, showProblem } from './actions.js';
import { AGAIN, Cut, nodesOf, part, prefix } from './dom.js';
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
    if (follow) { trim(); scrollTo({ top: document.body.scrollHeight }); }
  })();
  // The stream may live while this was cut: nothing else would tell of the change once more.
  try { await reading; } catch (fault) { if (!(fault instanceof Cut)) throw fault; clearTimeout(later); later = setTimeout(catchUp, AGAIN); } finally { reading = null; }
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

// The composer. What is typed and attached stays in the browser until the server has it, also across a reload.
if (form) {
  const box = form.querySelector('textarea');
  const preview = document.getElementById('preview');
  const chips = document.getElementById('files');
  const kept = `clew-draft-${prefix}${id}`;
  // What was typed before this script came stays.
  box.value ||= localStorage.getItem(kept) ?? '';
  let key = localStorage.getItem(`${kept}-key`) ?? crypto.randomUUID();
  let attached = [];
  let asking = null;
  let foreseen;
  const choices = () => ({ agent: form.agent.value || undefined, overlap: form.overlap.value || undefined, fresh: form.fresh.checked });

  const foresee = () => {
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const note = box.value.startsWith('/note');
      if (note || !(box.value.trim() || attached.length)) { preview.textContent = note ? 'A note: it wakes nobody.' : ''; return; }
      const query = new URLSearchParams(Object.entries(choices()).filter(([, value]) => value));
      const said = await call('GET', `/threads/${thread.dataset.ref}/preview?${query}`).catch(() => null);
      preview.textContent = said ? `Preview: ${said.words}` : '';
      foreseen = said?.token;
    }, 250);
  };
  // The same key again is the same message, so a repeated try sends nothing twice; what was changed is another message.
  const changed = () => {
    key = crypto.randomUUID();
    localStorage.setItem(kept, box.value);
    localStorage.setItem(`${kept}-key`, key);
    foresee();
  };
  box.addEventListener('input', changed);
  form.addEventListener('change', ({ target }) => { if (target !== box) changed(); });
  foresee();
  listen('changed', ({ threads }) => { if (threads.includes(id) && box.value) foresee(); });

  const shelf = (mode, work) => new Promise((done, fail) => {
    const asked = indexedDB.open('clew', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('files');
    asked.onerror = () => fail(asked.error);
    asked.onsuccess = () => {
      const change = asked.result.transaction('files', mode);
      const got = work(change.objectStore('files'));
      change.oncomplete = () => { asked.result.close(); done(got.result); };
      change.onabort = () => fail(change.error);
    };
  });
  const sized = (bytes) => (bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

  function showFiles() {
    chips.replaceChildren(...attached.map((each) => {
      const chip = Object.assign(document.createElement('li'), { className: 'chip', textContent: `${each.file.name} ` });
      const remove = Object.assign(document.createElement('button'), { type: 'button', className: 'quiet', textContent: '×', onclick: () => { attached = attached.filter((other) => other !== each); store(); box.focus(); } });
      remove.setAttribute('aria-label', `Remove ${each.file.name}`);
      chip.append(Object.assign(document.createElement('span'), { className: 'dim', textContent: sized(each.file.size) }), remove);
      return chip;
    }));
  }
  function store() {
    showFiles();
    changed();
    // A browser that keeps nothing, as in some private windows, has them as long as the page is open.
    shelf('readwrite', (files) => files.put(attached.map(({ file }) => file), kept)).catch(() => {});
  }
  function attach(files) {
    clearProblem(form);
    for (const file of files) {
      const { most, largest, together } = form.dataset;
      const all = attached.reduce((sum, each) => sum + each.file.size, file.size);
      const why = attached.length >= most ? `a message has up to ${most} files` : file.size > largest ? `a file has up to ${sized(largest)}` : all > together ? `the files of a message have up to ${sized(together)} together` : '';
      if (why) showProblem(form, { message: `${file.name} (${sized(file.size)}) is not attached: ${why}.`, remedy: 'Put it into a directory of the project, and say where it is.' });
      else attached.push({ file });
    }
    store();
  }
  shelf('readonly', (files) => files.get(kept)).then((files) => { attached.unshift(...(files ?? []).map((file) => ({ file }))); showFiles(); foresee(); }, () => {});
  const chosen = form.files;
  chosen.hidden = true;
  chosen.addEventListener('change', () => { attach(chosen.files); chosen.value = ''; });
  const choose = document.getElementById('attach');
  choose.hidden = false;
  choose.addEventListener('click', () => chosen.click());
  box.addEventListener('paste', (event) => {
    const { files, types } = event.clipboardData;
    if (files.length && !types.includes('text/plain')) { event.preventDefault(); attach(files); }
  });
  // A file that misses the box must not replace the page.
  for (const kind of ['dragover', 'drop']) {
    document.addEventListener(kind, (event) => {
      if (!event.dataTransfer.types.includes('Files')) return;
      event.preventDefault();
      if (kind === 'drop') attach(event.dataTransfer.files);
    });
  }

  async function uploaded(each) {
    const unreadable = () => { throw new Refused({ detail: `${each.file.name} cannot be read.`, remedy: 'It may be a directory, or was changed since. Remove it here, and attach it again.' }); };
    await each.file.slice(0, 1).arrayBuffer().catch(unreadable);
    each.id ??= (await call('POST', `/files?name=${encodeURIComponent(each.file.name)}`, each.file)).id;
    return each.id;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = box.value;
    const sent = [...attached];
    if (!(text.trim() || sent.length) || form.hasAttribute('aria-busy')) return;
    clearProblem(form);
    const note = /^\/note\s+/.exec(text);
    // A key names a wake, and where nobody is assigned there is none.
    const named = form.agent.value || form.dataset.assignee ? key : undefined;
    const body = note ? { text: text.slice(note[0].length), wakes: false } : { text, ...choices(), key: named, preview: named && foreseen };
    form.toggleAttribute('aria-busy', true);
    try {
      body.files = [];
      for (const each of sent) body.files.push(await uploaded(each));
      await call('POST', `/threads/${thread.dataset.ref}/words`, body);
      // What was typed or attached meanwhile stays.
      if (box.value === text) box.value = '';
      attached = attached.filter((each) => !sent.includes(each));
      form.fresh.checked = false;
      foreseen = undefined;
      preview.textContent = '';
      store();
      await catchUp();
      scrollTo({ top: document.body.scrollHeight });
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      // An upload that was not sent in time is gone.
      if (fault.code === 'store:no-such-file') for (const each of sent) delete each.id;
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
