"""One run of a sequence over one route: makes the world, performs the steps, keeps the answers."""

import contextlib
import json
import sqlite3
import threading
import time

import raw
from answers import Comparable

# How long before the next read of it a change by another client happens.
SETTLE = 3.1


class Broken(Exception):
    """A sequence that does not show, without a gateway, what it is about."""


class Take:
    """What a sequence works with: sessions, the world, waits. The answers are in `record`."""

    def __init__(self, world, route):
        self.world, self._route = world, route
        self.record, self.steps = [], 0
        self._comparable = Comparable()
        self._sessions = 0
        self._group = threading.local()

    def at(self, path):
        """The absolute path of something in the world, as tools want it."""
        return str(self.world.root / path)

    @property
    def repo(self):
        return self.at("repo")

    def url(self, path):
        return f"{self.world.site.url}/{path}"

    def session(self):
        self._sessions += 1
        return Session(self, self._route.session(), f"client {self._sessions}")

    @contextlib.contextmanager
    def outside(self):
        """Changes by a person, and the time until a client reads what they changed."""
        self.steps += 1
        try:
            yield self.world
            failed = None
        except (OSError, RuntimeError, sqlite3.Error) as error:
            # What a person finds depends on what the calls before have done.
            failed = f"failed: {error}".replace(str(self.world.root), "")
        self.record.append(("a person's change", failed or "done"))
        time.sleep(SETTLE)

    def wait(self, seconds):
        self.steps += 1
        time.sleep(seconds)

    def expect(self, wanted, text):
        """Says what an answer shows without a gateway, so that a sequence cannot be vacuous."""
        if self._route.name == "direct" and wanted not in text:
            raise Broken(f"{wanted!r} is not in {text[:300]!r}")

    def together(self, *calls):
        """Calls at the same time. Their answers count as a bag: which was first is not defined."""
        groups = [[] for _ in calls]
        failures = []

        def perform(call, group):
            self._group.record = group
            try:
                call()
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=perform, args=pair) for pair in zip(calls, groups)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.record += sorted(pair for group in groups for pair in group)

    def call(self, client, session, server, tool, arguments):
        self.steps += 1
        began = time.time()
        try:
            result = session.call(server, tool, arguments)
            answer = self._comparable.answer(result, began, time.time())
            text = "\n".join(part.get("text", "") for part in result.get("content", []))
        except raw.Failed as failure:
            answer, text = {"failed": str(failure)}, str(failure)
        label = f"{client}: {server}.{tool} {json.dumps(arguments)}"
        pair = (label.replace(str(self.world.root), ""), json.dumps(answer, sort_keys=True))
        getattr(self._group, "record", self.record).append(pair)
        return text

    def finish(self):
        for place, text in self.world.end().items():
            self.record.append((f"at the end, {place}", text))


class Session:
    """A client: `session.filesystem.read_text_file(path=...)` calls that tool, gives its text.

    It ends with its `with` block, or with the sequence.
    """

    def __init__(self, take, session, client):
        self._take, self._session, self._client = take, session, client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session.close()

    def __getattr__(self, server):
        return Server(self, server)

    def call(self, server, tool, arguments):
        return self._take.call(self._client, self._session, server, tool, arguments)


class Server:
    def __init__(self, session, server):
        self._session, self._server = session, server

    def __getattr__(self, tool):
        return lambda **arguments: self._session.call(self._server, tool, arguments)
