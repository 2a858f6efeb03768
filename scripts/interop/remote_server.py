"""A server over HTTP on version 1 of the Python SDK: remote_server.py PORT FILE TRANSPORT.

Each line of FILE is one run of `add_line`.
"""

import pathlib
import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("lines", port=int(sys.argv[1]))
lines = pathlib.Path(sys.argv[2])


@server.tool()
def get_lines() -> str:
    return lines.read_text()


@server.tool()
def add_line(text: str) -> str:
    with lines.open("a") as file:
        file.write(text + "\n")
    return "added"


server.run(sys.argv[3])
