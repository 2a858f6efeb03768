"""Uses each feature of MCP through the Python SDK; prints a line of JSON for each feature.

Usage: features.py ERA stdio COMMAND ARGS...   or   features.py ERA http URL
ERA is `legacy` or `modern`. A line has `feature` and `answer`: "yes", "–" where the SDK has no API
for it in this era, else the error. The server is the fixture `conformance` of the testkit.
"""

import asyncio
import json
import logging
import os
import sys
import warnings
from typing import Literal

import mcp.types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from pydantic import ConfigDict

ERA = sys.argv[1]
MODERN = ERA == "modern"
SECONDS, WATCHED = 15, "test://watched-resource"
logs, notices = [], []


class Absent(Exception):
    """The SDK has no API for this in this era."""


class Created(types.Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"
    task_id: str


class OfTask(types.Request[dict, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"


class State(types.Result):
    model_config = ConfigDict(extra="allow")
    status: str


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"
    made = 0

    def claims(self):
        return [ResultClaim(result_type="task", model=Created, resolve=self._resolve)]

    async def _resolve(self, created, context):
        Tasks.made += 1
        while True:
            asked = OfTask(params={"taskId": created.task_id})
            state = await context.session.send_request(asked, State)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.model_extra["result"])
            check(state.status == "working", f"the task is {state.status}")
            await asyncio.sleep(0.1)


def check(right, words):
    if not right:
        raise AssertionError(words)


async def text(client, tool, arguments=None, **options):
    result = await client.call_tool(tool, arguments or {}, **options)
    words = "\n".join(getattr(part, "text", "") for part in result.content)
    check(not result.is_error, f"isError: {words}")
    return words


async def has(client, tool, wanted, arguments=None):
    words = await text(client, tool, arguments)
    check(wanted in words, f"answered {words}")


async def repeated(client, tool, seen):
    """Calls a tool until what it triggers has been seen."""
    for turn in range(20):
        await text(client, tool, {"turn": turn})
        await asyncio.sleep(0.3)
        if seen():
            return
    raise AssertionError("no notification")


async def tools(client):
    check((await client.list_tools()).tools, "no tool")
    await has(client, "test_simple_text", "simple text")


async def progress(client):
    steps = []

    async def step(done, _total, _message):
        steps.append(done)

    await text(client, "test_tool_with_progress", progress_callback=step)
    check(steps == [0, 50, 100], f"progress {steps}")


async def prompts(client):
    check((await client.list_prompts()).prompts, "no prompt")
    check((await client.get_prompt("test_simple_prompt")).messages, "no message")


async def resources(client):
    check((await client.list_resources()).resources, "no resource")
    check((await client.read_resource("test://static-text")).contents[0].text, "no text")


async def templates(client):
    check((await client.list_resource_templates()).resource_templates, "no template")
    read = await client.read_resource("test://template/7/data")
    check("ID: 7" in read.contents[0].text, f"read {read}")


async def completion(client):
    prompt = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    found = await client.complete(prompt, {"name": "arg1", "value": "t"})
    check(found.completion.values, "no value")


async def logging_(client):
    logs.clear()
    if not MODERN:
        await client.set_logging_level("info")
    await text(client, "test_tool_with_logging")
    await asyncio.sleep(0.3)
    check(len(logs) == 3, f"{len(logs)} messages of 3")


async def multi_round(client):
    await has(client, "test_input_required_result_multi_round", "")
    await has(client, "test_input_required_result_multiple_inputs", "")


async def cancellation(client):
    before = int(await text(client, "test_cancelled_calls", {"turn": -1}))
    call = asyncio.create_task(client.call_tool("test_reconnection", {"seconds": 60}))
    await asyncio.sleep(0.5)
    call.cancel()
    # the gateway awaits the answer of a write for 5 s once its client has left
    for turn in range(40):
        await asyncio.sleep(0.2)
        if int(await text(client, "test_cancelled_calls", {"turn": turn})) > before:
            return
    raise AssertionError("the server is not notified")


async def list_changed(client):
    notices.clear()
    if not MODERN:
        seen = lambda: "notifications/tools/list_changed" in notices
        return await repeated(client, "test_trigger_tool_change", seen)
    async with client.listen(tools_list_changed=True) as subscription:
        await heard(client, "test_trigger_tool_change", subscription)


async def heard(client, tool, subscription):
    event = asyncio.ensure_future(anext(subscription))
    try:
        await repeated(client, tool, event.done)
        event.result()
    finally:
        event.cancel()


async def subscriptions(client):
    notices.clear()
    if not MODERN:
        await client.subscribe_resource(WATCHED)
        seen = lambda: f"notifications/resources/updated {WATCHED}" in notices
        await repeated(client, "test_trigger_resource_update", seen)
        return await client.unsubscribe_resource(WATCHED)
    async with client.listen(resource_subscriptions=[WATCHED]) as subscription:
        check(subscription.honored.resource_subscriptions, "not acknowledged")
        await heard(client, "test_trigger_resource_update", subscription)


async def tasks(client):
    if not MODERN:
        raise Absent
    await has(client, "slow_compute", "", {"seconds": 0.3, "label": "x"})
    check(Tasks.made, "answers without a task")


async def unknown(client):
    request = types.Request[dict, str](method="example/unknown", params={})
    await client.session.send_request(request, types.EmptyResult)


async def ping(client):
    await (client.session.discover() if MODERN else client.send_ping())


FEATURES = {
    "tools": tools, "progress": progress, "prompts": prompts, "resources": resources,
    "resource templates": templates, "completion": completion, "logging": logging_,
    "sampling": lambda client: has(client, "test_sampling", "a reply", {"prompt": "Hi"}),
    "elicitation, form": lambda client: has(client, "test_elicitation", "accept", {"message": "?"}),
    "elicitation, URL": lambda client: has(client, "test_elicitation_url", "accept"),
    "roots": lambda client: has(client, "test_input_required_result_list_roots", ""),
    "several rounds": multi_round, "cancellation": cancellation, "lists changed": list_changed,
    "resource subscriptions": subscriptions, "tasks": tasks, "unknown method": unknown,
    "ping, discover": ping,
}


async def sample(_context, _params):
    return types.CreateMessageResult(
        role="assistant", model="m", content=types.TextContent(type="text", text="a reply"))


async def elicit(_context, params):
    schema = getattr(params, "requested_schema", None)
    if schema is None:
        return types.ElicitResult(action="accept")
    fields = schema["properties"].items()
    content = {name: True if field["type"] == "boolean" else "text" for name, field in fields}
    return types.ElicitResult(action="accept", content=content)


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])


async def log(message):
    logs.append(message.data)


async def notice(message):
    uri = getattr(getattr(message, "params", None), "uri", None)
    notices.append(f"{getattr(message, 'method', '')} {uri}" if uri else
                   getattr(message, "method", ""))


def words(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Absent):
        return "–"
    if isinstance(error, MCPError):
        return f"{error.error.code} {error.error.message}"
    if isinstance(error, TimeoutError):
        return f"no answer in {SECONDS} s"
    return str(error) if isinstance(error, AssertionError) else repr(error)


async def main():
    transport, *target = sys.argv[2:]
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    to = target[0] if transport == "http" else StdioServerParameters(
        command=target[0], args=target[1:], env=dict(os.environ))
    async with Client(
            to, mode="auto" if MODERN else "legacy", read_timeout_seconds=60, log_level="info",
            sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=roots,
            logging_callback=log, message_handler=notice, cache=None,
            extensions=[Tasks()] if MODERN else None) as client:
        check(client.protocol_version == ("2026-07-28" if MODERN else "2025-11-25"),
              client.protocol_version)
        for feature, use in FEATURES.items():
            try:
                await asyncio.wait_for(use(client), SECONDS)
                answer = "yes"
            except Exception as error:
                answer = words(error)
            print(json.dumps({"feature": feature, "answer": answer}), flush=True)


asyncio.run(main())
