#!/usr/bin/env bash
# Measures Callward beside what else could stand in its place, and writes docs/benchmarks.md.
#
#   scripts/compare.sh                    everything: about 20 minutes on two cores, builds included
#   scripts/compare.sh --quick            fewer calls and shorter rounds, to see whether all of it works
#   scripts/compare.sh --only Callward    one configuration; more with more --only. The page is left alone
#   scripts/compare.sh --report           measures nothing: the page from docs/benchmarks/
#
# Everything is built and installed below the target directory, in pinned versions, and reused; what
# does not install is told in the table. Reports of benches in target/bench-reports/, as NAME.md or
# NAME.txt, are taken into docs/benchmarks/ and shown on the page. Needs cargo, npm, Python 3.10 or later with
# venv, and Linux, for /proc. Nothing else should run meanwhile. CALLWARD=FILE measures that program in place of
# the one this repository builds.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

here=$PWD/benches/peers
target=${CARGO_TARGET_DIR:-$PWD/target}
home=$target/peers
# programs that are only there to be measured, or to measure
programs=${PEERS_TARGET_DIR:-$home/cargo}
folder=$PWD/docs/benchmarks
began=$SECONDS
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

say() {
    local seconds=$((SECONDS - began))
    printf '%3d:%02d %s\n' $((seconds / 60)) $((seconds % 60)) "$*" >&2
}

quick=() only=() report=
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=(--quick) ;;
        --only) only+=(--only "$2") && shift ;;
        --report) report=yes ;;
        *) echo "compare.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done

# Runs a command. What it says goes to a file, and the end of that, if it fails, to where the table finds it.
install() {
    local name=$1
    shift
    rm -f "$home/failed/$name"
    say "$name: installing or building"
    if "$@" >"$home/logs/install-$name.log" 2>&1; then
        say "$name: done"
    else
        say "$name: failed, see $home/logs/install-$name.log"
        tail -n 3 "$home/logs/install-$name.log" >"$home/failed/$name"
    fi
}

# Each is marked complete by a copy of the file that pins it, written last. A condition calls these, and
# switches `-e` off in them.
fastmcp() {
    cmp -s "$here/fastmcp/requirements.txt" "$home/venv/installed" && return
    rm -rf "$home/venv" && python3 -m venv "$home/venv" &&
        "$home/venv/bin/pip" install --quiet --disable-pip-version-check \
            --requirement "$here/fastmcp/requirements.txt" &&
        cp "$here/fastmcp/requirements.txt" "$home/venv/installed"
}

neurolink() {
    mkdir -p "$home/node" && cp "$here"/neurolink/{front.mjs,package.json,package-lock.json,.npmrc} "$home/node/" ||
        return
    cmp -s "$here/neurolink/package-lock.json" "$home/node/installed" && return
    (cd "$home/node" && npm ci --loglevel=error) &&
        cp "$here/neurolink/package-lock.json" "$home/node/installed"
}

peers() {
    cargo build --locked --release --manifest-path "$here/Cargo.toml" --target-dir "$programs" "$@"
}

callward() {
    cargo build --locked --profile dist --package callward-gateway --bin callward
}

# Says every half minute what the builds have come to, for as long as there are any.
progress() {
    local log at
    # what is left of a pause when this ends must hold no pipe open
    while sleep 30 >/dev/null 2>&1; do
        at=
        for log in "$home"/logs/install-{callward,mcp-proxy}.log; do
            [ -e "$log" ] && at+=" [$(tail -n 1 "$log" | sed 's/^ *//')]"
        done
        say "at work:$at"
    done
}

# Whether one whose name begins so is measured.
wanted() {
    [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" --only $1"* ]]
}

mkdir -p "$home/logs" "$home/failed" "$folder"
if [ -z "$report" ]; then
    rm -f "$home"/logs/install-*.log "$home/failed/callward"
    progress &
    progress=$!
    trap 'kill "$progress" 2>/dev/null' EXIT
    installing=()
    if wanted FastMCP; then
        install fastmcp fastmcp &
        installing+=($!)
    fi
    if wanted NeuroLink; then
        install neurolink neurolink &
        installing+=($!)
    fi
    if wanted Callward && [ -z "${CALLWARD:-}" ]; then
        install callward callward &
        installing+=($!)
    fi
    # All of the workspace in one go, so that nothing is built twice with other features, and of its
    # programs those that are run.
    install mcp-proxy peers --workspace --bin compare --bin upstream --bin rs-proxy
    if [ -e "$home/failed/mcp-proxy" ]; then
        say "building the upstream and the driver"
        peers --quiet --package peers-upstream --package peers-compare --bin compare --bin upstream
    fi
    # without a name it would wait for the progress, too
    if [ ${#installing[@]} -gt 0 ]; then wait "${installing[@]}"; fi
    kill "$progress" && trap - EXIT
    if [ -e "$home/failed/callward" ]; then
        cat "$home/logs/install-callward.log" >&2
        exit 1
    fi
    say "measuring"
    out=$folder/peers.json
    if [ ${#only[@]} -gt 0 ]; then out=$home/only.json; fi
    "$programs/release/compare" run --programs "$programs/release" \
        --callward "${CALLWARD:-$target/dist/callward}" --home "$home" --sources "$here" \
        --out "$out" --elapsed $((SECONDS - began)) "${quick[@]}" "${only[@]}"
    if [ ${#only[@]} -gt 0 ]; then
        say "done: $out"
        exit
    fi
else
    peers --quiet --workspace --bin compare
fi
if [ -d "$target/bench-reports" ]; then
    find "$target/bench-reports" -maxdepth 1 \( -name '*.md' -o -name '*.txt' \) -exec cp {} "$folder/" \;
fi
"$programs/release/compare" report --page docs/benchmarks.md --folder "$folder"
say "done: docs/benchmarks.md"
