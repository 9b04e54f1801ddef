"""The finished program and what every package holds beside it: man pages, completions, licences."""
import os
import re
import struct
import subprocess
import sys
import tomllib
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "Shows what an AI agent did, in the order in which it happened"
LICENSE = "MIT OR Apache-2.0"
AUTHOR = "The Unspool authors"
# A shell and the name under which it looks for the completions of `unspool`.
COMPLETIONS = {
    "bash": "unspool.bash",
    "zsh": "_unspool",
    "fish": "unspool.fish",
    "powershell": "unspool.ps1",
    "elvish": "unspool.elv",
}
# Platforms that a release is built for, as npm and as Rust name them. Only the first was ever run.
PLATFORMS = {
    "linux-x64": "x86_64-unknown-linux-gnu",
    "linux-arm64": "aarch64-unknown-linux-gnu",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
    "win32-x64": "x86_64-pc-windows-msvc",
}


def fail(text):
    sys.exit(f"{Path(sys.argv[0]).name}: {text}")


def source_version():
    with open(ROOT / "Cargo.toml", "rb") as file:
        return tomllib.load(file)["workspace"]["package"]["version"]


def build_time():
    """The time of all packaged files: that of the commit, so that equal sources are equal bytes."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    commit = subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True
    )
    # The first time that a zip file can hold, for sources without git.
    return int(commit.stdout) if commit.returncode == 0 else 315532800


class Program:
    def __init__(self, path, repository=None):
        self.path = Path(path).resolve()
        self.repository = repository
        if not self.path.is_file():
            fail(f"there is no program at {path}; build it: cargo build --release -p unspool")
        self.bytes = self.path.read_bytes()
        self.platform = self._platform()
        self.file_name = "unspool.exe" if self.platform.startswith("win32") else "unspool"
        self.time = build_time()
        said = self._run("--version").decode().split()
        if said != ["unspool", source_version()]:
            fail(f"{path} is {' '.join(said)}, and the sources are {source_version()}: build it again")
        self.version = said[1]

    def _run(self, *arguments):
        try:
            done = subprocess.run([self.path, *arguments], capture_output=True)
        except OSError as error:
            fail(f"cannot run {self.path}: {error}. Packages are made on the platform they are for")
        if done.returncode != 0:
            fail(f"{self.path} {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _platform(self):
        head = self.bytes[:4096]
        if head[:4] == b"\x7fELF" and head[4] == 2:
            machines = {62: "linux-x64", 183: "linux-arm64"}
            found = machines.get(struct.unpack_from("<H", head, 18)[0])
        elif head[:4] == b"\xcf\xfa\xed\xfe":
            machines = {0x01000007: "darwin-x64", 0x0100000C: "darwin-arm64"}
            found = machines.get(struct.unpack_from("<I", head, 4)[0])
        elif head[:2] == b"MZ":
            (at,) = struct.unpack_from("<I", head, 60)
            found = "win32-x64" if struct.unpack_from("<H", head, at + 4)[0] == 0x8664 else None
        else:
            found = None
        return found or fail(f"{self.path} is no program for one of: {', '.join(PLATFORMS)}")

    @cached_property
    def completions(self):
        """The file name and the script of each shell."""
        return {
            shell: (name, self._run("completions", shell)) for shell, name in COMPLETIONS.items()
        }

    def write_man_pages(self, folder):
        self._run("man", "--out", str(folder))
        return sorted(Path(folder).glob("*.1"))

    @cached_property
    def libraries(self):
        """What an ELF program needs: its libraries, and the newest glibc version it refers to."""
        return elf_libraries(self.bytes)


def elf_libraries(data):
    """The names of needed libraries, and the newest GLIBC version, from the dynamic section."""
    (section_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_at + number * size)
        for number in range(count)
    ]

    def text(section, offset):
        start = sections[section][4] + offset
        return data[start : data.index(b"\0", start)].decode()

    needed, versions = [], []
    for _, kind, _, _, offset, length, link, info, _, _ in sections:
        if kind == 6:  # SHT_DYNAMIC
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == 1:  # DT_NEEDED
                    needed.append(text(link, value))
        elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed
            at = offset
            for _ in range(info):
                _, many, _, first, after = struct.unpack_from("<HHIII", data, at)
                entry = at + first
                for _ in range(many):
                    _, _, _, name, beyond = struct.unpack_from("<IHHII", data, entry)
                    versions.append(text(link, name))
                    entry += beyond
                at += after
    glibc = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version) for version in versions]
    newest = max(((int(one[1]), int(one[2])) for one in glibc if one), default=None)
    return needed, newest
