#!/usr/bin/env bash
# Drives real MCP servers through the gateway with third-party clients.
#
#   scripts/interop.sh                   through target/release/tollgate, built if need be
#   GATEWAY=path scripts/interop.sh      through another binary
#   GATEWAY=none scripts/interop.sh      clients and servers directly: checks the checks
#   scripts/interop.sh list effects      only some of: list use serve inspector effects kill
#
# Everything it needs, in pinned versions, is installed below .interop/ once and then reused.
# Needs npm, Python 3.10 or later with venv, git and pgrep. Ends with `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/scripts/interop
export INTEROP_HOME=$PWD/.interop

mkdir -p "$INTEROP_HOME"

# Each half is marked complete by a copy of the file that pins it, written last.
if ! cmp -s "$here/package.json" "$INTEROP_HOME/npm.installed"; then
    echo "interop: installing the npm packages"
    rm -rf "$INTEROP_HOME/node_modules" "$INTEROP_HOME/package-lock.json"
    cp "$here/package.json" "$INTEROP_HOME/package.json"
    npm install --prefix "$INTEROP_HOME" --no-audit --no-fund --loglevel=error </dev/null
    # These two unpack themselves in install scripts, which npm can be told not to run.
    "$INTEROP_HOME/node_modules/node/bin/node" \
        "$INTEROP_HOME/node_modules/.bin/mcp-inspector" --cli --version >/dev/null
    cp "$here/package.json" "$INTEROP_HOME/npm.installed"
fi
if ! cmp -s "$here/requirements.txt" "$INTEROP_HOME/pip.installed"; then
    echo "interop: installing the Python packages"
    rm -rf "$INTEROP_HOME/venv"
    python3 -m venv "$INTEROP_HOME/venv"
    "$INTEROP_HOME/venv/bin/pip" install --quiet --disable-pip-version-check \
        --requirement "$here/requirements.txt" </dev/null
    cp "$here/requirements.txt" "$INTEROP_HOME/pip.installed"
fi

case "${GATEWAY:-}" in
    none) GATEWAY= ;;
    "")
        cargo build --release --package tollgate-gateway
        GATEWAY=${CARGO_TARGET_DIR:-$PWD/target}/release/tollgate
        ;;
    *) GATEWAY=$(realpath "$GATEWAY") ;;
esac
export GATEWAY

export PYTHONDONTWRITEBYTECODE=1
exec "$INTEROP_HOME/venv/bin/python" "$here/run.py" "$@" </dev/null
