"""The licences of the crates inside the program, whose texts must accompany it."""
import hashlib
import json
import re
import subprocess
from pathlib import Path

from packages.program import PLATFORMS, ROOT, fail

LICENSE_FILE = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$")
# Libraries in C that a crate brings along: the folder of the crate that holds their licence.
BUNDLED = {"zstd-sys": ["zstd"], "libsqlite3-sys": ["sqlite3"]}


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
    blocks = [
        "Unspool contains the following libraries.\n",
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
