// The one connection of a browser to the stream of its server, in a shared worker (or in the page, where there is none).
const SILENCE = 20000; // The server sends a beat every 10 s.
const LONGEST_PAUSE = 15000;

export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.address = null;
    this.tries = 0;
    this.last = '';
  }

  open(prefix, threads) {
    const query = [...new Set(threads)].sort().map((each) => `follow=${encodeURIComponent(each)}`).join('&');
    const address = `${prefix}/api/v1/live${query ? `?${query}` : ''}`;
    if (address === this.address) return;
    this.address = address;
    this.connect();
  }

  connect() {
    this.source?.close();
    clearTimeout(this.retry);
    const source = new EventSource(this.address);
    this.source = source;
    this.wait();
    for (const kind of ['beat', 'changed', 'log']) {
      source.addEventListener(kind, (event) => {
        if (source !== this.source) return;
        this.tries = 0;
        this.wait();
        this.state('live');
        if (kind !== 'beat') this.tell({ kind, data: JSON.parse(event.data) });
      });
    }
    source.onerror = () => { if (source === this.source) this.cut(); };
  }

  // Without a word for too long, the connection is dead, whatever the browser thinks. Or a proxy keeps what is said to
  // itself: then the pages read again what they show, so that they are late and not wrong.
  wait() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.tell({ kind: 'changed', data: { all: true, threads: [], runs: [] } });
      this.cut();
    }, SILENCE);
  }

  cut() {
    this.source?.close();
    clearTimeout(this.silence);
    clearTimeout(this.retry);
    this.state('cut');
    this.retry = setTimeout(() => this.connect(), Math.min(LONGEST_PAUSE, 500 * 2 ** this.tries++));
  }

  state(now) {
    if (now === this.shown) return;
    this.shown = now;
    this.tell({ kind: 'state', data: now });
  }
}

if (typeof SharedWorkerGlobalScope !== 'undefined') {
  const followed = new Map();
  const stream = new Stream((message) => { for (const port of followed.keys()) port.postMessage(message); });
  const open = (prefix) => stream.open(prefix, [...followed.values()].flat());
  let below = '';
  self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data }) => {
      if (data.gone) followed.delete(port);
      else {
        below = data.prefix;
        followed.set(port, data.follow);
        port.postMessage({ kind: 'state', data: stream.shown ?? 'connecting' });
      }
      if (followed.size) open(below);
    };
  };
}
