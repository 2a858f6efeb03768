#!/usr/bin/env bash
# Drives real MCP servers through the gateway with third-party clients.
#
#   scripts/interop.sh                   through target/release/callward, built if need be
#   GATEWAY=path scripts/interop.sh      through another binary
#   GATEWAY=none scripts/interop.sh      clients and servers directly: checks the checks
#   scripts/interop.sh list effects      only some of:
#                                        list use serve inspector effects kill upgrades
#                                        remote oauth approvals
#
# Everything it needs, in pinned versions, is installed below .interop/ once and then reused.
# Needs npm, Python 3.10 or later with venv, git and pgrep. Ends with `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/scripts/interop
export INTEROP_HOME=$PWD/.interop

mkdir -p "$INTEROP_HOME"

# shellcheck source=scripts/interop/install.sh
. "$here/install.sh"
install_npm
install_pip
install_pip -1

case "${GATEWAY:-}" in
    none) GATEWAY= ;;
    "")
        cargo build --release --package callward-gateway
        GATEWAY=${CARGO_TARGET_DIR:-$PWD/target}/release/callward
        ;;
    *) GATEWAY=$(realpath "$GATEWAY") ;;
esac
export GATEWAY
# an example, which `.ci/run` builds before
export OAUTH_CLIENT=${CARGO_TARGET_DIR:-$PWD/target}/debug/examples/oauth_client

export PYTHONDONTWRITEBYTECODE=1
exec "$INTEROP_HOME/venv/bin/python" "$here/run.py" "$@" </dev/null
