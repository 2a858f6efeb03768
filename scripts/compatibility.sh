#!/usr/bin/env bash
# Checks the table of docs/compatibility.md: each feature of MCP between the SDKs for Python,
# TypeScript and Rust, in both eras, and servers of both eras, through the gateway.
#
#   scripts/compatibility.sh              exits 1 with the difference if the page is not true
#   scripts/compatibility.sh --write      writes the page
#   scripts/compatibility.sh everything   compares what a client sees of server-everything through
#                                         the gateway with what it sees without; exits 1 if they differ
#   GATEWAY=path FIXTURE=path             binaries built before: `callward`, and `conformance` of
#                                         the testkit with `rmcp_client` beside it; else debug
#                                         builds are made
#
# The SDKs and the server are installed below .interop/ once, in pinned versions; this needs npm
# and Python 3.10 or later.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/scripts/interop
export INTEROP_HOME=$PWD/.interop
mkdir -p "$INTEROP_HOME"
# shellcheck source=scripts/interop/install.sh
. "$here/install.sh"
install_npm
install_pip

target=${CARGO_TARGET_DIR:-$PWD/target}
if [ -z "${GATEWAY:-}" ]; then
    cargo build --quiet --package callward-gateway
    GATEWAY=$target/debug/callward
fi
if [ -z "${FIXTURE:-}" ]; then
    cargo build --quiet --package callward-testkit --features conformance --bin conformance \
        --bin rmcp_client
    FIXTURE=$target/debug/conformance
fi
GATEWAY=$(realpath "$GATEWAY") FIXTURE=$(realpath "$FIXTURE")
export GATEWAY FIXTURE PYTHONDONTWRITEBYTECODE=1

script=compatibility
if [ "${1:-}" = everything ]; then
    script=everything
    shift
fi
exec "$INTEROP_HOME/venv/bin/python" "$here/$script.py" "$@" </dev/null
