"""Fetch URLs through leased proxies with requests:  python3 crawl.py URL...

A target that bans (403, 429) is reported, and the URL is tried once more through another proxy.
"""

import sys
from urllib.parse import urlsplit

import requests

from proxyfleet import Lease, Refused

BANNED = (403, 429)
ATTEMPTS = 3


def fetch(url):
    host = urlsplit(url).hostname
    tried, response, failure = [], None, None
    for _ in range(ATTEMPTS):
        try:
            with Lease(target=host, exclude=tried, waitSeconds=10) as lease:
                tried.append(lease.name)
                response = requests.get(url, proxies=lease.proxies, timeout=30)
                if response.status_code not in BANNED:
                    return response
                lease.outcome = "banned"
        except requests.RequestException as error:
            failure = error
        except Refused as refused:  # no other proxy is to be had
            failure = failure or refused
            break
    if response is not None:
        return response
    raise failure


def main(urls):
    status = 0
    for url in urls:
        try:
            response = fetch(url)
        except (requests.RequestException, Refused) as error:
            print(f"{url}: {error}", file=sys.stderr)
            status = 1
            continue
        print(response.status_code, url, len(response.content))
    return status


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("crawl.py: which URL?  python3 crawl.py URL...")
    sys.exit(main(sys.argv[1:]))
