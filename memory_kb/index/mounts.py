"""File systems whose changes the system does not announce."""

from __future__ import annotations

import re
from pathlib import Path

#: Others may change their files without this machine's kernel taking part. Some come as "fuse.NAME".
_REMOTE = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "smb2",
        "ncpfs",
        "9p",
        "virtiofs",
        "vboxsf",
        "vmhgfs",
        "vmhgfs-fuse",
        "prl_fs",
        "ceph",
        "glusterfs",
        "lustre",
        "afs",
        "coda",
        "davfs",
        "davfs2",
        "beegfs",
        "gpfs",
        "orangefs",
        "gfs2",
        "ocfs2",
        "sshfs",
        "rclone",
        "s3fs",
        "gcsfuse",
        "goofys",
        "blobfuse",
        "blobfuse2",
        "google-drive-ocamlfuse",
        "osxfs",
        "portal",
    ]
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def remote_kind(folder: Path) -> str | None:
    """Return the kind of network file system that a folder lies on, or None."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = kind_of_mount(mounts, str(folder))
    return kind if is_remote(kind) else None


def is_remote(kind: str) -> bool:
    """Tell whether other machines may change files on this kind of file system.

    Example:
        >>> is_remote("nfs4"), is_remote("fuse.sshfs"), is_remote("fuse.encfs"), is_remote("ext4")
        (True, True, False, False)
    """
    return kind.removeprefix("fuse.") in _REMOTE


def kind_of_mount(mountinfo: str, folder: str) -> str:
    """Return the kind of file system that a folder lies on, told by the kernel's table.

    Example:
        >>> table = "1 0 8:1 / / rw - ext4 /dev/sda rw\\n2 1 0:9 / /my\\\\040notes rw shared:1 - nfs4 host:/ rw\\n"
        >>> kind_of_mount(table, "/my notes/a"), kind_of_mount(table, "/my notes too")
        ('nfs4', 'ext4')
    """
    best, kind = "", ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5:
            continue
        place = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])
        if len(place) >= len(best) and (folder + "/").startswith(place.rstrip("/") + "/"):
            best, kind = place, after.partition(" ")[0]
    return kind
