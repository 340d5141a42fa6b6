// The page's own markup: HTML that this server rendered, times in the reader's zone, and notices.
const policy = globalThis.trustedTypes?.createPolicy('clew', {
  createHTML: (text) => text,
  createScriptURL: (address) => address,
}) ?? { createHTML: (text) => text, createScriptURL: (address) => address };

export const prefix = document.body.dataset.prefix ?? '';

export const scriptAddress = (path) => policy.createScriptURL(`${prefix}${path}`);

// Nodes from HTML of this server. It escapes what people and agents wrote; nothing else comes in here.
export function nodesOf(html) {
  const holder = document.createElement('template');
  holder.innerHTML = policy.createHTML(html);
  showTimes(holder.content);
  return holder.content;
}

export class Cut extends Error {}
export const AGAIN = 3000; // Until what was cut is tried once more.

// A part of a page, rendered by the server. Throws `Cut` if the server cannot be reached.
export async function part(address, name, more = {}) {
  const asked = new URL(address, location.href);
  asked.hash = '';
  for (const [key, value] of Object.entries({ part: name, ...more })) asked.searchParams.set(key, value);
  // The server may go away before its answer or in the middle of it.
  const cut = () => { throw new Cut(); };
  const answer = await fetch(asked, { headers: { accept: 'text/html' } }).catch(cut);
  // A proxy says so of a server that is away.
  if ([502, 503, 504].includes(answer.status)) cut();
  const html = await answer.text().catch(cut);
  if (!answer.ok) throw new Error(`${answer.status}`);
  return nodesOf(html);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });

function age(at, now = Date.now()) {
  const passed = Math.abs(now - at) / 1000;
  if (passed < 1) return 'now';
  const [unit, name] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']].find(([seconds]) => passed >= seconds);
  const said = `${Math.floor(passed / unit)} ${name}`;
  return at < now ? `${said} ago` : `in ${said}`;
}

export function showTimes(root = document) {
  for (const each of root.querySelectorAll('time')) {
    const at = Date.parse(each.dateTime);
    const { form } = each.dataset;
    each.textContent = form === 'clock' ? clock.format(at) : form === 'day' ? day.format(at) : age(at);
    each.title = exact.format(at);
  }
}

export function notice(words) {
  const shown = Object.assign(document.createElement('div'), { className: 'notice', textContent: words });
  document.getElementById('notices').append(shown);
  setTimeout(() => shown.remove(), 5000);
}
