"""Leases of crawl proxies, with nothing but the standard library.

    from proxyfleet import Lease

    with Lease(target="shop.example", labels={"pool": "news"}) as lease:
        requests.get("https://shop.example/", proxies=lease.proxies)

The lease is renewed in the background and given back at the end, whatever happens in between. Copy
this file; it has no dependency and works with Python 3.9 and later.
"""

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

TRIES = 4  # of a call whose answer was lost: all calls can be repeated without a second effect
CALL_SECONDS = 20


class Refused(Exception):
    """The lease function said no. `retry_after` is in seconds; None when waiting does not help."""

    def __init__(self, code, reason, message, retry_after=None):
        super().__init__(f"{reason or code}: {message}")
        self.code, self.reason, self.retry_after = code, reason, retry_after

    @property
    def ended(self):
        """The lease that was asked about is no more."""
        return self.code == 410 or self.reason == "LEASE_NOT_FOUND"


class LeaseLost(Exception):
    """The lease has ended and must not be used any longer."""


class Client:
    """Calls a lease function: url and token default to LEASE_URL and PROXYFLEET_API_KEY.

    token is a string, or a function that returns one, for tokens that end.
    """

    def __init__(self, url=None, token=None):
        self.url = (url or os.environ.get("LEASE_URL", "http://127.0.0.1:8080")).rstrip("/")
        self.token = token or os.environ.get("PROXYFLEET_API_KEY", "")
        # HTTP_PROXY and its like are for the crawl, not for these calls.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def acquire(self, **wanted):
        """Take a lease. wanted has the API's own names: labels, target, ttlSeconds, waitSeconds, ..."""
        wanted.setdefault("requestId", str(uuid.uuid4()))
        return self._call("/v1/leases", wanted, CALL_SECONDS + wanted.get("waitSeconds", 0))

    def renew(self, lease_id, **wanted):
        return self._call(f"/v1/leases/{lease_id}:renew", wanted)

    def release(self, lease_id, outcome=None, target=None):
        return self._call(f"/v1/leases/{lease_id}:release", _given(outcome=outcome, target=target))

    def report(self, lease_id, outcome, target=None):
        return self._call(f"/v1/leases/{lease_id}:report", _given(outcome=outcome, target=target))

    def _call(self, path, body, timeout=CALL_SECONDS):
        pause = 0.25
        for left in reversed(range(TRIES)):
            try:
                return self._once(path, body, timeout)
            except (OSError, EOFError, http.client.HTTPException) as lost:
                if not left:
                    raise ConnectionError(f"the lease function does not answer: {_cause(lost)}") from None
            time.sleep(pause)
            pause *= 2

    def _once(self, path, body, timeout):
        headers = {"Content-Type": "application/json"}
        token = self.token() if callable(self.token) else self.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        sent = time.monotonic()
        try:
            with self._opener.open(request, timeout=timeout) as response:
                answer, date = json.load(response), response.headers.get("Date")
        except urllib.error.HTTPError as refused:
            with refused:
                raise _refusal(refused) from None
        except ValueError as broken:  # half an answer
            raise EOFError(str(broken)) from None
        if "expireTime" in answer:
            answer["until"] = sent + _seconds_left(answer["expireTime"], date)
        return answer


def _given(**fields):
    return {k: v for k, v in fields.items() if v}


def _cause(error):
    return getattr(error, "reason", None) or type(error).__name__  # not the URL: a lease's id is in it


def _refusal(answer):
    try:
        error = json.load(answer)["error"]
        retry = answer.headers.get("Retry-After")
        return Refused(answer.code, error["details"][0]["reason"], error["message"], float(retry) if retry else None)
    except (ValueError, LookupError, TypeError):
        pass
    if answer.code >= 500:  # something in front of the function: it may have served the call or not
        return OSError(f"HTTP {answer.code}")
    return Refused(answer.code, None, "the answer is not the lease function's")


def _seconds_left(expire_time, date):
    """How long a lease lasts by the server's clock: ours may be wrong by minutes."""
    expires = datetime.fromisoformat(expire_time[:19]).replace(tzinfo=timezone.utc)
    now = parsedate_to_datetime(date) if date else datetime.now(timezone.utc)
    return (expires - now).total_seconds() - 1  # the header has whole seconds


def _latin1(endpoint):
    """The proxy's URL for requests, which sends credentials as Latin-1 and not as the UTF-8 that they are."""
    if "username" not in endpoint:
        return endpoint["url"]
    user, password = (
        urllib.parse.quote(endpoint.get(part, "").encode().decode("latin-1"), safe="") for part in ("username", "password")
    )
    host = f"[{endpoint['host']}]" if ":" in endpoint["host"] else endpoint["host"]
    return f"{endpoint['scheme']}://{user}:{password}@{host}:{endpoint['port']}"


class Lease:
    """A lease for the time of a `with` block. Its arguments are those of Client.acquire.

    proxies   what requests takes
    url       the proxy with its credentials, for whom it concerns
    name      of the proxy
    lost      a threading.Event that is set when the lease ended too early; check() raises then
    draining  the proxy is on its way out: finish, and take another lease
    """

    def __init__(self, client=None, **wanted):
        self.client = client or Client()
        self.wanted = wanted
        self.lost = threading.Event()
        self.draining = False
        self.outcome = None
        self._over = threading.Event()

    def __enter__(self):
        self._take(self.client.acquire(**self.wanted))
        threading.Thread(target=self._keep, name="lease of " + self.name, daemon=True).start()
        return self

    def __exit__(self, kind, error, trace):
        self.close(self.outcome or outcome_of(error))

    def close(self, outcome="ok", target=None):
        """Give the lease back. The with block does it; twice is no harm."""
        self._over.set()
        try:
            self.client.release(self.id, outcome, target)
        except (Refused, OSError):
            pass  # it ends by itself

    @property
    def proxies(self):
        self.check()
        return {"http": self._for_requests, "https": self._for_requests}

    def check(self):
        """Raise LeaseLost when the lease has ended."""
        if self.lost.is_set():
            raise LeaseLost(f"the lease on {self.name} has ended")

    def report(self, outcome, target=None):
        """Tell what a fetch came to: ok, banned, timeout or error. The last one but ok stays."""
        if outcome != "ok":
            self.outcome = outcome
        self.client.report(self.id, outcome, target)

    def _take(self, answer):
        self.id, self.name, self.until = answer["id"], answer["proxy"]["name"], answer["until"]
        self.draining = answer.get("draining", False)
        if "endpoint" in answer:  # else its machine was replaced; connections that are open go on
            self.url = answer["endpoint"]["url"]
            self._for_requests = _latin1(answer["endpoint"])

    def _keep(self):
        pause = self._half()
        while not self._over.wait(pause):
            try:
                self._take(self.client.renew(self.id, **_given(ttlSeconds=self.wanted.get("ttlSeconds"))))
                pause = self._half()
            except Refused as refused:
                if refused.ended:
                    self.lost.set()
                    return
                pause = 1.0
            except OSError:
                pause = 1.0
            if time.monotonic() >= self.until:
                self.lost.set()
                return

    def _half(self):
        """Half the time that is left, or a little less: leases taken at once are not renewed at once."""
        return max(1.0, (self.until - time.monotonic()) * random.uniform(0.4, 0.5))


def outcome_of(error):
    """What an exception means for the proxy. It knows requests' exceptions by name, without needing it."""
    if error is None:
        return "ok"
    names = {kind.__name__ for kind in type(error).__mro__}
    if "Timeout" in names or isinstance(error, TimeoutError):
        return "timeout"
    if names & {"ConnectionError", "ProxyError", "SSLError", "ChunkedEncodingError"} or isinstance(error, OSError) and "HTTPError" not in names:
        return "error"
    return None  # a fault of ours says nothing about the proxy
