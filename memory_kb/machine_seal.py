"""Check whether a machine folder was created on this machine, for this place.

A secret in the user's state folder signs the real path of the machine folder and its device and inode; either of
them still matching is enough, so that a vault may be renamed, or restored from a backup. What came with a clone,
an archive or a copy has no such signature.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memory_kb.regular_files import create_regular, open_for_reading, replace_file

# hashlib loads OpenSSL, which costs a search more than all else here; where the part is missing, hashlib has it.
try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover - other builds of Python
    from hashlib import blake2b

#: The file of a machine folder that holds its signature.
SIGNATURE = "made-here"
_SECRET, _SIZE = "secret", 32
_HEAD = "memory-kb 1"


class SealKey:
    """The secret of this user on this machine, and the folder that it is kept in; None where it cannot be kept."""

    def __init__(self, key: bytes, folder: Path | None) -> None:
        self.key, self.folder = key, folder

    def verify(self, machine: Path) -> tuple[bytes | None, bool]:
        """Return the seal of a machine folder, None if it was not made here, and whether path and inode both match."""
        state, lines = os.lstat(machine), _read_signature(machine / SIGNATURE)
        if not stat.S_ISDIR(state.st_mode) or len(lines) != 4 or lines[0] != _HEAD:
            return None, False
        matches = [
            lines[number] == sign(self.key, text) for number, text in enumerate(_texts(machine, state, lines[1]), 2)
        ]
        return (self.seal(lines[1]), all(matches)) if any(matches) else (None, False)

    def seal(self, nonce: str) -> bytes:
        """Return the key of the machine folder that has a nonce; what it signs was written here for that folder."""
        return bytes.fromhex(sign(self.key, f"seal {nonce}".encode()))

    def mark(self, machine: Path) -> bytes:
        """Sign a machine folder and return its seal; a nonce of ours is kept."""
        state = os.lstat(machine)
        nonce = _read_signature(machine / SIGNATURE)[1] if self.verify(machine)[0] else os.urandom(16).hex()
        signatures = (sign(self.key, text) for text in _texts(machine, state, nonce))
        replace_file(machine / SIGNATURE, "".join(f"{line}\n" for line in (_HEAD, nonce, *signatures)).encode())
        return self.seal(nonce)


def _texts(machine: Path, state: os.stat_result, nonce: str) -> tuple[bytes, bytes]:
    path = os.fsencode(os.path.realpath(machine))
    return b"path " + nonce.encode() + b" " + path, f"inode {nonce} {state.st_dev}:{state.st_ino}".encode()


def sign(key: bytes, data: bytes) -> str:
    """Return the signature of some bytes."""
    return blake2b(data, key=key, digest_size=32).hexdigest()


def _read_signature(file: Path) -> list[str]:
    """Return the lines of a signature, none where there is no plain file.

    Raises:
        OSError: it cannot be read at the moment, which says nothing about where it was made.
    """
    try:
        with open_for_reading(file) as stream:
            return stream.read(1_000).decode("ascii", "replace").splitlines()
    except OSError as exc:
        if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return []
        raise


def load_seal_key(environ: Mapping[str, str], outside: Sequence[Path]) -> SealKey:
    """Return the key of this user, made at the first time, and never in a folder of `outside`."""
    for folder in _state_folders(environ):
        place = Path(os.path.realpath(folder))
        if not any(place.is_relative_to(one) for one in outside):
            with contextlib.suppress(OSError):
                return SealKey(_secret_of(folder), folder)
    # Nothing can be kept: what this process makes is trusted by this process alone.
    return SealKey(os.urandom(_SIZE), None)


def _secret_of(folder: Path) -> bytes:
    file = folder / _SECRET
    if key := _read_secret(file):
        return key
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / ".gitignore").exists():
        replace_file(folder / ".gitignore", b"*\n")
    part = file.with_name(f"{file.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    with os.fdopen(create_regular(part, 0o600), "wb") as stream:
        stream.write(os.urandom(_SIZE).hex().encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    try:
        # Of two processes that begin at once, one makes it and both use it.
        os.link(part, file)
    except OSError:
        if not file.exists():  # a file system without links
            os.replace(part, file)
    part.unlink(missing_ok=True)
    if key := _read_secret(file):
        return key
    raise OSError(f"{file} is no secret")


def _read_secret(file: Path) -> bytes | None:
    """Return the key in a file that belongs to this user, None where there is no such file."""
    try:
        with open_for_reading(file) as stream:
            state, text = os.fstat(stream.fileno()), stream.read(200)
            if os.name != "nt" and state.st_mode & 0o077:
                with contextlib.suppress(OSError):
                    os.fchmod(stream.fileno(), 0o600)
    except OSError:
        return None
    is_ours = os.name == "nt" or os.geteuid() in (0, state.st_uid)
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        return None
    return key if is_ours and len(key) == _SIZE else None


def _state_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield where the secret may be kept, the best place first."""
    named = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(named):
        yield Path(named) / "memory-kb"
    home = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "win32":
        yield Path(environ.get("LOCALAPPDATA") or home) / "memory-kb" / "state"
    elif sys.platform == "darwin":
        yield Path(home) / "Library/Application Support/memory-kb"
    elif os.path.isabs(home):
        yield Path(home) / ".local/state/memory-kb"
    if os.name != "nt":
        import tempfile

        shared = Path(tempfile.gettempdir()) / f"memory-kb-{os.geteuid()}"
        with contextlib.suppress(OSError):
            shared.mkdir(mode=0o700, exist_ok=True)
            state = os.lstat(shared)
            if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o022:
                yield shared
