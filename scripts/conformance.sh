#!/usr/bin/env bash
# Runs the official conformance suite of MCP against the gateway, and directly against the server
# behind it. What passes directly and fails through the gateway is a defect of the gateway.
#
#   scripts/conformance.sh                   through target/release/callward, built if need be
#   GATEWAY=path scripts/conformance.sh      through another binary
#   GATEWAY=none scripts/conformance.sh      the server directly: checks the server
#   FIXTURE=path scripts/conformance.sh      with a testkit built before: its binary `conformance`
#   scripts/conformance.sh 2026-stdio        only some of: 2025-http 2025-stdio 2026-http 2026-stdio
#                                            2025-client 2026-client; also 2025-modern 2026-legacy,
#                                            which run only by name
#
# `2025` and `2026` are the revisions 2025-11-25 and 2026-07-28, by which the suite's client talks
# to the gateway and the gateway to the server, over HTTP or stdio; with `modern` and `legacy` the
# server is of the other era. In the sets `client` the suite is the server behind the gateway.
#
# Prints a table, and each scenario that only fails through the gateway with the checks that fail.
# Exit code 1 if there is one, unless scripts/interop/conformance.expected lists exactly these, a
# line each: `SET SCENARIO`. The suite is installed below .interop/ once, in a pinned version; this
# needs npm and Python 3.10 or later. Without npm nothing is checked. Logs: .interop/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/scripts/interop
export INTEROP_HOME=$PWD/.interop
mkdir -p "$INTEROP_HOME"

if ! command -v npm >/dev/null; then
    echo "SKIPPED: conformance: npm is not installed, so NOTHING is checked" >&2
    exit 0
fi
# shellcheck source=scripts/interop/install.sh
. "$here/install.sh"
install_npm

target=${CARGO_TARGET_DIR:-$PWD/target}
case "${GATEWAY:-}" in
    none) GATEWAY= ;;
    "")
        cargo build --release --package callward-gateway
        GATEWAY=$target/release/callward
        ;;
    *) GATEWAY=$(realpath "$GATEWAY") ;;
esac
if [ -z "${FIXTURE:-}" ]; then
    cargo build --quiet --package callward-testkit --features conformance --bin conformance
    FIXTURE=$target/debug/conformance
fi
export GATEWAY FIXTURE

export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/conformance.py" "$@" </dev/null
