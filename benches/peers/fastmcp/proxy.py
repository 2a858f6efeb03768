"""A FastMCP proxy over HTTP, as its guides set one up.

python proxy.py PORT UPSTREAM[,UPSTREAM] plain|full|lean

Several upstreams are one proxy with the tools of all, as `mcpServers` sets them up.

plain   create_proxy(URL): a session with the upstream for each request
full    the same with RetryMiddleware and ResponseCachingMiddleware, both with their defaults
lean    create_proxy(a connected client), without sessions, answering in JSON, with the cache's
        defaults and RetryMiddleware told to repeat whatever fails
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.server import create_proxy
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.middleware.error_handling import RetryMiddleware


def source(upstreams: str) -> str | dict:
    urls = upstreams.split(",")
    if len(urls) == 1:
        return urls[0]
    return {"mcpServers": {f"up{place}": {"url": url, "transport": "http"} for place, url in enumerate(urls)}}


async def main(port: int, upstreams: str, kind: str) -> None:
    http = {"host": "127.0.0.1", "port": port, "path": "/mcp", "show_banner": False, "log_level": "error"}
    if kind != "lean":
        proxy = create_proxy(source(upstreams), name="peer")
        if kind == "full":
            proxy.add_middleware(RetryMiddleware())
            proxy.add_middleware(ResponseCachingMiddleware())
        await proxy.run_async(transport="http", **http)
        return
    async with Client(source(upstreams)) as client:
        proxy = create_proxy(client, name="peer")
        proxy.add_middleware(
            RetryMiddleware(max_retries=3, base_delay=0.05, retry_exceptions=(Exception,))
        )
        proxy.add_middleware(ResponseCachingMiddleware())
        await proxy.run_async(transport="http", stateless_http=True, json_response=True, **http)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
