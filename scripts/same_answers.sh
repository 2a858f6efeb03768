#!/usr/bin/env bash
# Performs sequences of calls with real MCP servers, directly and through the gateway with its
# default configuration, and compares the answers. Any difference is a defect of the gateway.
#
#   scripts/same_answers.sh                      through target/release/callward, else target/debug
#   scripts/same_answers.sh --gateway PATH       through another binary
#   scripts/same_answers.sh --only NAME          one sequence; more with more --only
#   scripts/same_answers.sh --route serve        one way through the gateway: serve, run or modern
#   scripts/same_answers.sh --self-check         directly and directly again: checks the sequences
#   scripts/same_answers.sh --list               names the sequences
#   scripts/same_answers.sh --json               the table as JSON on standard output
#
# In a sequence several clients call tools of several servers, and people change what the servers
# read: scripts/same_answers/sequences. The servers are installed below .interop/ once, in pinned
# versions; Chromium by apt-get, as root only. What cannot be installed is reported as SKIPPED.
# Needs npm, Python 3.10 or later with venv, and git. Ends with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
here=$PWD/scripts/same_answers
export INTEROP_HOME=$PWD/.interop
mkdir -p "$INTEROP_HOME/failed" "$INTEROP_HOME/optional"
# shellcheck source=scripts/interop/install.sh
. "$PWD/scripts/interop/install.sh"

# Runs an installation, whose log stays where the sequences find the reason if it fails.
attempt() {
    local name=$1
    shift
    if "$@" >"$INTEROP_HOME/failed/$name" 2>&1; then
        rm "$INTEROP_HOME/failed/$name"
    else
        echo "same_answers: $name is not installed, see $INTEROP_HOME/failed/$name" >&2
    fi
}

# A server in a folder of its own, so that none of them fails because another one does.
optional() {
    local name=$1 kind=$2 folder=$INTEROP_HOME/optional/$1
    shift 2
    [ "$(cat "$folder/installed" 2>/dev/null)" = "$*" ] && return
    echo "same_answers: installing $name" >&2
    rm -rf "$folder"
    mkdir -p "$folder"
    attempt "$name" "install_$kind" "$folder" "$@"
    if [ ! -e "$INTEROP_HOME/failed/$name" ]; then echo "$*" >"$folder/installed"; fi
}

install_modules() {
    npm install --prefix "$1" --no-audit --no-fund --ignore-scripts --loglevel=error "${@:2}"
}

install_venv() {
    python3 -m venv "$1/venv" &&
        "$1/venv/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

install_chromium() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "Chromium is missing, and installing it needs root and apt-get"
        return 1
    fi
    echo "same_answers: installing Chromium" >&2
    apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium
}

attempt npm install_npm
attempt pip install_pip
optional thinking modules @modelcontextprotocol/server-sequential-thinking@2026.8.31
optional playwright modules @playwright/mcp@0.0.83
optional fetch venv mcp-server-fetch==2026.10.24
# It does not start with mcp 2.
optional sqlite venv mcp-server-sqlite==2025.4.25 mcp==1.30.0
if [ ! -x /usr/bin/chromium ]; then attempt chromium install_chromium; fi

export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$here:$PWD/scripts/interop
exec python3 "$here/run.py" "$@"
