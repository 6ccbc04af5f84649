"""Fetches Go sources from Debian's archive and unpacks them into a GOPATH.

    python fetch.py tests/pins/debian.txt GOPATH

Files that are pinned are checked against their hash. Debian removes a file when a newer version replaces it; then the
package of testing is taken, checked against the hash in Debian's index.
"""

import hashlib
import io
import lzma
import re
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

ARCHIVE = "https://deb.debian.org/debian"
TIMEOUT_SECONDS = 120
# Go sources inside a package of a library, and inside the packaging of gopls.
ROOTS = ("./usr/share/gocode/src/", "debian/go/src/")


def main() -> None:
    pins, target = Path(sys.argv[1]), Path(sys.argv[2]) / "src"
    for line in pins.read_text().splitlines():
        if line and not line.startswith("#"):
            name, path, digest = line.split()
            file, data = fetch(name, path, digest)
            unpack(data if file.endswith(".tar.xz") else data_of_deb(data), target)


def fetch(name: str, path: str, digest: str) -> tuple[str, bytes]:
    try:
        data = get(path)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        path, digest = current(name, path)
        data = get(path)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise SystemExit(f"{path} has the SHA-256 {found}, not {digest}")
    return path, data


def get(path: str) -> bytes:
    with urllib.request.urlopen(f"{ARCHIVE}/{path}", timeout=TIMEOUT_SECONDS) as answer:
        return answer.read()


def current(name: str, pinned: str) -> tuple[str, str]:
    """File and hash of a package in testing."""
    is_binary = pinned.endswith(".deb")
    index = "binary-amd64/Packages.xz" if is_binary else "source/Sources.xz"
    text = lzma.decompress(get(f"dists/testing/main/{index}")).decode()
    entry = next((entry for entry in text.split("\n\n") if entry.startswith(f"Package: {name}\n")), "")
    if is_binary:
        found = re.search(r"^Filename: (.+)$(?:.|\n)*^SHA256: (.+)$", entry, re.MULTILINE)
        return (found[1], found[2]) if found else missing(name)
    folder = re.search(r"^Directory: (.+)$", entry, re.MULTILINE)
    found = re.search(r"^ ([0-9a-f]{64}) \d+ (\S+\.debian\.tar\.xz)$", entry, re.MULTILINE)
    return (f"{folder[1]}/{found[2]}", found[1]) if folder and found else missing(name)


def missing(name: str):
    raise SystemExit(f"Debian testing has no package {name}")


def data_of_deb(deb: bytes) -> bytes:
    """The archive of files in a package, which is an ar archive."""
    at = 8
    while at < len(deb):
        name, size = deb[at : at + 16].decode().strip(), int(deb[at + 48 : at + 58])
        if name.rstrip("/") == "data.tar.xz":
            return deb[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise SystemExit("a package without data.tar.xz")


def unpack(archive: bytes, target: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:xz") as files:
        for member in files:
            root = next((root for root in ROOTS if member.name.startswith(root)), None)
            if root and member.isfile() and not member.name.endswith("_test.go"):
                file = target / member.name.removeprefix(root)
                if not file.resolve().is_relative_to(target.resolve()):
                    raise SystemExit(f"{member.name} leads out of the folder")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(files.extractfile(member).read())


if __name__ == "__main__":
    main()
