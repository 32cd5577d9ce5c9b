// Crawlee through leased proxies: each session of the pool has a lease of its own.
//
//   import { CheerioCrawler, ProxyConfiguration } from 'crawlee';
//   import { Leases } from './proxyfleet.mjs';
//
//   const leases = new Leases({ request: { labels: { pool: 'news' } } });
//   const crawler = new CheerioCrawler({ ...leases.options(ProxyConfiguration), requestHandler });
//   try { await crawler.run(['https://shop.example/']); } finally { await leases.close(); }
//
// When Crawlee retires a session, its lease is given back with what came of it, and the next session
// gets another proxy. Needs Node 18 and Crawlee 3, and nothing else.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const TRIES = 4; // of a call whose answer was lost: all calls can be repeated without a second effect
const CALL_MS = 20_000;
const BANNED = [403, 429];

/** The lease function said no. */
export class Refused extends Error {
  constructor(code, reason, message, retryAfter) {
    super(`${reason ?? code}: ${message}`);
    Object.assign(this, { name: 'Refused', code, reason, retryAfter });
  }

  /** Whether the lease that was asked about is no more. */
  get ended() {
    return this.code === 410 || this.reason === 'LEASE_NOT_FOUND';
  }
}

/** Calls a lease function. token is a string, or a function that returns one, for tokens that end. */
export class Client {
  constructor({ url = process.env.LEASE_URL ?? 'http://127.0.0.1:8080', token = process.env.PROXYFLEET_API_KEY } = {}) {
    this.url = url.replace(/\/+$/, '');
    this.token = token;
  }

  acquire(request) {
    const ms = CALL_MS + 1000 * (request.waitSeconds ?? 0);
    return this.#call('/v1/leases', { requestId: randomUUID(), ...request }, ms);
  }

  renew(id, ttlSeconds) {
    return this.#call(`/v1/leases/${id}:renew`, { ttlSeconds });
  }

  release(id, outcome, target) {
    return this.#call(`/v1/leases/${id}:release`, { outcome, target });
  }

  async #call(path, body, ms = CALL_MS) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(path, body, ms);
      } catch (error) {
        if (error instanceof Refused) throw error;
        if (attempt === TRIES) throw new Error(`the lease function does not answer: ${error.cause?.code ?? error.cause?.message ?? error.message}`);
      }
      await sleep(250 * 2 ** (attempt - 1));
    }
  }

  async #once(path, body, ms) {
    const headers = { 'content-type': 'application/json' };
    const token = typeof this.token === 'function' ? await this.token() : this.token;
    if (token) headers.authorization = `Bearer ${token}`;
    const sent = performance.now();
    const response = await fetch(this.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(ms) });
    if (!response.ok) throw await refusal(response);
    const answer = await response.json();
    if (answer.expireTime) answer.until = sent + millisecondsLeft(answer.expireTime, response.headers.get('date'));
    return answer;
  }
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  const reason = error?.details?.[0]?.reason;
  // Without a reason something in front of the function answered: it may have served the call or not.
  if (!reason && response.status >= 500) return new Error(`HTTP ${response.status}`);
  const retryAfter = Number(response.headers.get('retry-after')) || undefined;
  return new Refused(response.status, reason, error?.message ?? 'the answer is not the lease function\'s', retryAfter);
}

// By the server's clock: ours may be wrong by minutes. The header has whole seconds.
function millisecondsLeft(expireTime, date) {
  return Date.parse(expireTime) - (date ? Date.parse(date) : Date.now()) - 1000;
}

/** The leases of a crawl. request has the API's own names: labels, ttlSeconds, waitSeconds, ... */
export class Leases {
  #client;
  #request;
  #held = new Map(); // session id (or host, without a session pool) -> promise of a lease
  #outcomes = new Map(); // session id -> what was seen of it
  #watched = new WeakSet();
  #returning = new Set();
  #closed = false;

  constructor({ url, token, request = {} } = {}) {
    this.#client = new Client({ url, token });
    this.#request = { waitSeconds: 20, ...request };
  }

  /** What a crawler's options need; give it Crawlee's class ProxyConfiguration. */
  options(ProxyConfiguration) {
    return {
      proxyConfiguration: new ProxyConfiguration({ newUrlFunction: this.urlFor }),
      preNavigationHooks: [this.beforeNavigation],
      postNavigationHooks: [this.afterNavigation],
    };
  }

  /** The newUrlFunction: the URL of the session's proxy. */
  urlFor = async (sessionId, { request } = {}) => {
    const host = request && new URL(request.url).hostname;
    const key = sessionId ?? host ?? '';
    for (;;) {
      this.#held.get(key) ?? this.#held.set(key, this.#take(host));
      const promise = this.#held.get(key);
      try {
        const lease = await promise;
        if (!lease.over) return lease.endpoint.url;
      } catch (error) {
        if (this.#held.get(key) === promise) this.#held.delete(key);
        throw error;
      }
      // It ended, or its proxy is on its way out. Requests that are on it go on; it expires by itself.
      if (this.#held.get(key) === promise) this.#held.delete(key);
    }
  };

  /** Learns of the pool, to hear of sessions that are retired. */
  beforeNavigation = ({ crawler }) => {
    const pool = crawler?.sessionPool;
    if (!pool || this.#watched.has(pool)) return;
    this.#watched.add(pool);
    pool.on('sessionRetired', (session) => this.retire(session));
  };

  /** Notes a ban before Crawlee retires the session for it. */
  afterNavigation = ({ session, request, response }) => {
    const status = response?.statusCode ?? response?.status?.();
    if (session && BANNED.includes(status)) {
      this.#outcomes.set(session.id, { outcome: 'banned', target: new URL(request.loadedUrl ?? request.url).hostname });
    }
  };

  /** Gives a session's lease back. One that was used up did well, another one failed. */
  retire(session) {
    const done = session.isMaxUsageCountReached() || session.isExpired();
    const { outcome, target } = this.#outcomes.get(session.id) ?? { outcome: done ? 'ok' : 'error' };
    this.#outcomes.delete(session.id);
    this.#giveBack(session.id, outcome, target);
  }

  /** Gives all leases back. */
  async close() {
    this.#closed = true;
    for (const key of [...this.#held.keys()]) this.#giveBack(key, 'ok');
    await Promise.all(this.#returning);
  }

  async #take(target) {
    if (this.#closed) throw new Error('the leases are closed');
    const lease = await this.#client.acquire({ ...this.#request, target });
    this.#renewLater(lease);
    return lease;
  }

  #renewLater(lease) {
    const half = (lease.until - performance.now()) * (0.4 + Math.random() / 10);
    lease.timer = setTimeout(() => this.#renew(lease), Math.max(1000, half));
    lease.timer.unref();
  }

  async #renew(lease) {
    try {
      const renewed = await this.#client.renew(lease.id, this.#request.ttlSeconds);
      lease.until = renewed.until;
      lease.over ||= renewed.draining === true;
    } catch (error) {
      lease.over ||= error.ended === true || performance.now() >= lease.until;
    }
    if (!lease.over) this.#renewLater(lease);
  }

  #giveBack(key, outcome, target) {
    const promise = this.#held.get(key);
    if (!promise) return;
    this.#held.delete(key);
    const returned = promise
      .then((lease) => {
        clearTimeout(lease.timer);
        lease.over = true;
        return this.#client.release(lease.id, outcome, target);
      })
      .catch(() => {}) // it ends by itself
      .finally(() => this.#returning.delete(returned));
    this.#returning.add(returned);
  }
}
