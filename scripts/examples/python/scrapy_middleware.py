"""Scrapy through leased proxies: requests to one host share a lease, and a fault or a ban changes it.

settings.py of a crawl, with this file and proxyfleet.py beside it:

    DOWNLOADER_MIDDLEWARES = {"scrapy_middleware.LeaseMiddleware": 760}  # behind HttpProxyMiddleware, 750
    PROXYFLEET_URL = "https://lease-abc.a.run.app"      # or LEASE_URL in the environment
    PROXYFLEET_REQUEST = {"labels": {"pool": "news"}}   # what each lease is asked for
    PROXYFLEET_BANNED = [403, 429]                      # statuses that are bans

A request that names a proxy itself in meta["proxy"] is left alone. It works with Scrapy 2.5 and later.
"""

import base64
import collections
import threading
from urllib.parse import unquote_to_bytes, urlsplit

from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from proxyfleet import Client, Lease, Refused

MARK = "proxyfleet_lease"  # in a request's meta: the id of the lease that it went through
WAIT_SECONDS = 20
REMEMBERED = 20  # proxies that failed a host lately


class LeaseMiddleware:
    def __init__(self, crawler):
        settings = crawler.settings
        self.crawler = crawler
        self.client = Client(settings.get("PROXYFLEET_URL"))
        self.wanted = {"waitSeconds": WAIT_SECONDS, **settings.getdict("PROXYFLEET_REQUEST")}
        self.banned = {int(status) for status in settings.getlist("PROXYFLEET_BANNED", [403, 429])}
        self.leases = {}  # by id: all that are held
        self.hosts = {}  # host -> the lease that new requests use
        self.failed = collections.defaultdict(lambda: collections.deque(maxlen=REMEMBERED))
        self.turns = collections.defaultdict(threading.Lock)  # of many requests to a host one takes a lease

    @classmethod
    def from_crawler(cls, crawler):
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    async def process_request(self, request, spider=None):
        if request.meta.get("proxy") and MARK not in request.meta:
            return None
        host = urlsplit(request.url).hostname
        try:
            held = self._current(host)
            while held is None or held.retired:  # a fault of others may retire it meanwhile
                held = await in_thread(self._take, host)
        except (Refused, OSError) as refused:
            again = self._again(request, "no proxy to lease")
            if again is None:
                raise IgnoreRequest(f"no proxy to lease for {host}: {refused}") from refused
            return again
        held.users += 1
        request.meta[MARK] = held.lease.id
        # Not credentials in meta["proxy"]: HttpProxyMiddleware would send them as Latin-1.
        request.meta["proxy"] = held.address
        request.headers["Proxy-Authorization"] = held.authorization
        return None

    async def process_response(self, request, response, spider=None):
        outcome = "banned" if response.status in self.banned else "error" if response.status == 407 else "ok"
        if not self._leave(request, outcome) or outcome == "ok":
            return response
        return self._again(request, f"{outcome} through its proxy") or response

    async def process_exception(self, request, exception, spider=None):
        if not isinstance(exception, IgnoreRequest):
            timeout = "Timeout" in type(exception).__name__
            self._leave(request, "timeout" if timeout else "error")
        return None  # Scrapy's own RetryMiddleware decides

    def spider_closed(self, spider=None):
        return deferToThread(self._close)

    # What follows runs in Scrapy's thread, but _take and _close.

    def _current(self, host):
        held = self.hosts.get(host)
        if held is None:
            return None
        if held.lease.lost.is_set() or held.lease.draining:
            self._retire(held, "ok")
            return None
        return held

    def _take(self, host):
        with self.turns[host]:
            held = self.hosts.get(host)
            if held is not None:
                return held  # another request was faster
            held = Held(self._acquire(host), host)
            self.leases[held.lease.id] = self.hosts[host] = held
            return held

    def _acquire(self, host):
        failed = self.failed[host]
        try:
            return Lease(self.client, **{**self.wanted, "target": host, "exclude": list(failed)}).__enter__()
        except Refused as refused:
            if not failed or refused.reason not in ("FILTER_EMPTY", "NONE_HEALTHY", "NO_CAPACITY", "QUARANTINED"):
                raise
        failed.clear()  # better one of those than none
        return Lease(self.client, **{**self.wanted, "target": host}).__enter__()

    def _again(self, request, reason):
        return get_retry_request(request, spider=self.crawler.spider, reason=reason)

    def _leave(self, request, outcome):
        """End a request's use of its lease; false when it had none."""
        held = self.leases.get(request.meta.get(MARK))
        if held is None:
            return False
        held.users -= 1
        if outcome != "ok":
            if held.lease.name not in self.failed[held.host]:
                self.failed[held.host].append(held.lease.name)
            self._retire(held, outcome)
        elif held.retired:
            self._retire(held, held.outcome)
        return True

    def _retire(self, held, outcome):
        """Keep new requests from a lease; it is given back when the last one has left."""
        held.retired = True
        if held.outcome == "ok":
            held.outcome = outcome
        if self.hosts.get(held.host) is held:
            del self.hosts[held.host]
        if held.users <= 0 and self.leases.pop(held.lease.id, None):
            deferToThread(held.lease.close, held.outcome, held.host)

    def _close(self):
        for held in list(self.leases.values()):
            held.lease.close(held.outcome, held.host)
        self.leases.clear()
        self.hosts.clear()


class Held:
    """A lease that requests to one host share."""

    def __init__(self, lease, host):
        self.lease, self.host = lease, host
        self.users, self.retired, self.outcome = 0, False, "ok"
        proxy = urlsplit(lease.url)
        self.address = f"{proxy.scheme}://{proxy.netloc.rpartition('@')[2]}"
        userinfo = unquote_to_bytes(proxy.username or "") + b":" + unquote_to_bytes(proxy.password or "")
        self.authorization = b"Basic " + base64.b64encode(userinfo)


async def in_thread(call, *args):
    """Calls of the lease function take a while when there is no free proxy: Scrapy goes on meanwhile."""
    return await maybe_deferred_to_future(deferToThread(call, *args))
