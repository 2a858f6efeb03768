"""Uses one MCP server through the Python SDK, as an agent would.

Usage: client.py ERA SERVER stdio COMMAND ARGS...   or   client.py ERA SERVER http URL
ERA is `legacy` or `auto` (asks for the stateless protocol first). Prints a line a check.
INTEROP_DIR is the server's sandbox, INTEROP_PREFIX what stands before each tool's name.
"""

import asyncio
import logging
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

DIR = os.environ.get("INTEROP_DIR", "")
PREFIX = os.environ.get("INTEROP_PREFIX", "")
failed = 0


def check(name, right, seen=""):
    global failed
    failed += not right
    shown = str(seen).replace("\n", " ")[:300]
    print(f"ok {name}" if right else f"FAIL {name}: {shown}", flush=True)


class Tools:
    """Calls by the server's own tool names, and reads results as text."""

    def __init__(self, client):
        self.client = client

    async def call(self, name, arguments, progress=None):
        return await self.client.call_tool(
            PREFIX + name, arguments, read_timeout_seconds=60, progress_callback=progress)

    async def text(self, name, arguments):
        result = await self.call(name, arguments)
        text = "\n".join(getattr(part, "text", "") for part in result.content)
        if result.is_error:
            raise RuntimeError(f"{name}: {text}")
        return text


async def accept(_context, params):
    """Says yes to whatever is asked: the gateway may ask before a destructive call."""
    schema = getattr(params, "requested_schema", None) or {}
    fields = schema.get("properties", {}).items()
    content = {name: True for name, field in fields if field.get("type") == "boolean"}
    return ElicitResult(action="accept", content=content)


async def filesystem(tools):
    a, b = f"{DIR}/a.txt", f"{DIR}/b.txt"
    listing = await tools.text("list_directory", {"path": DIR})
    check("list_directory shows the file", "a.txt" in listing, listing)
    first = await tools.text("read_text_file", {"path": a})
    again = await tools.text("read_text_file", {"path": a})
    check("read_text_file twice gives the same", first == again == "first\n", (first, again))
    await tools.text("write_file", {"path": a, "content": "second\n"})
    read = await tools.text("read_text_file", {"path": a})
    check("a read after write_file is fresh", read == "second\n", read)
    edit = {"path": a, "edits": [{"oldText": "second", "newText": "third"}]}
    await tools.text("edit_file", edit)
    read = await tools.text("read_text_file", {"path": a})
    check("a read after edit_file is fresh", read == "third\n", read)
    await tools.text("move_file", {"source": a, "destination": b})
    listing = await tools.text("list_directory", {"path": DIR})
    check("a listing after move_file is fresh",
          "b.txt" in listing and "a.txt" not in listing, listing)
    gone = await tools.call("read_text_file", {"path": a})
    check("reading the moved file is an error result", gone.is_error, gone)


async def memory(tools):
    before = await tools.text("read_graph", {})
    check("read_graph is empty at first", "Ada" not in before, before)
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    await tools.text("create_entities", {"entities": [ada]})
    graph = await tools.text("read_graph", {})
    check("read_graph after create_entities is fresh", "Ada" in graph, graph)
    added = {"observations": [{"entityName": "Ada", "contents": ["met Babbage"]}]}
    await tools.text("add_observations", added)
    found = await tools.text("search_nodes", {"query": "Babbage"})
    check("search_nodes after add_observations is fresh", "Ada" in found, found)
    await tools.text("delete_entities", {"entityNames": ["Ada"]})
    graph = await tools.text("read_graph", {})
    check("read_graph after delete_entities is fresh", "Ada" not in graph, graph)


async def git(tools):
    status = await tools.text("git_status", {"repo_path": DIR})
    check("git_status shows the untracked file", "untracked.txt" in status, status)
    log = await tools.text("git_log", {"repo_path": DIR, "max_count": 5})
    check("git_log shows the commit", "the first commit" in log, log)
    await tools.text("git_add", {"repo_path": DIR, "files": ["untracked.txt"]})
    staged = await tools.text("git_status", {"repo_path": DIR})
    check("git_status after git_add is fresh", "new file" in staged, staged)


async def clock(tools):
    now = await tools.text("get_current_time", {"timezone": "UTC"})
    check("get_current_time answers", "UTC" in now, now)
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    converted = await tools.text("convert_time", noon)
    check("convert_time answers", "21:00" in converted, converted)


async def everything(tools):
    echoed = await tools.text("echo", {"message": "grüße, 世界"})
    check("echo answers", "grüße, 世界" in echoed, echoed)
    summed = await tools.text("get-sum", {"a": 2, "b": 40})
    check("get-sum answers", "42" in summed, summed)
    weather = await tools.call("get-structured-content", {"location": "Chicago"})
    check("structured content arrives", bool(weather.structured_content), weather)
    steps = []

    async def progress(done, total, _message):
        steps.append((done, total))

    slow = {"duration": 1, "steps": 4}
    result = await tools.call("trigger-long-running-operation", slow, progress)
    check("a long operation ends well", not result.is_error, result)
    done = [step for step, _ in steps]
    check("its progress arrives, rising", len(done) >= 2 and done == sorted(set(done)), steps)
    try:
        wrong = await tools.call("get-sum", {"a": "two"})
        check("wrong arguments are an error", wrong.is_error, wrong)
    except Exception as error:  # a protocol error is as good an answer
        check("wrong arguments are an error", "timed out" not in str(error).lower(), error)


SCENARIOS = {"filesystem": filesystem, "memory": memory, "git": git, "time": clock,
             "everything": everything}


async def main():
    era, server, transport, *target = sys.argv[1:]
    logging.disable(logging.WARNING)
    to = target[0] if transport == "http" else StdioServerParameters(
        command=target[0], args=target[1:], env=dict(os.environ))
    async with Client(to, mode=era, read_timeout_seconds=60, elicitation_callback=accept) as client:
        listed = await client.list_tools()
        mine = [tool.name for tool in listed.tools if tool.name.startswith(PREFIX)]
        check("lists tools", len(mine) > 0, [tool.name for tool in listed.tools])
        try:
            await SCENARIOS[server](Tools(client))
        except Exception as error:
            check("runs to its end", False, repr(error))


asyncio.run(main())
sys.exit(1 if failed else 0)
