"""As much of Scrapy as the middleware speaks with, and a downloader, for machines without Scrapy."""

import asyncio
import copy
import http.client
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

threads = ThreadPoolExecutor(8)


def module(name, **members):
    m = sys.modules[name] = types.ModuleType(name)
    m.__dict__.update(members)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, m)


class IgnoreRequest(Exception):
    pass


class Request:
    def __init__(self, url):
        self.url, self.meta, self.headers = url, {}, {}


class Response:
    def __init__(self, status, body):
        self.status, self.body = status, body


class Settings(dict):
    def getdict(self, name):
        return self.get(name, {})

    def getlist(self, name, default=None):
        return self.get(name, default)


class Crawler:
    def __init__(self, **settings):
        self.settings, self.spider, self.signals, self.closed = Settings(settings), object(), self, []

    def connect(self, handler, signal):
        assert signal == "spider_closed"
        self.closed.append(handler)


def get_retry_request(request, *, spider, reason, max_retry_times=2):
    assert spider is not None and reason
    if request.meta.get("retry_times", 0) >= max_retry_times:
        return None
    again = Request(request.url)
    again.meta, again.headers = copy.copy(request.meta), dict(request.headers)
    again.meta["retry_times"] = request.meta.get("retry_times", 0) + 1
    return again


def defer_to_thread(call, *args):
    return threads.submit(call, *args)


async def to_future(future):
    return await asyncio.wrap_future(future)


module("scrapy", signals=types.SimpleNamespace(spider_closed="spider_closed"))
module("scrapy.exceptions", IgnoreRequest=IgnoreRequest)
module("scrapy.downloadermiddlewares")
module("scrapy.downloadermiddlewares.retry", get_retry_request=get_retry_request)
module("scrapy.utils")
module("scrapy.utils.defer", maybe_deferred_to_future=to_future)
module("twisted")
module("twisted.internet")
module("twisted.internet.threads", deferToThread=defer_to_thread)


def download(request):
    """Sends a request as Scrapy's downloader does: proxy from meta, credentials from the header."""
    proxy = urlsplit(request.meta["proxy"])
    assert proxy.username is None
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
    try:
        connection.request("GET", request.url, headers={k: v.decode() for k, v in request.headers.items()})
        answer = connection.getresponse()
        return Response(answer.status, answer.read().decode())
    finally:
        connection.close()


async def fetch(middleware, request):
    """What Scrapy's engine does with one request, through retries to the end."""
    while True:
        # HttpProxyMiddleware, which comes first, takes a header away that has no credentials in meta["proxy"].
        request.headers.pop("Proxy-Authorization", None)
        again = await middleware.process_request(request=request, spider=None)
        if again is None:
            try:
                response = await asyncio.wrap_future(threads.submit(download, request))
            except Exception as error:
                assert await middleware.process_exception(request=request, exception=error, spider=None) is None
                again = get_retry_request(request, spider=1, reason=error)  # as RetryMiddleware does
                if again is None:
                    raise
            else:
                again = await middleware.process_response(request=request, response=response, spider=None)
        if isinstance(again, Response):
            return again
        request = again


async def close(crawler):
    for handler in crawler.closed:
        await asyncio.wrap_future(handler(spider=None))
