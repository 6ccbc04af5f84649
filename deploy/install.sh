#!/bin/sh
# Installs @NAME@ @VERSION@: downloads the archive of this platform, checks its SHA-256 and unpacks it.
#
#   sh install.sh                    into ~/.local, or /usr/local as root
#   sh install.sh --prefix DIR       into another folder: DIR/bin/@NAME@, DIR/share/doc/@NAME@
#   sh install.sh --from DIR|URL     from a folder or another server
set -eu

name=@NAME@ version=@VERSION@
from=@DOWNLOAD@
prefix="${HOME:-}/.local"
[ "$(id -u)" != 0 ] || prefix=/usr/local

fail() { # what, what to do
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) prefix="${2:?a folder}" ;;
        --from) from="${2:?a folder or an address}" ;;
        *) fail "$1 is unknown" "There are --prefix DIR and --from DIR|URL." ;;
    esac
    shift 2
done

fetch() { # file name, target
    case "$from" in
        https://* | http://*)
            if command -v curl >/dev/null; then
                curl --proto '=https,http' -fsSL -o "$2" "$from/$1"
            else
                wget -q -O "$2" "$from/$1"
            fi
            ;;
        *) cp "$from/$1" "$2" ;;
    esac || fail "$from/$1 cannot be read" "Check the address and the network, or name a folder with --from."
}

[ "$(uname -s)" = Linux ] || fail "there is no program for $(uname -s)" "Build it from source."
case "$(uname -m)" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no program for $(uname -m)" "Build it from source." ;;
esac

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
fetch SHA256SUMS "$work/SHA256SUMS"

# The static program runs everywhere; the other one needs glibc.
archive=
for libc in musl gnu; do
    candidate="$name-$version-$machine-unknown-linux-$libc"
    if grep -q " $candidate.tar.gz\$" "$work/SHA256SUMS"; then
        archive="$candidate"
        break
    fi
done
[ -n "$archive" ] || fail "$from has no archive for $machine" "Build it from source."

fetch "$archive.tar.gz" "$work/$archive.tar.gz"
grep " $archive.tar.gz\$" "$work/SHA256SUMS" >"$work/sum"
(cd "$work" && sha256sum -c sum >/dev/null 2>&1) ||
    fail "the SHA-256 of $archive.tar.gz is wrong" "Nothing was installed. Download it again."
tar -xzf "$work/$archive.tar.gz" -C "$work"
"$work/$archive/$name" --version >/dev/null 2>&1 ||
    fail "$archive does not run on this system" "It may need a newer glibc. Use the container image, or build it from source."

mkdir -p "$prefix/bin" "$prefix/share/doc/$name"
# A running program is replaced, not overwritten.
cp "$work/$archive/$name" "$prefix/bin/.$name.new"
chmod 755 "$prefix/bin/.$name.new"
mv -f "$prefix/bin/.$name.new" "$prefix/bin/$name"
for file in "$work/$archive"/*; do
    [ "${file##*/}" = "$name" ] || cp "$file" "$prefix/share/doc/$name/"
done
echo "$prefix/bin/$name"
case ":${PATH:-}:" in
    *":$prefix/bin:"*) ;;
    *) echo "hint: Add $prefix/bin to PATH." >&2 ;;
esac
