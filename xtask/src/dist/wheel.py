"""Packs a folder as a wheel: wheel.py FOLDER RECORD FILE TIME. Writes the hashes of all files to RECORD, the last entry."""

import base64
import hashlib
import sys
import time
import zipfile
from pathlib import Path

folder, record, file, seconds = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
moment = time.gmtime(max(seconds, 315532800))[:6]
lines = []
with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

    def add(name: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, moment)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        archive.writestr(entry, content)

    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
        add(name, content, path.stat().st_mode & 0o777)
    add(record, ("".join(lines) + f"{record},,\n").encode(), 0o644)
