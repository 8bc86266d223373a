"""The folder that tools/gpu-bundle makes: about.json and bundle.tar.xz, which has bin/ and lib/.

unpack() leaves bin/ and lib/ beside the archive, and a file that names the archive they came from, so that a newer archive in the
same folder is unpacked anew. A folder that has bin/ and no archive is taken as it is.
"""

import hashlib
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

ABOUT, ARCHIVE, UNPACKED = "about.json", "bundle.tar.xz", "unpacked"
FOLDERS = ("bin", "lib")
MADE_BY = "tools/gpu-bundle"


class Bundle:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder.resolve()

    def about(self) -> dict:
        """What about.json says; empty where there is none."""
        try:
            about = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
            return about if isinstance(about, dict) else {}
        except (OSError, ValueError):
            return {}

    def unpack(self) -> None:
        """Raises OSError, EOFError, tarfile.TarError or lzma.LZMAError where the archive cannot be unpacked."""
        archive, unpacked = self.folder / ARCHIVE, self.folder / UNPACKED
        if not archive.exists():
            if not (self.folder / "bin").is_dir():
                raise FileNotFoundError(f"{self.folder} must hold {ARCHIVE} or bin/: tools/gpu-bundle makes it")
            return
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if unpacked.exists() and unpacked.read_text(encoding="utf-8") == digest:
            return
        unpacked.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
            with tarfile.open(archive) as packed:
                packed.extractall(fresh)
            for name in FOLDERS:
                shutil.rmtree(self.folder / name, ignore_errors=True)
                (pathlib.Path(fresh) / name).replace(self.folder / name)
        unpacked.write_text(digest, encoding="utf-8")

    def program(self, name: str) -> pathlib.Path:
        return self.folder / "bin" / name

    def has(self, name: str) -> bool:
        return os.access(self.program(name), os.X_OK)

    def environment(self, root: pathlib.Path, device: str) -> dict:
        """What the programs need in their environment. The bundle's libraries come first, and the paths that were there stay."""
        paths = [str(self.folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {"LD_LIBRARY_PATH": ":".join(paths), "TWILL_TEST_SOURCE": str(root), "TWILL_TEST_DEVICE": device}
