# Installs the servers and clients that scripts/interop.sh and scripts/same_answers.sh share, in
# pinned versions, below $INTEROP_HOME. Sourced. Each half is marked complete by a copy of the file
# that pins it, written last; a caller can test whether a half failed. Scripts that start at once
# install one after another, where the system has `flock`.

install_npm() { alone npm_packages; }

# install_pip [-1]: the current Python packages, or those of servers on version 1 of the SDK.
install_pip() { alone pip_packages "$@"; }

alone() {
    (
        if command -v flock >/dev/null; then flock 9; fi
        "$@" 9>&-
    ) 9>"$INTEROP_HOME/lock"
}

npm_packages() {
    local pins=$PWD/scripts/interop/package.json
    cmp -s "$pins" "$INTEROP_HOME/npm.installed" && return
    echo "installing the npm packages" >&2
    rm -rf "$INTEROP_HOME/node_modules" "$INTEROP_HOME/package-lock.json" &&
        cp "$pins" "$INTEROP_HOME/package.json" &&
        npm install --prefix "$INTEROP_HOME" --no-audit --no-fund --loglevel=error </dev/null &&
        # These two unpack themselves in install scripts, which npm can be told not to run.
        "$INTEROP_HOME/node_modules/node/bin/node" \
            "$INTEROP_HOME/node_modules/.bin/mcp-inspector" --cli --version >/dev/null &&
        cp "$pins" "$INTEROP_HOME/npm.installed"
}

pip_packages() {
    local pins=$PWD/scripts/interop/requirements${1:-}.txt venv=$INTEROP_HOME/venv${1:-}
    cmp -s "$pins" "$venv.installed" && return
    echo "installing the Python packages of ${pins##*/}" >&2
    rm -rf "$venv" &&
        python3 -m venv "$venv" &&
        "$venv/bin/pip" install --quiet --disable-pip-version-check \
            --requirement "$pins" </dev/null &&
        cp "$pins" "$venv.installed"
}
