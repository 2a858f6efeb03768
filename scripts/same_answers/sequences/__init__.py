"""The sequences: what sessions and people do, in order. Each is a function of a `Take`.

What a sequence says with `expect` holds without a gateway. A change by a person happens at least
3 s before anyone reads what it changed; calls through the gateway follow each other at once.
"""

import importlib

ALL = []


class Sequence:
    def __init__(self, function, servers, modern, run):
        self.perform, self.name, self.servers = function, function.__name__, servers
        self.routes = ["serve", *(["run"] if run else []), *(["modern"] if modern else [])]


def sequence(*servers, modern=False, run=False):
    """Registers a sequence over these servers, which goes through `callward serve`.

    `run` adds `callward run`: for one server, and one client, because a gateway does not see what
    goes through another one. `modern` adds stateless requests: for sequences that need no sessions,
    because a gateway without authentication takes all such clients for one.
    """
    def register(function):
        ALL.append(Sequence(function, servers, modern, run))
        return function
    return register


def load():
    for module in ("browser", "repository", "files", "database", "graph", "pages", "counts"):
        importlib.import_module(f"sequences.{module}")
    return ALL
