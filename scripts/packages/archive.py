"""The tarball, or zip file on Windows: the program with man pages, completions and licences."""
from packages.files import File, tar_gz, zip_file


def build(program, documents, dist):
    top = f"unspool-{program.version}-{program.platform}"
    files = {f"{top}/{program.file_name}": File(program.bytes, executable=True)}
    for name, data in documents.licenses.items():
        files[f"{top}/{name}"] = File(data)
    files[f"{top}/README.md"] = File(documents.readme)
    for name, data in documents.man_pages.items():
        files[f"{top}/man/man1/{name}"] = File(data)
    for name, script in program.completions.values():
        files[f"{top}/completions/{name}"] = File(script)
    if program.platform.startswith("win32"):
        path = dist / f"{top}.zip"
        zip_file(path, files, program.time)
    else:
        path = dist / f"{top}.tar.gz"
        tar_gz(path, files, program.time)
    return [path]
