#!/usr/bin/env python3
"""What the documentation names must be there, once: links, anchors, commands with their options, keys of the configuration, routes, functions.

check_docs.py [ROOT] [--bin DIR]: reads every *.md that git knows (or below ROOT, where git knows nothing), prints what is not there
and exits with 1 if there is any. Links need nothing else; commands, keys and routes are compared with the programs in DIR and with
net/endpoints.cpp, first cells of tables in folder READMEs with files and identifiers. With --bin also the programs' man pages, their
reference of keys, and the texts of the sources are read.
tests/tools/docs_test.py runs it, also over an installed tree, and shows that each kind of fault is found.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

PROGRAMS = ("twilld", "twill", "twill-bench", "twill-synth")
#: Options that every program accepts and --help does not list.
EVERYWHERE = {"-h", "--help", "--version", "--print-man", "--print-completion"}
#: A page about earlier versions, of which only the links are checked.
HISTORY = {"CHANGELOG.md"}
#: Of tokenizer.json.
FOREIGN_KEYS = {"model.vocab"}
TOPS = ("config", "gpu", "models", "actors", "net", "tools", "tests")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
#: Suffixes of the files in which identifiers are searched.
SOURCES = (".hpp", ".cpp", ".cu", ".py", ".js")
#: A path without dots but that of a suffix, or an identifier. Keys of the configuration have dots, routes begin with a slash, options with a dash.
LOOKS_LIKE_A_NAME = re.compile(r"[A-Za-z_]\w*(?:/\w+)*(?:/|\.(?:hpp|cpp|cu|py|js|md|toml|json|txt|cmake))?")
#: A name that stands for another: NAME, FILE.toml, ..., "$model".
PLACEHOLDER = re.compile(r"^[A-Z][A-Z0-9_./:-]*$|^\.\.\.$|[$<*{|\[]")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", FENCE.sub("", text)):
        name, n = slug(heading), 0
        while (name if n == 0 else f"{name}-{n}") in found:
            n += 1
        found.add(name if n == 0 else f"{name}-{n}")
    return found


def dead_links(page, text):
    """Relative links of a page that lead nowhere."""
    prose = SPAN.sub("", FENCE.sub("", re.sub(r"(\[[^\]\[]*\])(?=\()", lambda m: m[0].replace("`", ""), text)))
    for target in LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        where = page if path == "" else (page.parent / path)
        if not where.exists():
            yield f"the link {target} leads nowhere"
        elif anchor and anchor not in anchors(where.read_text()):
            yield f"the link {target} names no heading of {where.name}"


def rows_twice(text):
    """Rows of one table that begin alike, as edits leave them: first cells that hold code and nothing else."""
    for table in re.findall(r"(?m)(?:^\|.*\n)+", FENCE.sub("", text)):
        seen = set()
        for cell in re.findall(r"(?m)^\| (`[^|]*`) \|", table):
            if cell in seen:
                yield f"a table has two rows for {cell}"
            seen.add(cell)


def code_of(text):
    """Commands as somebody would type them: the lines of blocks, and spans in the text."""
    for language, block in FENCE.findall(text):
        if language in ("", "sh", "bash", "console"):
            yield from block.replace("\\\n", " ").splitlines()
    # Indented blocks are code, too.
    prose = FENCE.sub("", text)
    yield from re.findall(r"(?m)(?<=^\n)(?:    (\S.*)$)", prose.replace("\\\n", " "))
    yield from SPAN.findall(prose)


def words_of(line):
    """The simple commands of a line, each as its words."""
    line = re.sub(r"^\s*\$ ", "", line)
    for part in re.findall(r"\$\(([^()]*)\)", line):
        yield from words_of(part)
    line = re.sub(r"\$\([^()]*\)", "$x", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    try:
        for word in lexer:
            if word == "#" or word.startswith("#"):
                break
            if word and set(word) <= set("|&;()"):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # half a quotation: a span that the text cut
        pass
    yield words


class Command:
    """A (sub-)command, as the program's man page lists it."""

    def __init__(self):
        self.options, self.commands = set(), {}


def read_man_page(page):
    """The tree of commands in the text of --print-man."""
    page = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "").replace("\\&", "")
    root = at = Command()
    for line in page.splitlines():
        if found := re.match(r'\.SS "(.*)"', line):
            at = root
            for name in found[1].split():
                at = at.commands.setdefault(name, Command())
        elif line.startswith(".SH "):
            at = root
        elif line.startswith("-"):
            at.options.update(re.findall(r"(?:^|, )(--?[A-Za-z0-9][-\w]*)", line))
    return root


class Programs:
    """What the programs take: commands, options, keys."""

    def __init__(self, folder):
        def ask(name, *arguments):
            return subprocess.run([str(folder / name), *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

        self.man = {name: ask(name, "--print-man") for name in PROGRAMS if (folder / name).exists()}
        self.roots = {name: read_man_page(page) for name, page in self.man.items()}
        self.reference = ask("twilld", "--print-reference")
        self.keys = {}
        for title, rows in re.findall(r"(?ms)^## \[+([\w.]+)\]+\n(.*?)(?=^## |\Z)", self.reference):
            self.keys[title] = set(re.findall(r"(?m)^\| `(\w+)`", rows))

    def unknown_key(self, name):
        """Whether `name` looks like a key of a table that there is, and is none."""
        table, _, key = name.partition(".")
        return table in self.keys and re.fullmatch(r"\w+", key) is not None and key not in self.keys[table]

    def faults_of(self, words):
        """What is wrong with one simple command; nothing when it is of another program."""
        words = list(words)
        while words and (re.match(r"^[A-Z_]+=", words[0]) or words[0] in ("sudo", "time", "timeout", "nice", "exec", "!")):
            words.pop(0)
        name = words.pop(0).rsplit("/", 1)[-1] if words else ""
        if name not in self.roots:
            return
        at, path = self.roots[name], name
        seen = [at]
        while at.commands and words and not words[0].startswith("-"):
            word = words.pop(0)
            if word not in at.commands:
                if not PLACEHOLDER.search(word) and re.fullmatch(r"[a-z][-a-z]*", word):
                    yield f"`{path}` has no command {word}"
                return
            at, path = at.commands[word], f"{path} {word}"
            seen.append(at)
        if name == "twill-bench" and path == name:
            seen.append(at.commands["serve"])
        known = EVERYWHERE.union(*(one.options for one in seen))
        for i, word in enumerate(words):
            option = word.split("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][-\w]*", option) and option not in known:
                yield f"`{path}` has no option {option}"
            if option == "--set" and i + 1 < len(words):
                key = words[i + 1].split("=")[0]
                if self.unknown_key(key) or ("." in key and key.split(".")[0] not in self.keys and not key.startswith("models.")):
                    yield f"there is no key {key}"


def read_routes(source):
    """(method, path) of net/endpoints.cpp, with "*" for what changes."""
    return {(method.upper().replace("DEL", "DELETE"), path)
            for method, path in re.findall(r'endpoint\{(get|post|del), +"([^"]+)"', source)}


def is_route(routes, method, path):
    path = re.sub(r"[?#].*", "", path)
    for known_method, pattern in routes:
        form = re.escape(pattern).replace(r"\*\*", ".+").replace(r"\*", "[^/]+")
        if method in (None, known_method) and re.fullmatch(form, path):
            return True
    return False


def unknown_routes(routes, text):
    first = {pattern.split("/")[1] for _, pattern in routes if len(pattern) > 1}
    for span in SPAN.findall(FENCE.sub("", text)):
        found = re.match(r"^(?:(GET|POST|DELETE|PUT) )?(/[\w*/.{}-]*)$", span)
        if not found:
            continue
        method, path = found[1], found[2].replace("{", "").replace("}", "")
        if method is None and path.split("/")[1] not in first:
            continue  # a path of the file system, a command of the chat
        if path.endswith("/*") and any(pattern.startswith(path[:-1]) for _, pattern in routes):
            continue
        if path != "/" and path not in ("/v1", "/v1/") and not is_route(routes, method, path):
            yield f"there is no route {span}"
    for block in (block for language, block in FENCE.findall(text) if language in ("", "sh", "bash", "console", "python")):
        for path in re.findall(r"https?://(?:localhost|127\.0\.0\.1|llm\.example\.com)(?::\d+)?(/[\w/.-]*)", block):
            if path.rstrip("/") not in ("", "/v1") and not is_route(routes, None, path):
                yield f"there is no route {path}"


def unknown_keys(programs, text):
    for span in SPAN.findall(FENCE.sub("", text)):
        for name in re.findall(r"^([a-z]+\.[a-z_0-9]+)(?: =.*|=.*)?$", span):
            if programs.unknown_key(name) and not re.search(r"\.(toml|md|cpp|hpp|py|json|txt)$", name):
                yield f"there is no key {name}"


def dead_paths(page, text, root):
    """Paths of the tree that a span names: from the root or from the page's folder, a suffix may be left out."""
    for span in SPAN.findall(FENCE.sub("", text)):
        for word in span.split():
            if re.fullmatch(r"[\w./-]+", word) and word.split("/")[0] in TOPS and "/" in word:
                if not any(any(base.glob(word.rstrip("/") + "*")) for base in (root, page.parent)):
                    yield f"there is no file {word}"


def function_rows(text):
    """The rows of tables with the columns "file" and "functions": the files, of which a ';' parts groups, and the names."""
    for head, rows in re.findall(r"(?m)^(\|.*\|)\n\|[-|]+\|\n((?:\|.*\n?)+)", FENCE.sub("", text)):
        columns = [cell.strip() for cell in head.strip("|").split("|")]
        if {"file", "functions"} <= set(columns):
            for row in rows.splitlines():
                cells = dict(zip(columns, row.strip("|").split("|")))
                yield [SPAN.findall(group) for group in cells.get("file", "").split(";")], SPAN.findall(cells.get("functions", ""))


def absent_names(text, root):
    """Names in a column "functions" that no file of a group has."""
    for groups, names in function_rows(text):
        for group in groups:
            files = [root / name for name in group]
            words = set(re.findall(r"\w+", " ".join(file.read_text() for file in files if file.is_file())))
            yield from (f"there is no {name} in {', '.join(group)}" for name in names if name not in words)


def identifiers(root):
    """The words of all sources below `root` but the tests, without those of comments."""
    words = set()
    for path in (path for top in TOPS if top != "tests" for path in (root / top).rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            words.update(re.findall(r"\w+", re.sub(r"(?m)(?<!:)//.*|^\s*#[^a-z!].*", "", path.read_text(errors="replace"))))
    return words


def absent_first_cells(page, text, root, known):
    """Code spans in the first cells of a folder README's tables that look like a file, a folder or an identifier, and are none of those.

    A file is named from the page's folder or from a folder above it; its suffix may be missing. `known` are the identifiers of the sources.
    Names of metrics, which begin with twill_, are not checked.
    """
    folders = [folder for folder in page.parents if folder == root or root in folder.parents]
    rows = re.findall(r"(?m)^\|.*\|\n\|[-|: ]+\|\n((?:\|.*\n?)+)", FENCE.sub("", text))
    for span in (span for row in "".join(rows).splitlines() for span in SPAN.findall(row.split("|")[1])):
        name = re.sub(r"\.\*$", "", span)
        if not LOOKS_LIKE_A_NAME.fullmatch(name) or name.startswith("twill_"):
            continue
        if any(part.isupper() and len(part) > 1 for part in re.split(r"[/._]", name)):
            continue  # a pattern such as NAME.cpp or decode_KIND
        if name in known or any((at / name).exists() or any(at.glob(name.rstrip("/") + ".*")) for at in folders):
            continue
        yield f"a table begins a row with {span}: there is no such file, folder or identifier"


def pages_below(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines()
    return sorted(root / name for name in names if (root / name).exists()) or sorted(root.rglob("*.md"))


def faults_of_page(page, text, programs, routes):
    yield from dead_links(page, text)
    yield from rows_twice(text)
    if page.name in HISTORY or programs is None:
        return
    for line in code_of(text):
        for words in words_of(line):
            yield from programs.faults_of(words)
    yield from unknown_keys(programs, text)
    yield from unknown_routes(routes, text)


def faults_of_texts(root, programs):
    """Man pages, the reference, and what messages of the sources advise."""
    for name, page in programs.man.items():
        for fault in faults_of_text(page.replace("\\-", "-"), programs):
            yield f"{name} --print-man: {fault}"
    for fault in faults_of_text(programs.reference, programs):
        yield f"twilld --print-reference: {fault}"
    for path in sorted(path for top in TOPS if top != "tests" for path in (root / top).rglob("*.cpp")):
        strings = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', re.sub(r'"\s*\n\s*"', "", path.read_text())))
        for fault in faults_of_text(strings, programs):
            yield f"{path.relative_to(root)}: {fault}"


def faults_of_text(text, programs):
    for span in SPAN.findall(text):
        for words in words_of(span):
            yield from programs.faults_of(words)
        if programs.unknown_key(span) and span not in FOREIGN_KEYS:
            yield f"there is no key {span}"


def faults_below(root, source, programs):
    """All faults of the pages below `root`; `source` is the tree that the programs were built from."""
    routes = read_routes((source / "net/endpoints.cpp").read_text()) if programs else set()
    known = identifiers(root) if root == source else set()
    for page in pages_below(root):
        for fault in faults_of_page(page, page.read_text(), programs, routes):
            yield f"{page.relative_to(root)}: {fault}"
        if root == source and page.name not in HISTORY:
            for fault in (*dead_paths(page, page.read_text(), root), *absent_names(page.read_text(), root)):
                yield f"{page.relative_to(root)}: {fault}"
            if page.name == "README.md" and page.relative_to(root).parts[0] in TOPS and not page.is_relative_to(root / "tests"):
                for fault in absent_first_cells(page, page.read_text(), root, known):
                    yield f"{page.relative_to(root)}: {fault}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--bin", type=pathlib.Path, help="the folder of the programs")
    given = parser.parse_args()
    programs = Programs(given.bin.resolve()) if given.bin else None
    found = list(faults_below(given.root, given.root, programs))
    if programs:
        found += faults_of_texts(given.root, programs)
    for fault in found:
        print(fault)
    if not found:
        print(f"docs: {len(pages_below(given.root))} pages name nothing that is not there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
