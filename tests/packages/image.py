"""The container image without a container engine: what its build is given, and the program in its file system."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from fnmatch import fnmatchcase
from pathlib import Path

SECONDS = 60
INCLUDE = re.compile(r'include_(?:str|bytes)!\(\s*(concat!\(\s*env!\("CARGO_MANIFEST_DIR"\)\s*,\s*)?"([^"]+)"')


def check_context(root: Path, copy: Path) -> None:
    """Copies exactly what .dockerignore admits, and checks that cargo has all it needs there."""
    files = admitted(root)
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, copy / name)
    command = ["cargo", "metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packages = {package["name"]: package for package in json.loads(done.stdout)["packages"]}
    for package in packages.values():
        for target in package["targets"]:
            assert Path(target["src_path"]).is_file(), f"{target['src_path']} is not admitted"
    for name in linked(packages, "hikite"):
        folder = Path(packages[name]["manifest_path"]).parent
        for source in sorted((folder / "src").rglob("*.rs")):
            # Tests are not part of the image.
            text = source.read_text().split("#[cfg(test)]")[0]
            if "test" in source.relative_to(folder).as_posix():
                continue
            for in_crate, name in INCLUDE.findall(text):
                path = Path(f"{folder}{name}") if in_crate else source.parent / name
                assert path.is_file(), f"{source.relative_to(copy)} includes {name}, which is not admitted"
    assert {"target", ".git", ".cache", "docs", "tests"}.isdisjoint(name.parts[0] for name in files)


def linked(packages: dict[str, dict], name: str) -> set[str]:
    """A crate of the workspace and those that it is built from."""
    used = {one["name"] for one in packages[name]["dependencies"] if one.get("path") and one["kind"] != "dev"}
    return {name}.union(*(linked(packages, one) for one in used))


def admitted(root: Path) -> list[Path]:
    """Files of the working tree that are sent to the build, by the rules of Docker: the last pattern that matches counts."""
    lines = (line.strip() for line in (root / ".dockerignore").read_text().splitlines())
    rules = [line for line in lines if line and not line.startswith("#")]

    def is_admitted(path: Path) -> bool:
        places = [path, *path.parents[:-1]]
        result = True
        for rule in rules:
            pattern = rule.removeprefix("!").strip("/")
            if any(matches(place, pattern) for place in places):
                result = rule.startswith("!")
        return result

    tops = [path for path in root.iterdir() if is_admitted(path.relative_to(root))]
    files = [file for top in tops for file in ([top] if top.is_file() else top.rglob("*")) if file.is_file()]
    return [file.relative_to(root) for file in files if is_admitted(file.relative_to(root))]


def matches(path: Path, pattern: str) -> bool:
    """Compares part by part: `*` does not match a slash."""
    parts = pattern.split("/")
    return len(parts) == len(path.parts) and all(map(fnmatchcase, path.parts, parts))


def stage(dockerfile: Path, name: str) -> list[list[str]]:
    """The instructions of one stage, as words."""
    text = dockerfile.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [shlex.split(line) for line in lines]
    begin = next(at for at, words in enumerate(instructions) if words[0] == "FROM" and words[-1] == name)
    end = next((at for at in range(begin + 1, len(instructions)) if instructions[at][0] == "FROM"), len(instructions))
    return instructions[begin + 1 : end]


def check_localhost(dockerfile: Path, program: Path, folder: Path) -> None:
    """Runs the program as the image does, in a root folder of its own: its user, its variables, PORT from outside."""
    instructions = stage(dockerfile, "hikite")
    environment = dict(word.split("=", 1) for words in instructions if words[0] == "ENV" for word in words[1:])
    assert environment["HOST"] == "0.0.0.0" and "HIKITE_LISTEN" not in environment, environment
    full = dict(word.split("=", 1) for words in stage(dockerfile, "full") if words[0] == "ENV" for word in words[1:])
    assert full["HOST"] == "0.0.0.0" and "HIKITE_LISTEN" not in full, full
    user = next(words[1] for words in instructions if words[0] == "USER")
    root = folder / "rootfs"
    for name in ("usr/local/bin", "data", "proc", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(program, root / "usr/local/bin/hikite")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", libraries):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    os.chmod(root / "tmp", 0o1777)
    port = free_port()
    variables = environment | {"PORT": str(port)}
    if os.geteuid() == 0:
        owner, group = map(int, user.split(":"))
        assert owner != 0 and group != 0, user
        os.chown(root / "data", owner, group)
        # As in a container there is a /proc. The mount is gone with the process.
        enter = 'mount --rbind /proc "$0/proc" && exec chroot --userspec="$1" "$0" /usr/local/bin/hikite "${@:2}"'
        command = ["unshare", "--mount", "bash", "-c", enter, str(root), user]
    else:
        command = [str(program)]
        variables["HIKITE_DATA"] = str(root / "data")
    run = lambda more, *words: subprocess.run([*command, *words], env=variables | more, capture_output=True, text=True, timeout=SECONDS)
    path = {"PATH": os.environ["PATH"]} if os.geteuid() == 0 else {}
    refused = run(path, "serve")
    assert refused.returncode == 2 and f"http://localhost:{port}" in refused.stderr, refused.stderr
    local = path | {"HIKITE_PUBLIC_URL": f"http://localhost:{port}"}
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "serve"], env=variables | local, stdout=output, stderr=output)
    try:
        wait_until_ready(port, process, log)
        assert run(local, "health").stdout.strip() == "ok"
        token = (root / "data/token").read_text().strip()
        statuses = [status(port, host, token) for host in ("localhost", "127.0.0.1", "hikite", "192.0.2.1")]
        assert statuses == [200, 200, 403, 403], statuses
        assert status(port, "localhost", "a-wrong-token-of-somebody") == 401
        if os.geteuid() == 0:
            owner = Path(f"/proc/{process.pid}").stat().st_uid
            assert owner == int(user.split(":")[0]), f"it runs as {owner}"
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(SECONDS)
    assert code == 0, log.read_text()


def wait_until_ready(port: int, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"hikite does not start:\n{log.read_text()}")


def status(port: int, host: str, token: str) -> int:
    headers = {"Host": f"{host}:{port}", "Authorization": f"Bearer {token}"}
    try:
        return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v1/me", headers=headers), timeout=30).status
    except urllib.error.HTTPError as error:
        return error.code


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
