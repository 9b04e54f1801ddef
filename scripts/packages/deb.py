"""A Debian package with completions and man pages where Debian keeps them. Needs dpkg-deb."""
import shutil
import subprocess
import tempfile
from pathlib import Path

from packages.files import gzipped
from packages.program import AUTHOR, ROOT, SUMMARY, fail

ARCHITECTURES = {"linux-x64": "amd64", "linux-arm64": "arm64"}
# Debian's packages of the libraries that the program may need.
LIBRARY_PACKAGES = {"libgcc_s.so.1": "libgcc-s1"}
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/unspool",
    "zsh": "usr/share/zsh/vendor-completions/_unspool",
    "fish": "usr/share/fish/vendor_completions.d/unspool.fish",
}


def dependencies(program):
    needed, (major, minor) = program.libraries
    found = {f"libc6 (>= {major}.{minor})"}
    for name in needed:
        if name in LIBRARY_PACKAGES:
            found.add(LIBRARY_PACKAGES[name])
        elif not name.startswith(("libc.so.", "libm.so.", "ld-linux")):
            fail(f"the program needs {name}; name its package in LIBRARY_PACKAGES")
    return ", ".join(sorted(found))


def copyright_text():
    mit = (ROOT / "LICENSE-MIT").read_text().strip()
    owner = next(line for line in mit.splitlines() if line.startswith("Copyright"))
    body = "\n".join(f" {line or '.'}" for line in mit.split(owner)[1].strip().splitlines())
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: unspool
Comment: The licences of the libraries inside the program are in THIRD-PARTY.gz.

Files: *
Copyright: {owner.removeprefix("Copyright").replace("(c)", "©").strip()}
License: MIT or Apache-2.0

License: MIT
{body}

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
"""


def build(program, documents, dist):
    if program.platform not in ARCHITECTURES:
        return []
    if not shutil.which("dpkg-deb"):
        fail("dpkg-deb is not installed, which makes the Debian package; omit it with --without deb")
    architecture = ARCHITECTURES[program.platform]
    path = dist / f"unspool_{program.version}_{architecture}.deb"
    with tempfile.TemporaryDirectory(prefix="unspool-deb.") as temporary:
        root = Path(temporary)
        put(root, "usr/bin/unspool", program.bytes, 0o755)
        for name, text in documents.man_pages.items():
            put(root, f"usr/share/man/man1/{name}.gz", gzipped(text))
        for shell, place in COMPLETIONS.items():
            put(root, place, program.completions[shell][1])
        texts = {
            "copyright": copyright_text().encode(),
            "CHANGELOG.md.gz": gzipped((ROOT / "CHANGELOG.md").read_bytes()),
            "THIRD-PARTY.gz": gzipped(documents.licenses["THIRD-PARTY"].encode()),
        }
        for name, data in texts.items():
            put(root, f"usr/share/doc/unspool/{name}", data)
        size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024 + 1
        control = [
            "Package: unspool",
            f"Version: {program.version}",
            f"Architecture: {architecture}",
            f"Maintainer: {AUTHOR}",
            f"Installed-Size: {size}",
            f"Depends: {dependencies(program)}",
            "Section: devel",
            "Priority: optional",
            f"Description: {SUMMARY[0].lower()}{SUMMARY[1:]}",
            " Unspool keeps every turn of a coding agent as an ordered transcript of typed",
            " parts, and shows it in the terminal and in the browser, live and years later.",
            "",
        ]
        put(root, "DEBIAN/control", "\n".join(control).encode())
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path]
        # dpkg-deb gives all files the time of the sources.
        environment = {"SOURCE_DATE_EPOCH": str(program.time), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            fail(f"dpkg-deb: {done.stderr.strip()}")
    return [path]


def put(root, name, data, mode=0o644):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    for parent in path.relative_to(root).parents:
        (root / parent).chmod(0o755)
