"""Archives whose bytes depend only on what is in them: sorted names, one time, no owner."""
import gzip
import io
import tarfile
import zipfile
from datetime import datetime, timezone


class File:
    def __init__(self, data, executable=False):
        self.data = data.encode() if isinstance(data, str) else data
        self.mode = 0o755 if executable else 0o644


def tar_gz(path, files, time):
    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=time) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name in sorted(files):
                info = tarfile.TarInfo(name)
                info.size, info.mode, info.mtime = len(files[name].data), files[name].mode, time
                info.uname = info.gname = "root"
                tar.addfile(info, io.BytesIO(files[name].data))


def zip_file(path, files, time):
    """Keeps the order of the files: a wheel's record comes last."""
    date = datetime.fromtimestamp(time, timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, file in files.items():
            info = zipfile.ZipInfo(name, date)
            info.create_system = 3  # Unix, so that the mode is read
            info.external_attr = (0o100000 | file.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, file.data)


def gzipped(data):
    return gzip.compress(data, 9, mtime=0)
