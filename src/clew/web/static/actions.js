// What a person does: one call of the API each. A refusal is shown beside what was pressed, with what to do next.
import { notice, prefix } from './dom.js';

export class Refused extends Error {
  constructor(problem) {
    super(problem.detail ?? 'The server refused it.');
    this.remedy = problem.remedy ?? '';
    this.code = problem.code ?? '';
    this.status = problem.status ?? 0;
  }
}

// A file is sent as it is. Throws `Refused` with the server's reason; a server that cannot be reached is one, too.
export async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(`${prefix}/api/v1${path}`, {
      method,
      headers: body === undefined ? {} : { 'content-type': body instanceof Blob ? body.type || 'application/octet-stream' : 'application/json' },
      body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
    });
  } catch {
    throw new Refused({ detail: 'The server cannot be reached, so nothing was sent for sure.', remedy: 'What you typed is kept. Try again when the page is live.', code: 'page:cut' });
  }
  const said = await answer.json().catch(() => ({ status: answer.status }));
  if (!answer.ok) throw new Refused(said);
  return said;
}

export function showProblem(beside, fault) {
  clearProblem(beside);
  const shown = Object.assign(document.createElement('p'), { className: `problem ${fault.kind ?? ''}`, textContent: fault.message });
  shown.setAttribute('role', 'alert');
  if (fault.remedy) shown.append(' ', Object.assign(document.createElement('span'), { className: 'remedy', textContent: fault.remedy }));
  beside.after(shown);
}

export function clearProblem(beside) {
  if (beside.nextElementSibling?.classList.contains('problem')) beside.nextElementSibling.remove();
}

// NAME=value of a line; a line without = is a name without a value.
const pair = (line) => [line.split('=', 1)[0].trim(), line.includes('=') ? line.slice(line.indexOf('=') + 1) : ''];

// A form's fields as JSON: `a.b` goes into an object, numbers and check boxes keep their kind, and a field with
// data-optional that is empty is left out.
export function bodyOf(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === 'radio' && !field.checked)) continue;
    let value = field.type === 'checkbox' ? field.checked : field.value;
    if (field.dataset.optional !== undefined && value === '') continue;
    if (field.type === 'number') value = Number(value);
    if (field.dataset.kind === 'false') value = false;
    if (field.dataset.kind === 'lines') value = value.split('\n').map((line) => line.trim()).filter(Boolean);
    if (field.dataset.kind === 'words') value = value.split(/\s+/).filter(Boolean);
    if (field.dataset.kind === 'pairs') value = Object.fromEntries(value.split('\n').filter((line) => line.trim()).map(pair));
    if (field.dataset.kind === 'json') value = JSON.parse(value);
    const path = field.name.split('.');
    const last = path.pop();
    path.reduce((within, name) => (within[name] ??= {}), body)[last] = value;
  }
  return body;
}

async function perform(shown, asked, body) {
  const [method, path] = asked.split(/ (.*)/s);
  clearProblem(shown);
  shown.toggleAttribute('aria-busy', true);
  const buttons = shown.matches('form') ? [...shown.querySelectorAll('button')] : [shown];
  for (const each of buttons) each.disabled = true;
  try {
    const said = await call(method, path, body);
    const { done, goto: to, show } = shown.dataset;
    if (done) notice(done);
    if (show) showProblem(shown, { message: said[show], kind: said.ok === false ? '' : 'good' });
    if (to) location.assign(`${prefix}${to.replace(/\{([\w.]+)\}/g, (_, path) => encodeURIComponent(path.split('.').reduce((within, name) => within[name], said)))}`);
    shown.dispatchEvent(new CustomEvent('done', { bubbles: true, detail: said }));
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    showProblem(shown, fault);
  } finally {
    shown.removeAttribute('aria-busy');
    for (const each of buttons) each.disabled = false;
  }
}

// <button data-call="POST /runs/x/cancel" data-body='{}' data-confirm="…">, <form data-call="PATCH /agents/x">.
document.addEventListener('click', (event) => {
  const shown = event.target.closest('button[data-call]');
  if (shown && (!shown.dataset.confirm || confirm(shown.dataset.confirm))) {
    perform(shown, shown.dataset.call, shown.dataset.body ? JSON.parse(shown.dataset.body) : undefined);
  }
  const copied = event.target.closest('[data-copy]');
  if (copied && !getSelection().toString()) {
    navigator.clipboard?.writeText(copied.textContent).then(() => notice('Copied.'), () => {});
  }
});
document.addEventListener('submit', (event) => {
  const form = event.target;
  // Its own script may not be there yet: to leave the page would lose what is typed.
  if (form.id === 'composer') event.preventDefault();
  if (!form.dataset.call) return;
  event.preventDefault();
  if (!form.dataset.confirm || confirm(form.dataset.confirm)) perform(form, form.dataset.call, bodyOf(form));
});

