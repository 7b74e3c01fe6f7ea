"""Files: read whole, with errors that name them; written whole or not at all."""

import io
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from hpc_sched import exceptions

Path = str | os.PathLike[str]
Error = type[exceptions.HPCSchedError]

# Modes of new files, before the umask. Files with data of tenants (names, projects and hosts of
# servers) are private.
PUBLIC, PRIVATE = 0o666, 0o600
_SHARED = stat.S_ISVTX | stat.S_IWOTH  # mode of /tmp
CHUNK = 1 << 20  # bytes that are read at once
_MAX_LINKS = 40  # the limit of Linux


def read_bytes(path: Path, error: Error, max_bytes: int | None = None) -> bytes:
    """Return the content of a file, at most ``max_bytes`` long; or raise ``error``, naming it."""
    try:
        # Not blocking: a pipe without a writer would hold a service for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            os.set_blocking(stream.fileno(), True)
            return read_stream(stream, os.fspath(path), error, max_bytes)
    except (OSError, ValueError) as failure:
        if isinstance(failure, error):
            raise
        raise error(f"{os.fspath(path)}: cannot be read: {_why(failure)}") from failure


def read_stream(
    stream: BinaryIO,
    name: str,
    error: Error,
    max_bytes: int | None = None,
    check: Callable[[bytes], None] | None = None,
) -> bytes:
    """Return the rest of a stream, ``name`` in errors; see :func:`read_bytes`.

    :param check: called with each part before the next one is read
    """
    if max_bytes is None:
        return stream.read()
    # In chunks: a pipe has no size, and read(n) allocates n bytes at once. Joining a list of them
    # would need the memory twice.
    content = io.BytesIO()
    while part := stream.read(CHUNK):
        if check is not None:
            check(part)
        if content.tell() + len(part) > max_bytes:
            raise error(f"{name}: expected at most {max_bytes} bytes, found more")
        content.write(part)
    return content.getvalue()


def decode(content: bytes, name: str, error: Error) -> str:
    """Return a text without byte order mark; the error names file and line of what is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = failure.object.count(b"\n", 0, failure.start) + 1
        byte = failure.object[failure.start]
        raise error(f"{name}:{line}: expected UTF-8, found byte 0x{byte:02x}") from failure


def write_atomically(path: Path, content: bytes, error: Error, mode: int = PUBLIC) -> None:
    """Write a file so that a reader finds the old content or the new, never a part.

    An existing file keeps its mode, and its owner if permitted: Nova's user must still be able to
    read a file that root has rewritten. A symbolic link stays one. In a world-writable folder,
    such as /tmp, a file or link of another user is refused. ``mode`` is that of a new file, before
    the umask. ``error`` names a file that cannot be written; the old content then remains.
    """
    try:
        target, old = _target(path)
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}")
        # Private until it has the mode of the old file.
        first = mode if old is None else PRIVATE
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(content)
                if old is not None:
                    with suppress(PermissionError):
                        os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                stream.flush()
                os.fsync(descriptor)
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        # The new name survives a loss of power.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as failure:
        raise error(f"{os.fspath(path)}: cannot be written: {_why(failure)}") from failure


def _target(path: Path) -> tuple[str, os.stat_result | None]:
    """Return the file behind symbolic links, and its status or None.

    The kernel protects open() against files and links that others put into /tmp
    (protected_symlinks, protected_regular), but not readlink() and rename().
    """
    name = os.fspath(path)
    for _ in range(_MAX_LINKS):
        folder = os.path.realpath(os.path.dirname(name))
        name = os.path.join(folder, os.path.basename(name))
        try:
            found = os.lstat(name)
        except FileNotFoundError:
            return name, None
        around = os.stat(folder)
        is_shared = around.st_mode & _SHARED == _SHARED
        if is_shared and found.st_uid not in (os.geteuid(), around.st_uid):
            raise ValueError(f"{name} is another user's, in a folder that everybody may write")
        if stat.S_ISREG(found.st_mode):
            return name, found
        if not stat.S_ISLNK(found.st_mode):
            raise ValueError("not a regular file")
        name = os.path.join(folder, os.readlink(name))
    raise ValueError(f"more than {_MAX_LINKS} symbolic links")


def _why(failure: Exception) -> str:
    return getattr(failure, "strerror", None) or str(failure)
