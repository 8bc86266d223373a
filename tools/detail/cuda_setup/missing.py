"""What stops a CUDA build, as one line for its user: what is missing, what was found, and the one thing to do."""


class Missing(Exception):
    pass


def version_words(version: tuple) -> str:
    return ".".join(str(part) for part in version)


def capability(arch: int) -> str:
    """A compute capability as NVIDIA writes it: 86 is 8.6."""
    return f"{arch // 10}.{arch % 10}"
