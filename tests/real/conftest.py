"""Fixtures of the real-parts suite: the binary under test and the parts it is tested with.

The suite starts `$HIKITE_BIN` as a subprocess and talks to it with published clients, in
front of published servers. Nothing is mocked and nothing is downloaded: everything was
put in place by tests/install.sh.
"""

import os
import shutil
from pathlib import Path

import pytest

from gateway import Gateway
from parts import Parts

REPOSITORY = Path(__file__).resolve().parents[2]

# A proxy of the machine must not see what goes over loopback.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def binary() -> Path:
    named = os.environ.get("HIKITE_BIN")
    if not named:
        pytest.exit("set HIKITE_BIN to the hikite binary under test", returncode=2)
    found = shutil.which(named)
    if not found:
        pytest.exit(f"HIKITE_BIN is {named}, which cannot be run", returncode=2)
    return Path(found).resolve()


@pytest.fixture(scope="session")
def parts() -> Parts:
    cache = Path(os.environ.get("HIKITE_TEST_CACHE") or REPOSITORY / ".cache" / "tests")
    if not (cache / "node" / ".stamp").exists():
        pytest.exit("run tests/install.sh first", returncode=2)
    return Parts(cache.resolve())


@pytest.fixture(scope="module")
def start_gateway(binary, tmp_path_factory):
    """Starts a gateway from a config. At the end of the module each one must stop cleanly."""
    running: list[Gateway] = []

    def start(config: dict | str) -> Gateway:
        gateway = Gateway(binary, config, tmp_path_factory.mktemp("gateway"))
        running.append(gateway)
        gateway.start()
        return gateway

    yield start

    failures = []
    for gateway in reversed(running):
        try:
            gateway.stop()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n\n".join(failures)
