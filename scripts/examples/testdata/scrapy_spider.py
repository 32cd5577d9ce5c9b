"""A real Scrapy crawl through the middleware: scrapy_spider.py URL..."""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class Spider(scrapy.Spider):
    name = "pages"

    def start_requests(self):
        for i, url in enumerate(sys.argv[1:]):
            yield scrapy.Request(f"{url}/?page={i}", callback=self.parse, errback=self.failed)

    async def start(self):
        for request in self.start_requests():
            yield request

    def parse(self, response):
        print(response.status, response.text.strip(), flush=True)

    def failed(self, failure):
        print("failed", failure.value, flush=True)


process = CrawlerProcess({
    "DOWNLOADER_MIDDLEWARES": {"scrapy_middleware.LeaseMiddleware": 760},
    "LOG_LEVEL": "WARNING",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
    "RETRY_TIMES": 3,
})
process.crawl(Spider)
process.start()
