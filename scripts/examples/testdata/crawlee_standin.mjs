// As much of Crawlee as the leases speak with, and a crawler, for machines without Crawlee.

import { EventEmitter } from 'node:events';
import http from 'node:http';

export class ProxyConfiguration {
  constructor({ newUrlFunction }) {
    this.newUrlFunction = newUrlFunction;
  }

  async newProxyInfo(sessionId, { request } = {}) {
    const url = await this.newUrlFunction(sessionId, { request });
    new URL(url);
    return { url, sessionId };
  }
}

class Session {
  static #count = 0;

  constructor(pool, maxUsageCount) {
    Object.assign(this, { id: `session_${Session.#count++}`, pool, maxUsageCount, usageCount: 0, blocked: false });
  }

  isMaxUsageCountReached() { return this.usageCount >= this.maxUsageCount; }

  isExpired() { return false; }

  isUsable() { return !this.blocked && !this.isMaxUsageCountReached(); }

  markGood() {
    this.usageCount++;
    if (!this.isUsable()) this.retire();
  }

  retire() {
    this.blocked = true;
    this.usageCount++;
    this.pool.emit('sessionRetired', this);
  }
}

class SessionPool extends EventEmitter {
  sessions = [];

  constructor({ maxPoolSize = 1, maxUsageCount = 50 } = {}) {
    super();
    Object.assign(this, { maxPoolSize, maxUsageCount });
  }

  // A new session is used at once, while there is room for one; then any of them.
  getSession() {
    this.sessions = this.sessions.filter((s) => s.isUsable());
    if (this.sessions.length === this.maxPoolSize) return this.sessions[Math.floor(Math.random() * this.sessions.length)];
    const session = new Session(this, this.maxUsageCount);
    this.sessions.push(session);
    return session;
  }
}

// Does with each URL what Crawlee's HTTP crawler does: proxy, hooks, blocked statuses, rotation.
export class Crawler {
  constructor({ sessionPoolOptions, ...options }) {
    this.options = options;
    this.sessionPool = new SessionPool(sessionPoolOptions);
  }

  async run(urls) {
    const pages = [];
    for (const url of urls) pages.push(await this.#fetch({ url }));
    return pages;
  }

  async #fetch(request) {
    for (let rotations = 0; rotations < 10; rotations++) {
      const session = this.sessionPool.getSession();
      const context = { crawler: this, request, session };
      context.proxyInfo = await this.options.proxyConfiguration.newProxyInfo(session.id, { request });
      for (const hook of this.options.preNavigationHooks) await hook(context, {});
      try {
        context.response = await get(request.url, context.proxyInfo.url);
      } catch {
        session.retire(); // a proxy's error
        continue;
      }
      for (const hook of this.options.postNavigationHooks) await hook(context, {});
      if ([401, 403, 429].includes(context.response.statusCode)) {
        session.retire();
        continue;
      }
      session.markGood();
      return `${context.response.statusCode} ${context.response.body.trim()}`;
    }
    return 'failed';
  }
}

function get(url, proxy) {
  const { hostname, port, username, password } = new URL(proxy);
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  return new Promise((resolve, reject) => {
    const headers = { 'proxy-authorization': `Basic ${credentials}`, host: new URL(url).host };
    const sent = http.get({ hostname, port, path: url, headers, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk) => { body += chunk; });
      response.on('error', reject);
      response.on('end', () => resolve({ statusCode: response.statusCode, body }));
    });
    sent.on('error', reject);
  });
}
