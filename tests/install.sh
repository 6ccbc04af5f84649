#!/usr/bin/env bash
# Installs the real MCP servers and clients that tests/real and tests/conformance.sh drive, and
# the encoder that tests/toon compares ours with:
# two Python environments (the SDK's current line and its 1.x line) and one npm folder, all
# from the exact versions in tests/pins. Does nothing, silently, while the pins are unchanged.
# Nothing is downloaded after this: the tests start everything by path from here.
#
#   HIKITE_TEST_CACHE   where to install (default: .cache/tests in the repository)
#   PYTHON              the interpreter for the environments (default: python3)
set -euo pipefail

tests="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${HIKITE_TEST_CACHE:-$(dirname "$tests")/.cache/tests}"
python="${PYTHON:-python3}"

fail() {
    echo "tests/install.sh: $1" >&2
    exit 1
}

hash_of() {
    cat "$@" | sha256sum | cut -d' ' -f1
}

# A stamp is written last, so an interrupted install is begun anew.
is_current() { # folder, hash
    [[ -f "$1/.stamp" && "$(<"$1/.stamp")" == "$2" ]]
}

install_python() { # name, requirements file
    local folder="$cache/$1" pins="$tests/pins/$2" stamp log
    stamp="$(hash_of "$pins")-$("$python" -c 'import platform; print(platform.python_version())')"
    is_current "$folder" "$stamp" && return
    echo "installing the Python packages of pins/$2"
    rm -rf "$folder"
    "$python" -m venv "$folder" || fail "cannot create a Python environment with $python"
    log="$folder/install.log"
    if ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        -r "$pins" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "pip could not install pins/$2 (see above)"
    fi
    "$folder/bin/python" -m pip check >"$log" 2>&1 || { cat "$log" >&2; fail "pins/$2 is not complete"; }
    echo "$stamp" >"$folder/.stamp"
}

install_node() {
    local folder="$cache/node" stamp log
    stamp="$(hash_of "$tests/pins/package.json" "$tests/pins/package-lock.json")"
    is_current "$folder" "$stamp" && return
    echo "installing the npm packages of pins/package.json"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$tests/pins/package.json" "$tests/pins/package-lock.json" "$folder/"
    log="$folder/install.log"
    # No install script is needed: Node 22 comes as a plain package with the binary in it.
    if ! (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "npm could not install pins/package.json (see above)"
    fi
    # What only Node's own addons need; 60 MB.
    rm -rf "$folder"/node_modules/node-linux-*/include
    echo "$stamp" >"$folder/.stamp"
}

# Says by name what is missing, instead of a test failing later for want of it.
check() {
    local path missing=()
    for path in python/bin/{pytest,schemathesis,biomcp,mcp-server-fetch,mcp-server-git,mcp-server-time} \
        python-1x/bin/{serena,mcp-server-sqlite} \
        node/node_modules/.bin/{conformance,mcp-inspector,mcp-remote,node} \
        node/node_modules/.bin/mcp-server-{everything,filesystem,memory,sequential-thinking} \
        node/node_modules/@modelcontextprotocol/{client,node,sdk,server}/package.json \
        node/node_modules/@toon-format/toon/package.json; do
        [[ -e "$cache/$path" ]] || missing+=("$path")
    done
    ((${#missing[@]} == 0)) || fail "missing after the install: ${missing[*]}"
    node_version="$("$cache/node/node_modules/.bin/node" --version)" || fail "the Node 22 of pins/package.json does not run here"
    [[ "$node_version" == v22.* ]] || fail "node_modules/.bin/node is $node_version, not Node 22"
}

command -v "$python" >/dev/null || fail "$python is not installed"
command -v npm >/dev/null || fail "npm is not installed"
mkdir -p "$cache"
install_python python requirements.txt
install_python python-1x requirements-1x.txt
install_node
check
