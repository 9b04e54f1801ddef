"""A Python wheel that installs the program as a script (PEP 427), written without a build tool."""
import base64
import hashlib

from packages.files import File, zip_file
from packages.program import AUTHOR, LICENSE, SUMMARY, fail

# The oldest systems that Rust's standard library runs on.
OTHER_TAGS = {
    "darwin-x64": "macosx_10_12_x86_64",
    "darwin-arm64": "macosx_11_0_arm64",
    "win32-x64": "win_amd64",
}
PROCESSORS = {"linux-x64": "x86_64", "linux-arm64": "aarch64"}
# Libraries that every system with a manylinux tag has.
COMMON_LIBRARIES = ("libc.so.", "libm.so.", "libgcc_s.so.", "libpthread.so.", "libdl.so.", "ld-linux")


def platform_tag(program):
    if program.platform in OTHER_TAGS:
        return OTHER_TAGS[program.platform]
    needed, glibc = program.libraries
    odd = [name for name in needed if not name.startswith(COMMON_LIBRARIES)]
    if odd or glibc is None:
        fail(f"the program needs {', '.join(odd) or 'no glibc'}: no manylinux tag says so")
    # Every installer knows this one, and newer ones follow its pattern.
    glibc = max(glibc, (2, 17))
    return f"manylinux_{glibc[0]}_{glibc[1]}_{PROCESSORS[program.platform]}"


def build(program, documents, dist):
    tag = f"py3-none-{platform_tag(program)}"
    name = f"unspool-{program.version}"
    info, data = f"{name}.dist-info", f"{name}.data"
    files = {f"{data}/scripts/{program.file_name}": File(program.bytes, executable=True)}
    for page, text in documents.man_pages.items():
        files[f"{data}/data/share/man/man1/{page}"] = File(text)
    for license_name, text in documents.licenses.items():
        files[f"{info}/licenses/{license_name}"] = File(text)
    files[f"{info}/METADATA"] = File(metadata(program, documents))
    files[f"{info}/WHEEL"] = File(
        f"Wheel-Version: 1.0\nGenerator: unspool\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    record = [f"{one},sha256={digest(file.data)},{len(file.data)}" for one, file in files.items()]
    files[f"{info}/RECORD"] = File("\n".join([*record, f"{info}/RECORD,,", ""]))
    path = dist / f"{name}-{tag}.whl"
    zip_file(path, files, program.time)
    return [path]


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(program, documents):
    lines = [
        "Metadata-Version: 2.4",
        "Name: unspool",
        f"Version: {program.version}",
        f"Summary: {SUMMARY}",
        f"Author: {AUTHOR}",
        f"License-Expression: {LICENSE}",
        *(f"License-File: {name}" for name in documents.licenses),
        "Requires-Python: >=3.8",
    ]
    if program.repository:
        lines.append(f"Project-URL: Source, {program.repository}")
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join([*lines, "", documents.python_readme])
