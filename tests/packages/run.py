#!/usr/bin/env python3
"""The packages of `cargo xtask dist`, each installed as a person would: empty home, clean prefix, no network.

    $HIKITE_TEST_CACHE/python/bin/python tests/packages/run.py target/release/hikite

Makes all packages of the given program, installs each, runs `hikite --version` and `hikite serve`, and makes one call with
the Python SDK. Also checks what the image is built from, runs the program in the image's file system, and compares the
Helm chart with deploy/kubernetes.yaml. Ends with 0 if every check passes, 1 if not, 2 if it could not run.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "real")]

import anyio  # noqa: E402
import chart  # noqa: E402
import image  # noqa: E402
from clients import over_http, over_stdio, plain, text_of, tools_with  # noqa: E402
from gateway import Gateway  # noqa: E402
from parts import Parts  # noqa: E402
from registry import Registry  # noqa: E402

CACHE = Path(os.environ.get("HIKITE_TEST_CACHE", ROOT / ".cache/tests"))
# Of processor time, from the first command to the answer of the first call: the time on a machine that does nothing else.
FIRST_CALL_SECONDS = 60
# Of `systemd-analyze security`.
EXPOSURE_MAX = 2.5
DOCUMENTS = {"RELEASE-NOTES.md", "THIRD-PARTY-LICENSES.txt", "sbom.cdx.json"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Installs and tries every package.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--counts", type=Path, help="write `PASSED FAILED` to this file")
    parser.add_argument("--only", help="only checks with this in their name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(options.hikite.resolve(), Path(folder))
        packages.make()
        chosen = [check for check in CHECKS if not options.only or options.only in check.__name__]
        passed = [tried(check, packages) for check in chosen]
    if options.counts:
        options.counts.write_text(f"{sum(passed)} {len(passed) - sum(passed)}\n")
    return 0 if passed and all(passed) else 1


def tried(check, packages: "Packages") -> bool:
    begin = time.monotonic()
    try:
        check(packages)
    except Exception:  # noqa: BLE001
        print(f"FAILED {check.__name__}\n{traceback.format_exc()}", file=sys.stderr)
        return False
    print(f"ok {check.__name__} ({time.monotonic() - begin:.1f} s)")
    return True


class Packages:
    def __init__(self, program: Path, folder: Path):
        self.program, self.folder, self.out = program, folder, folder / "out"
        self.version = run([program, "--version"], os.environ).split()[1]
        self.parts = Parts(CACHE.resolve())

    def make(self) -> None:
        command = ["cargo", "run", "-q", "--locked", "-p", "xtask", "--", "dist", "--binary", self.program, "--out", self.out]
        if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode:
            sys.exit(2)

    def file(self, pattern: str) -> Path:
        found = list(self.out.glob(pattern))
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def scratch(self, name: str) -> tuple[Path, dict[str, str]]:
        """A new folder, and an environment with an empty home and without settings of this machine."""
        folder = self.folder / name
        (folder / "home").mkdir(parents=True)
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        return folder, kept | {"HOME": str(folder / "home")}

    def first_call(self, program: Path, folder: Path, environment: dict, begin: float) -> None:
        """`hikite --version`, `hikite serve` and one call. `begin`: processor time before the installation."""
        assert run([program, "--version"], environment).strip() == f"hikite {self.version}"
        (folder / "serve").mkdir()
        gateway = Gateway(program, self.config(), folder / "serve")
        gateway.start()
        try:
            anyio.run(call_over_http, gateway)
        finally:
            gateway.stop()
        took = processor_seconds() - begin
        assert took < FIRST_CALL_SECONDS, f"the first call took {took:.0f} s"

    def config(self) -> dict:
        return {"mcpServers": {"everything": self.parts.everything()}}


def processor_seconds() -> float:
    """Time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


async def call_over_http(gateway: Gateway) -> None:
    async with over_http(gateway) as client:
        await call(client)


async def call(client) -> None:
    await tools_with(client, {"echo"})
    answer = plain(await client.call_tool("echo", {"message": "from a package"}))
    assert "from a package" in text_of(answer), answer


def run(command: list, environment, folder: Path | None = None, fails: bool = False) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, env=dict(environment), cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + (done.stderr if fails else "")


def every_file_is_named_in_the_checksums(packages: Packages) -> None:
    sums = dict(reversed(line.split("  ")) for line in (packages.out / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in packages.out.iterdir()} - {"SHA256SUMS"}
    for name, expected in sums.items():
        assert hashlib.sha256((packages.out / name).read_bytes()).hexdigest() == expected, name


def every_package_contains_notes_licences_and_sbom(packages: Packages) -> None:
    contents = {"wheel": zipfile.ZipFile(packages.file("*.whl")).namelist()}
    for pattern in ("*.tar.gz", f"hikite-{packages.version}.tgz", "hikite-linux-*.tgz"):
        contents[pattern] = tarfile.open(packages.file(pattern)).getnames()
    listed = run(["dpkg-deb", "-c", packages.file("*.deb")], os.environ)
    contents["deb"] = [line.split()[5] for line in listed.splitlines()]
    for package, names in contents.items():
        missing = DOCUMENTS - {Path(name).name for name in names}
        assert not missing, f"{package}: {missing}"
    licences = (packages.out / "THIRD-PARTY-LICENSES.txt").read_text()
    assert "tokio 1." in licences and "Permission is hereby granted" in licences and "Apache License" in licences
    assert (packages.out / "RELEASE-NOTES.md").read_text().startswith(f"# {packages.version}")


def the_sbom_names_what_is_linked_and_nothing_else(packages: Packages) -> None:
    sbom = json.loads(packages.file("*.cdx.json").read_text())
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["version"]) == ("CycloneDX", packages.version)
    names = {one["name"] for one in sbom["components"]}
    assert {"tokio", "rustls", "sqlx-sqlite", "hikite-core"} <= names
    assert not names & {"proptest", "bolero", "insta", "hikite-testkit", "serde_derive", "syn"}
    references = {one["bom-ref"] for one in sbom["components"]} | {sbom["metadata"]["component"]["bom-ref"]}
    assert references == {one["ref"] for one in sbom["dependencies"]}
    assert {used for one in sbom["dependencies"] for used in one["dependsOn"]} <= references
    assert all(one.get("hashes") or one["name"].startswith("hikite") for one in sbom["components"])


def the_wheel_says_which_glibc_it_needs(packages: Packages) -> None:
    tag = packages.file("*.whl").stem.split("-")[-1]
    program = packages.program.read_bytes()
    versions = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", program)}
    machine = os.uname().machine
    if versions:
        assert tag == "manylinux_%d_%d_%s" % (*max(versions), machine)
    else:
        assert f"musllinux_1_1_{machine}" in tag


def pip_installs_the_wheel(packages: Packages) -> None:
    begin = processor_seconds()
    folder, environment = packages.scratch("pip")
    run([sys.executable, "-m", "venv", folder / "venv"], environment)
    run([folder / "venv/bin/pip", "install", "-q", "--no-index", "--find-links", packages.out, "hikite"], environment)
    packages.first_call(folder / "venv/bin/hikite", folder, environment, begin)
    run([folder / "venv/bin/pip", "uninstall", "-q", "-y", "hikite"], environment)
    assert not (folder / "venv/bin/hikite").exists()


def npx_runs_the_package_of_this_platform(packages: Packages) -> None:
    begin = processor_seconds()
    folder, environment = packages.scratch("npx")
    with Registry(packages.out.glob("*.tgz")) as registry:
        environment |= {"npm_config_registry": registry.url, "npm_config_update_notifier": "false"}
        assert run(["npx", "--yes", "hikite", "--version"], environment, folder).strip() == f"hikite {packages.version}"
    # From here on the package is in npm's cache.
    environment |= {"npm_config_offline": "true"}
    config = folder / "hikite.json"
    config.write_text(json.dumps(packages.config() | {"limits": {"first_list": "60s"}}))

    async def over_npx() -> None:
        words = ["--yes", "hikite", "stdio", "--config", config, "--data", folder / "data", "--surface", "direct"]
        async with over_stdio("npx", words, environment) as client:
            await call(client)

    anyio.run(over_npx)
    # The launcher passes signals on: hikite stops cleanly.
    launcher = next((folder / "home/.npm/_npx").glob("*/node_modules/.bin/hikite"))
    packages.first_call(launcher, folder, environment, begin)
    shutil.rmtree(next((folder / "home/.npm/_npx").glob("*/node_modules/@hikite")))
    assert "error: there is no hikite for" in run([launcher, "--version"], environment, fails=True)


def dpkg_installs_and_removes_the_package(packages: Packages) -> None:
    begin = processor_seconds()
    folder, environment = packages.scratch("dpkg")
    package, root = packages.file("*.deb"), folder / "root"
    fields = run(["dpkg-deb", "--field", package], environment)
    assert f"Version: {packages.version}-1" in fields, fields
    if os.geteuid() != 0:
        run(["dpkg-deb", "-x", package, root], environment)
        packages.first_call(root / "usr/bin/hikite", folder, environment, begin)
        return
    for name in ("etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/systemd", "usr/bin"):
        (root / name).mkdir(parents=True)
    # The packages of this machine, so that dependencies are judged, in an administration of its own.
    shutil.copy("/var/lib/dpkg/status", root / "var/lib/dpkg/status")
    for name in ("passwd", "group"):
        (root / "etc" / name).write_text("")
    shutil.copy("/usr/bin/deb-systemd-helper", root / "usr/bin")
    environment["PATH"] = f"/usr/local/sbin:/usr/sbin:/sbin:{environment['PATH']}"
    dpkg = ["dpkg", f"--root={root}", "--force-script-chrootless"]
    run([*dpkg, "-i", package], environment)
    assert "hikite" in (root / "etc/passwd").read_text(), "no user was created"
    enabled = root / "etc/systemd/system/multi-user.target.wants/hikite.service"
    assert enabled.is_symlink(), "the service is not enabled"
    packages.first_call(root / "usr/bin/hikite", folder, environment, begin)
    config = root / "etc/hikite/hikite.json"
    assert run([root / "usr/bin/hikite", "config", "check", "--config", config], environment) is not None
    config.write_text("{}")
    run([*dpkg, "-r", "hikite"], environment)
    assert not (root / "usr/bin/hikite").exists() and config.read_text() == "{}", "a removal keeps the config"
    run([*dpkg, "--purge", "hikite"], environment)
    assert not config.exists() and not enabled.is_symlink(), "a purge removes both"


def the_unit_is_hardened(packages: Packages) -> None:
    folder, environment = packages.scratch("unit")
    run(["dpkg-deb", "-x", packages.file("*.deb"), folder], environment)
    unit = folder / "usr/lib/systemd/system/hikite.service"
    said = run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit], environment)
    level = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1])
    assert level < EXPOSURE_MAX, said
    text = unit.read_text()
    for line in ("User=hikite", "StateDirectory=hikite", "ProtectSystem=strict", "NoNewPrivileges=yes"):
        assert f"\n{line}\n" in text, line


def the_install_script_checks_the_archive(packages: Packages) -> None:
    begin = processor_seconds()
    folder, environment = packages.scratch("script")
    script, prefix = packages.out / "install.sh", folder / "prefix"
    run(["sh", script, "--from", packages.out, "--prefix", prefix], environment)
    packages.first_call(prefix / "bin/hikite", folder, environment, begin)
    documents = {path.name for path in (prefix / "share/doc/hikite").iterdir()}
    assert DOCUMENTS <= documents, documents
    wrong, elsewhere = folder / "wrong", folder / "elsewhere"
    wrong.mkdir()
    shutil.copy(packages.out / "SHA256SUMS", wrong)
    archive = packages.file("*.tar.gz")
    (wrong / archive.name).write_bytes(archive.read_bytes()[:-1] + b"x")
    said = run(["sh", script, "--from", wrong, "--prefix", elsewhere], environment, fails=True)
    assert "the SHA-256" in said and not elsewhere.exists(), said


def the_formula_names_the_archive(packages: Packages) -> None:
    formula, archive = (packages.out / "hikite.rb").read_text(), packages.file("*.tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert f'sha256 "{digest}"' in formula and f'/{archive.name}"' in formula, formula
    assert f'version "{packages.version}"' in formula and "@" not in formula.replace("@hikite", "")


def the_build_context_is_complete(packages: Packages) -> None:
    image.check_context(ROOT, packages.folder / "context")


def the_image_serves_localhost_without_a_certificate(packages: Packages) -> None:
    folder, _ = packages.scratch("image")
    image.check_localhost(ROOT / "Dockerfile", packages.program, folder)


def the_manifest_is_that_of_the_chart(packages: Packages) -> None:
    folder = ROOT / "deploy/helm/hikite"
    assert chart.manifest(folder) == (ROOT / "deploy/kubernetes.yaml").read_text(), "run tests/packages/chart.py --write"
    described = chart.read(folder / "Chart.yaml")
    assert described["version"] == described["appVersion"] == packages.version
    everything = chart.render(folder, {"ingress": {"enabled": True, "annotations": {"a": "b"}}, "nodeSelector": {"a": "b"}})
    kinds = {document["kind"] for document in everything}
    assert kinds == {"ConfigMap", "Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "Service"}
    bare = chart.render(folder, {"networkPolicy": {"enabled": False}})
    assert "NetworkPolicy" not in {document["kind"] for document in bare}


CHECKS = [
    every_file_is_named_in_the_checksums,
    every_package_contains_notes_licences_and_sbom,
    the_sbom_names_what_is_linked_and_nothing_else,
    the_wheel_says_which_glibc_it_needs,
    pip_installs_the_wheel,
    npx_runs_the_package_of_this_platform,
    dpkg_installs_and_removes_the_package,
    the_unit_is_hardened,
    the_install_script_checks_the_archive,
    the_formula_names_the_archive,
    the_build_context_is_complete,
    the_image_serves_localhost_without_a_certificate,
    the_manifest_is_that_of_the_chart,
]

if __name__ == "__main__":
    sys.exit(main())
