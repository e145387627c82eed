"""Page images: found below the folder of the data and nowhere else, known by their first bytes, of limited size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from attrs import frozen

from skillopt_es.events.values import digest_of
from skillopt_es.ports import Image, ImageDetail, ImageType

_FIRST_BYTES: Mapping[bytes, ImageType] = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


class UnusableImageError(ValueError):
    """An image that cannot be shown, or not any more; the message names it by its place in the data."""


@frozen
class Picture:
    """Where an image is, and what was in it when the data were read."""

    name: str
    path: Path
    digest: str


def picture_at(root: Path, name: str, *, most: int) -> Picture:
    """The image of this name below `root`; raises UnusableImageError for what is elsewhere, or no image to send."""
    path = _inside(root, name)
    return Picture(PurePosixPath(name.replace("\\", "/")).name, path, digest_of(_read(path, name, most)[1]))


def shown(picture: Picture, detail: ImageDetail, *, most: int) -> Image:
    """The image to send; raises UnusableImageError when it is not the one that was there when the data were read."""
    media_type, data = _read(picture.path, picture.name, most)
    image = Image(media_type, data, detail)
    if image.digest != picture.digest:
        raise UnusableImageError(f"the image {picture.name} was changed after the data were read")
    return image


def _inside(root: Path, name: str) -> Path:
    windows = PureWindowsPath(name)  # takes both kinds of slash
    if windows.anchor or PurePosixPath(name).is_absolute() or ".." in windows.parts or "\0" in name:
        raise UnusableImageError(f"the image {name!r} is not named by a plain path below the data")
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise UnusableImageError(f"the image {name!r} is a link that points outside of the data")
    return path


def _read(path: Path, name: str, most: int) -> tuple[ImageType, bytes]:
    if not path.is_file():
        raise UnusableImageError(f"there is no image {name}")
    try:
        with path.open("rb") as file:
            # One byte more shows that it is too large.
            data = file.read(most + 1)
    except OSError as error:
        raise UnusableImageError(f"the image {name} cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise UnusableImageError(f"the image {name} has more than {most} bytes")
    for first, media_type in _FIRST_BYTES.items():
        if data.startswith(first):
            return media_type, data
    raise UnusableImageError(f"{name} is neither a PNG nor a JPEG image")
