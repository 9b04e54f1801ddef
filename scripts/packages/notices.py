"""The licences of what is inside the program (crates, grammars), whose texts must accompany it."""
import hashlib
import json
import re
import struct
import subprocess
import zlib
from pathlib import Path

from packages.program import PLATFORMS, ROOT, fail

LICENSE_FILE = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$")
# Libraries in C that a crate brings along: the folder of the crate that holds their licence.
BUNDLED = {"zstd-sys": ["zstd"], "libsqlite3-sys": ["sqlite3"]}

# The crate with the grammars, and its file of their licences.
GRAMMARS = "two-face"
GRAMMAR_LICENSES = "generated/acknowledgements_full.bin"


def third_party(platform):
    """One text: each licence once, after the crates that have it."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    command += ["--filter-platform", PLATFORMS[platform]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"cargo metadata: {done.stderr.strip()}")
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    program = next(one for one in packages.values() if one["name"] == "unspool")

    inside, waiting = set(), [program["id"]]
    while waiting:
        package = waiting.pop()
        if package in inside:
            continue
        inside.add(package)
        for dependency in nodes[package]["deps"]:
            # Neither tests nor build scripts are inside the program.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])

    texts, holders = {}, {}
    foreign = [packages[one] for one in inside if packages[one]["source"]]
    for package in sorted(foreign, key=lambda one: (one["name"], one["version"])):
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        for text in license_texts(package) or [f"{package['license']}, by {', '.join(package['authors'])}\n"]:
            digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
            texts.setdefault(digest, text)
            holders.setdefault(digest, []).append(name)
    bundle = next((one for one in foreign if one["name"] == GRAMMARS), None)
    for name, text in grammar_licenses(bundle) if bundle else []:
        digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
        texts.setdefault(digest, text)
        holders.setdefault(digest, []).append(f"{name} (grammar for highlighting)")
    blocks = [
        "Unspool contains the following libraries and grammars.\n",
        *("\n".join([*holders[digest], "", texts[digest].strip(), ""]) for digest in texts),
    ]
    return ("\n" + "─" * 80 + "\n\n").join(blocks)


def license_texts(package):
    folder = Path(package["manifest_path"]).parent
    folders = [folder, *(folder / name for name in BUNDLED.get(package["name"], []))]
    files = [
        file
        for one in folders
        if one.is_dir()
        for file in sorted(one.iterdir())
        if file.is_file() and LICENSE_FILE.match(file.name)
    ]
    return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def grammar_licenses(package):
    """The name and the licence of each grammar. The file is what the crate itself reads: two lists
    (grammars, themes) in bincode, compressed. The themes are not in the program."""
    path = Path(package["manifest_path"]).parent / GRAMMAR_LICENSES
    try:
        data = zlib.decompress(path.read_bytes())
        grammars, rest = license_list(data)
        themes, rest = license_list(rest)
    except (OSError, zlib.error, struct.error, UnicodeDecodeError) as error:
        fail(f"{path}: {error}; {package['name']} {package['version']} has its licences in another form")
    if rest or not grammars:
        fail(f"{path}: {len(rest)} bytes after the licences; see how {package['name']} reads them")
    return sorted((Path(path).parent.name, text) for path, text in grammars)


def license_list(data):
    """A list of (kind, text, path), and the bytes after it."""
    (count,), data = struct.unpack_from("<Q", data), data[8:]
    found = []
    for _ in range(count):
        data = data[4:]
        fields = []
        for _ in range(2):
            (size,) = struct.unpack_from("<Q", data)
            if size > len(data) - 8:
                raise struct.error(f"a text of {size} bytes")
            fields.append(data[8:8 + size].decode())
            data = data[8 + size:]
        found.append((fields[1], fields[0]))
    return found, data
