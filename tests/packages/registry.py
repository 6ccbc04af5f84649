"""An npm registry on loopback with the given tarballs and nothing else."""

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


class Registry:
    def __init__(self, tarballs: Iterable[Path]):
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = unquote(self.path).lstrip("/")
                content = registry.tarballs.get(path) or registry.document(path)
                self.send_response(200 if content else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.tarballs = {path.name: path.read_bytes() for path in tarballs}
        self.manifests = {name: manifest(content) for name, content in self.tarballs.items()}

    def document(self, package: str) -> bytes:
        """The description of a package in the form of the registry API; empty if there is none."""
        for file, described in self.manifests.items():
            if described["name"] == package:
                digest = base64.b64encode(hashlib.sha512(self.tarballs[file]).digest()).decode()
                version = described | {"dist": {"tarball": f"{self.url}/{file}", "integrity": f"sha512-{digest}"}}
                number = described["version"]
                return json.dumps(
                    {"name": package, "dist-tags": {"latest": number}, "versions": {number: version}}
                ).encode()
        return b""

    def __enter__(self) -> "Registry":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def manifest(tarball: bytes) -> dict:
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        return json.load(archive.extractfile("package/package.json"))
