#!/usr/bin/env python3
"""Writes the documentation as it is installed: install_docs.py SOURCE FOLDER

Pages of the tree get short names in FOLDER, and their links follow. A link to what is not installed becomes its words alone; where
it stands in parentheses by itself, it goes with them. tests/tools/docs_test.py follows every link of what was written.
"""

import os
import pathlib
import posixpath
import re
import sys

#: Where pages and folders of the tree are, once they are installed. Folders are copied by CMakeLists.txt.
INSTALLED = {
    "tools/package/first_steps.md": "README.md",
    "config/reference.md": "reference.md",
    "config/TUNING.md": "tuning.md",
    "net/STREAM.md": "stream.md",
    "net/admin/README.md": "admin.md",
    "tools/twilld/README.md": "operators.md",
    "tools/twill/README.md": "clients.md",
    "tools/twill/CHAT.md": "chat.md",
    "tools/twill/offload/README.md": "offload.md",
    "tools/twill-bench/README.md": "twill-bench.md",
    "tools/twill-synth/README.md": "twill-synth.md",
    "config/guides": "guides",
    "config/examples": "examples",
    "tools/package/monitoring": "monitoring",
    "tools/package/container": "container",
    "CHANGELOG.md": "changelog.gz",
}
LINK = re.compile(r"( ?\()?\[([^\]\[]*)\]\(([^()\s]+)\)(\))?")


def installed_path(path):
    """Where a path of the tree is, or None."""
    for source, target in INSTALLED.items():
        if path == source or path.startswith(source + "/"):
            return target + path[len(source):]
    return None


def rewrite(text, source, target):
    """The page `source` of the tree, as it stands at `target`."""

    def follow(link):
        before, label, where, after = link[1] or "", link[2], link[3], link[4] or ""
        path, mark, anchor = where.partition("#")
        if re.match(r"[a-z]+:", where) or not path:
            return link[0]
        there = installed_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if there is not None:
            return f"{before}[{label}]({posixpath.relpath(there, posixpath.dirname(target) or '.')}{mark}{anchor}){after}"
        return "" if before and after else before + label + after

    parts = re.split(r"(?ms)(^```.*?^```[ \t]*$)", text)
    return "".join(part if part.startswith("```") else LINK.sub(follow, part) for part in parts)


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    pages = {name: target for name, target in INSTALLED.items() if name.endswith(".md") and target.endswith(".md")}
    pages |= {f"config/guides/{name}": f"guides/{name}" for name in sorted(os.listdir(root / "config/guides"))}
    for source, target in pages.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).write_text(rewrite((root / source).read_text(), source, target))


if __name__ == "__main__":
    main()
