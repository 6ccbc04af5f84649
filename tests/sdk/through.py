"""Puts hikite between the suite's server and a client: what the suite starts in the place of the client.

    python through.py serve|stdio HIKITE FOLDER CLIENT… URL

hikite gets the address of the suite's server as its one module; the client gets hikite's, or the command of
`hikite stdio` in `HIKITE_STDIO`. Ends as the client does.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_SECONDS = 120
STOP_SECONDS = 20


def main() -> int:
    way, hikite, folder, *client, url = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(dir=folder))
    config = folder / "hikite.json"
    config.write_text(json.dumps({"auth": {"mode": "none"}, "mcpServers": {"suite": {"url": url}}}))
    common = ["--config", str(config), "--data", str(folder / "data"), "--log", "info"]
    if way == "stdio":
        program = [hikite, "stdio", *common, "--surface", "direct"]
        return subprocess.run([*client, url], env=os.environ | {"HIKITE_STDIO": json.dumps(program)}).returncode
    log = folder / "hikite.log"
    with log.open("w") as output:
        gateway = subprocess.Popen([hikite, "serve", *common, "--listen", "127.0.0.1:0"], stdout=output, stderr=output)
    try:
        front = wait_for(gateway, log)
        return subprocess.run([*client, f"{front}/mcp?surface=direct"]).returncode
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(STOP_SECONDS)


def wait_for(gateway: subprocess.Popen, log: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and gateway.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text()):
            return found[0]
        time.sleep(0.02)
    raise SystemExit(f"hikite does not start:\n{log.read_text()[-1000:]}")


if __name__ == "__main__":
    sys.exit(main())
