"""Two npm packages: `unspool`, which starts the program, and the program of this platform."""
import json

from packages.files import File, tar_gz
from packages.program import AUTHOR, LICENSE, PLATFORMS, ROOT, SUMMARY

SOURCE = ROOT / "packaging/npm"


def build(program, documents, dist):
    return [launcher(program, documents, dist), platform_package(program, documents, dist)]


def manifest(program, name, description, more):
    fields = {
        "name": name,
        "version": program.version,
        "description": description,
        "license": LICENSE,
        "author": AUTHOR,
    }
    if program.repository:
        fields["repository"] = {"type": "git", "url": f"git+{program.repository}.git"}
    return File(json.dumps(fields | more, indent=2) + "\n")


def launcher(program, documents, dist):
    more = {
        "bin": {"unspool": "bin/unspool.js"},
        "files": ["bin", "LICENSE-*"],
        "engines": {"node": ">=18"},
        # Exactly this version: the two are one program.
        "optionalDependencies": {f"@unspool/{one}": program.version for one in PLATFORMS},
    }
    files = {
        "package/package.json": manifest(program, "unspool", SUMMARY, more),
        "package/README.md": File((SOURCE / "README.md").read_bytes()),
        "package/bin/unspool.js": File((SOURCE / "unspool.js").read_bytes(), executable=True),
    }
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"package/{name}"] = File(documents.licenses[name])
    path = dist / f"unspool-{program.version}.tgz"
    tar_gz(path, files, program.time)
    return path


def platform_package(program, documents, dist):
    system, processor = program.platform.split("-")
    more = {"os": [system], "cpu": [processor], "files": ["bin", "LICENSE-*", "THIRD-PARTY"]}
    if system == "linux":
        more["libc"] = ["glibc"]
    description = f"The program of unspool for {program.platform}; install unspool instead"
    name = f"@unspool/{program.platform}"
    files = {
        "package/package.json": manifest(program, name, description, more),
        f"package/bin/{program.file_name}": File(program.bytes, executable=True),
    }
    for one, data in documents.licenses.items():
        files[f"package/{one}"] = File(data)
    path = dist / f"unspool-{program.platform}-{program.version}.tgz"
    tar_gz(path, files, program.time)
    return path
