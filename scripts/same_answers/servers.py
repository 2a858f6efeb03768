"""The third-party servers: what starts each, where its state is, and whether it is installed."""

import json
import pathlib
import shutil

import stage

# One date for every commit: hashes are then the same in every run.
GIT = {
    "GIT_AUTHOR_NAME": "ada", "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0000",
    "GIT_COMMITTER_NAME": "ada", "GIT_COMMITTER_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+0000",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
}
CHROMIUM = "/usr/bin/chromium"
# The browser reports home at every start unless it is told not to; here it has no network.
QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
OPTIONAL = stage.HOME / "optional"


def node():
    """The pinned Node.js, or the system's where that is not installed."""
    return stage.NODE if shutil.which(stage.NODE) else shutil.which("node") or stage.NODE


def _env(variables):
    """Through `env`, because a configuration without `env` gives a server only a few variables."""
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def _module(package, *path):
    return OPTIONAL.joinpath(package, "node_modules", *path)


def _python(package):
    return OPTIONAL / package / "venv/bin" / f"mcp-server-{package}"


# What has to exist for a server to be there.
FILES = {
    "filesystem": [stage.MODULES / "@modelcontextprotocol/server-filesystem/dist/index.js"],
    "memory": [stage.MODULES / "@modelcontextprotocol/server-memory/dist/index.js"],
    "git": [stage.HOME / "venv/bin/mcp-server-git"],
    "time": [stage.HOME / "venv/bin/mcp-server-time"],
    "thinking": [_module(
        "thinking", "@modelcontextprotocol/server-sequential-thinking/dist/index.js")],
    "fetch": [_python("fetch")],
    "sqlite": [_python("sqlite")],
    "playwright": [_module("playwright", "@playwright/mcp/cli.js"), pathlib.Path(CHROMIUM)],
}
# Which installation of same_answers.sh brings it, if that has another name.
INSTALLED_AS = {"filesystem": "npm", "memory": "npm", "git": "pip", "time": "pip"}
# A second instance of a server under another name, with state of its own.
KIND = {"memory2": "memory"}


def missing(name):
    """Why a server cannot be started, or None."""
    kind = KIND.get(name, name)
    for file in FILES[kind]:
        if not file.exists():
            part = "chromium" if str(file) == CHROMIUM else INSTALLED_AS.get(kind, kind)
            log = stage.HOME / "failed" / part
            return stage.tail(log, 1) if log.exists() else f"{file} does not exist"
    return None


def command(name, world):
    """What starts a server in a world."""
    root, kind = world.root, KIND.get(name, name)
    program = str(FILES[kind][0])
    if kind == "filesystem":
        return [node(), program, str(root)]
    if kind == "memory":
        return [*_env({"MEMORY_FILE_PATH": f"{root}/{name}.json"}), node(), program]
    if kind == "git":
        return [*_env(GIT), program, "--repository", f"{root}/repo"]
    if kind == "time":
        return [program, "--local-timezone", "UTC"]
    if kind == "thinking":
        return [*_env({"DISABLE_THOUGHT_LOGGING": "true"}), node(), program]
    if kind == "fetch":
        return [program, "--ignore-robots-txt", "--allow-private-ips"]
    if kind == "sqlite":
        return [program, "--db-path", f"{root}/{world.database}"]
    file = world.aside / "playwright.json"
    file.write_text(json.dumps({"browser": {"launchOptions": {"args": QUIET}}}))
    return [node(), program, "--config", str(file), "--executable-path", CHROMIUM, "--headless",
            "--no-sandbox", "--isolated", "--output-dir", str(world.aside / "output")]
