// The live stream, one for all tabs of this browser. It says that something changed; the page reads it from the store.
import { scriptAddress, prefix } from './dom.js';

const listeners = new Map();
let post = null;

// Calls back on `state` (live, cut), `changed` ({threads, runs, all}) and `log` (a line of a followed run).
export function listen(kind, called) {
  listeners.set(kind, [...(listeners.get(kind) ?? []), called]);
}

function follow(threads) {
  post?.({ follow: threads, prefix });
}

function told({ kind, data }) {
  for (const called of listeners.get(kind) ?? []) called(data);
}

export function connect(threads) {
  if ('SharedWorker' in globalThis) {
    const { port } = new SharedWorker(scriptAddress('/static/stream_worker.js'), { type: 'module', name: `clew${prefix}` });
    port.onmessage = ({ data }) => told(data);
    post = (message) => port.postMessage(message);
    port.start();
    // The worker cannot know that a tab is gone, so each tells it.
    addEventListener('pagehide', () => port.postMessage({ gone: true }));
    addEventListener('pageshow', (event) => { if (event.persisted) port.postMessage({ follow: threads, prefix }); });
  } else {
    import('./stream_worker.js').then(({ Stream }) => {
      const own = new Stream(told);
      post = ({ follow: wanted }) => own.open(prefix, wanted);
      follow(threads);
    });
  }
  follow(threads);
  // A tab that was frozen or slept may have missed messages: it reads what it shows again.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) { follow(threads); told({ kind: 'changed', data: { all: true, threads: [], runs: [] } }); }
  });
}
