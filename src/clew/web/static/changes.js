// Comments on lines of a diff: kept in this browser until the server has them, and sent as one message.
import { call, clearProblem, Refused, showProblem } from './actions.js';
import { notice } from './dom.js';
const [diff, tray, work, told, moved] = ['diff', 'tray', 'work', 'told', 'moved'].map((id) => document.getElementById(id));
const { diff: thread, ref, agent } = diff.dataset;
const kept = `clew-comments-${thread}-${agent}`;
const make = (tag, values, ...within) => { const made = Object.assign(document.createElement(tag), values); made.append(...within); return made; };
const idOf = ({ file, side, line }) => `${side} ${line} ${file}`;
const codeOf = (row) => row.querySelector('.code').textContent;
const writtenOf = () => state.comments.filter(({ words }) => words.trim());
const boxes = new Map();
const read = () => JSON.parse(localStorage.getItem(kept)) ?? { comments: [] };
let state = read();
// The key belongs to these words: the same ones again are the same message, others are another.
function keep(comments = state.comments) {
  state = { comments, key: crypto.randomUUID() };
  localStorage.setItem(kept, JSON.stringify(state));
  if (!document.activeElement.matches('#tray textarea')) draw();
}
const rowOf = ({ file, side, line, text }) => [...diff.querySelectorAll(`[data-file="${CSS.escape(file)}"] [data-side="${side}"][data-line="${line}"]`)].find((row) => codeOf(row) === text);
function boxOf(comment) {
  const id = idOf(comment);
  if (boxes.has(id)) return boxes.get(id);
  const remove = () => { const row = rowOf(comment); area.blur(); keep(state.comments.filter((each) => idOf(each) !== id)); row?.focus(); };
  const area = make('textarea', { rows: 2, placeholder: 'Comment', ariaLabel: `Comment on ${comment.file}, line ${comment.line}` });
  area.oninput = () => { state.comments.find((each) => idOf(each) === id).words = area.value; keep(); };
  area.onkeydown = ({ key }) => { if (key === 'Escape') { if (area.value.trim()) rowOf(comment)?.focus(); else remove(); } };
  const box = make('div', { className: 'box' }, area, make('button', { type: 'button', className: 'quiet', textContent: 'Remove', onclick: remove }));
  return boxes.set(id, { area, box, below: make('tr', { className: 'remark' }, make('td', { colSpan: 4 })) }).get(id);
}
// A comment stands below its line; one whose line is not here, or is another now, in the tray. Both can be changed.
function draw() {
  const ids = new Set(state.comments.map(idOf));
  for (const [id, { below }] of boxes) if (!ids.has(id)) { below.remove(); boxes.delete(id); }
  tray.querySelector('ol').replaceChildren(...state.comments.map((comment) => {
    const { area, box, below } = boxOf(comment);
    const row = rowOf(comment);
    if (area.value !== comment.words) area.value = comment.words;
    if (row && below.previousElementSibling !== row) { below.firstChild.append(box); row.after(below); }
    const where = make('button', { type: 'button', className: 'quiet', textContent: `${comment.file}:${comment.line}` });
    where.onclick = () => { area.closest('details')?.setAttribute('open', ''); area.focus(); };
    return make('li', {}, where, ...(row ? [comment.words] : [make('code', { textContent: comment.text }), box]));
  }));
  tray.hidden = !ids.size;
  tray.querySelector('b').textContent = `Comments: ${writtenOf().length}`;
}
diff.addEventListener('click', ({ target }) => {
  const row = target.closest('tr[data-line]');
  if (!row || getSelection().toString()) return;
  const made = { file: row.closest('table').dataset.file, side: row.dataset.side, line: Number(row.dataset.line), text: codeOf(row), words: '' };
  if (!state.comments.some((each) => idOf(each) === idOf(made))) keep([...state.comments, made]);
  boxOf(made).area.focus();
});
diff.addEventListener('keydown', (event) => {
  const [row, step] = [event.target, { ArrowDown: 1, ArrowUp: -1, Enter: 0 }[event.key]];
  if (!row.matches('tr[data-line]') || step === undefined) return;
  event.preventDefault();
  const rows = [...diff.querySelectorAll('tr[data-line]')].filter((each) => each.checkVisibility());
  if (step) rows[rows.indexOf(row) + step]?.focus(); else row.click();
});
const marks = (text, least) => '`'.repeat(Math.max(least, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)));
const nameOf = (file) => (file.includes('`') ? `${marks(file, 1)} ${file} ${marks(file, 1)}` : `\`${file}\``);
const quoted = ({ file, side, line, text, words }) => `${nameOf(file)}, line ${line}${side === 'old' ? ' before the change' : ''}:\n\n${marks(text, 3)}\n${text}\n${marks(text, 3)}\n\n${words.trim()}`;
tray.addEventListener('submit', async (event) => {
  event.preventDefault();
  const written = writtenOf();
  if (!written.length) return;
  clearProblem(tray);
  diff.inert = true;
  try {
    await call('POST', `/threads/${ref}/words`, { text: ['Comments on the changes:', ...written.map(quoted)].join('\n\n'), agent, key: state.key });
    keep([]);
    notice(`Sent to ${agent} as one message.`);
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    showProblem(tray, fault);
  } finally { diff.inert = false; }
});
addEventListener('storage', ({ key }) => { if (key === kept) { state = read(); draw(); } });
new MutationObserver((seen) => { if (seen.some(({ target }) => target.matches('details'))) draw(); }).observe(diff, { childList: true, subtree: true });
draw();
// The diff stays as it was read, under whoever reads it; the page says when the agent's work was counted anew.
const first = work.querySelector('[data-at]').dataset.at;
new MutationObserver(() => { moved.hidden = work.querySelector('[data-at]').dataset.at === first; }).observe(work, { childList: true });
document.addEventListener('done', ({ detail }) => {
  document.activeElement.blur();
  const { words, left = [], push, url, address } = detail;
  const link = /^https?:/.test(url ?? address) ? [make('a', { href: url ?? address, textContent: url ?? address })] : [];
  told.replaceChildren(...[words, ...left, push && !url && `Push it: ${push}`].filter(Boolean).map((said) => make('p', { textContent: said })), ...link);
});
