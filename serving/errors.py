"""Every failure the service can name.

ReadleafError
├── SetupError                the service cannot start; the command prints it and exits with 1
│   ├── SettingsInvalid       a setting that does not exist or has an impossible value; exits with 2
│   ├── ModelsMissing         no model folder, or nothing in it
│   ├── ManifestInvalid       a manifest.json that does not fit its schema or its model
│   ├── ModelCorrupt          a model file whose sha256 is not the manifest's
│   ├── ModelRefused          a model that does not answer as it should
│   ├── TritonUnusable        no Triton, or one that serves something else
│   ├── DataFolderUnusable    the data folder cannot be written
│   ├── DataFolderInUse       another service works on the data folder
│   ├── DatabaseUnusable      the database is damaged, or of a newer Readleaf
│   ├── AddressRefused        an address other than loopback while no API key exists
│   └── PortInUse             another process listens there
├── EntryRefused              one file of an archive cannot be taken; its job notes it and goes on
├── OverlayUnusable           `readleaf read --overlay` names what cannot be written
├── KeyUnknown                `readleaf keys revoke` names a key that was never made
└── RequestError              one request cannot be answered; becomes problem+json
    ├── NotFound              404
    │   ├── CollectionMissing 404
    │   ├── ItemMissing       404
    │   ├── JobMissing        404
    │   ├── ModelMissing      404
    │   ├── VersionMissing    404
    │   ├── PictureMissing    404  the item is known by its vector alone
    │   ├── ObservationMissing 404
    │   ├── TaxonMissing      404
    │   └── VoteMissing       404  nothing of one's own to take back
    ├── MethodNotAllowed      405
    ├── KeyMissing            401  no key, or one that is unknown, expired or revoked
    ├── RoleTooLow            403  the key is for less than this
    ├── HostRefused           403  asked by a name of another machine while no API key exists
    ├── ReviewerUnnamed       422  what is said needs somebody who says it
    ├── RequestInvalid        422  a field is missing or has the wrong form
    ├── BodyMalformed         400  the body cannot be parsed
    ├── BodyTooLarge          413
    ├── TooManyImages         413
    ├── ImageEmpty            422
    ├── ImageTooLarge         413  bytes or pixels
    ├── ImageFormatUnknown    415  not one of the accepted formats
    ├── ImageBroken           422  the format is right, the content is damaged
    ├── RegionOutside         422  a part that the picture does not have
    ├── PriorInvalid          422  unknown labels, or weights that are none
    ├── ArchiveBroken         422  not a zip file, or one with too many files
    ├── TaxonomyBroken        422  neither a table of taxa nor a Darwin Core archive
    ├── CollectionExists      409
    ├── PictureExists         409  the collection holds this very file already
    ├── LeaseMissing          409  somebody else has the observation, or nobody
    ├── TaxonConflict         409  a name that is taken, a circle, a merge with itself
    ├── IdempotencyConflict   422  a key that was used for something else
    ├── VersionRefused        409  a version of a model that failed its checks; the one in use stays
    ├── DiskFull              507
    ├── Overloaded            503  with Retry-After
    ├── RuntimeUnavailable    503  what runs the models is gone; with Retry-After
    ├── DeadlineExceeded      503  the time that X-Request-Timeout allowed is up
    ├── RequestAbandoned      499  whoever asked has gone; nobody sees this answer
    ├── VectorOutdated        503  the embedder was switched again and again meanwhile
    └── InternalError         500  our own bug
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class ReadleafError(Exception):
    """Anything Readleaf reports in one clear sentence."""

    @property
    def message(self) -> str:
        """The sentence itself."""
        return str(self)


class SetupError(ReadleafError):
    """The service cannot start."""

    exit_code: ClassVar[int] = 1


class SettingsInvalid(SetupError):
    """A setting that does not exist or has an impossible value."""

    exit_code = 2


class ModelsMissing(SetupError):
    """No model folder, or nothing in it."""


class ManifestInvalid(SetupError):
    """A manifest.json that does not fit its schema or its model."""


class ModelCorrupt(SetupError):
    """A model file whose sha256 is not the manifest's."""


class ModelRefused(SetupError):
    """A model that does not answer as its manifest says."""


class TritonUnusable(SetupError):
    """No Triton, or one that serves something else than the model repository says."""


class DataFolderUnusable(SetupError):
    """The data folder cannot be written."""


class DataFolderInUse(SetupError):
    """Another service, or another Triton, works on the data folder."""


class DatabaseUnusable(SetupError):
    """The database is damaged, or was written by a newer Readleaf."""


class AddressRefused(SetupError):
    """An address other than loopback while no API key exists."""


class PortInUse(SetupError):
    """Another process listens on the port."""


class EntryRefused(ReadleafError):
    """One file of an archive that cannot be taken."""


class OverlayUnusable(ReadleafError):
    """A place for drawn pictures that cannot be written."""


class KeyUnknown(ReadleafError):
    """A number that no API key has."""


class RequestError(ReadleafError):
    """One request cannot be answered. `kind` is stable: apps may switch on it."""

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "bad-request"
    title: ClassVar[str] = "The request cannot be answered"

    def __init__(self, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        self.extra = extra

    @classmethod
    def type_uri(cls) -> str:
        """The `type` of the problem document."""
        return f"urn:readleaf:problem:{cls.kind}"

    def problem(self, request_id: str) -> dict[str, Any]:
        """The problem document (RFC 9457)."""
        return {
            "type": self.type_uri(),
            "title": self.title,
            "status": self.status,
            "detail": self.message,
            "request_id": request_id,
            **self.extra,
        }


class NotFound(RequestError):
    """There is nothing at this address."""

    status, kind, title = 404, "not-found", "There is nothing at this address"


class CollectionMissing(NotFound):
    """A collection that does not exist."""

    kind, title = "collection-missing", "There is no such collection"


class ItemMissing(NotFound):
    """An item that does not exist."""

    kind, title = "item-missing", "There is no such item"


class JobMissing(NotFound):
    """A job that does not exist."""

    kind, title = "job-missing", "There is no such job"


class ModelMissing(NotFound):
    """A model that is not there, or that does something else."""

    kind, title = "model-missing", "There is no such model"


class VersionMissing(NotFound):
    """A version of a model that is not in the model repository."""

    kind, title = "version-missing", "There is no such version"


class PictureMissing(NotFound):
    """An item whose picture was never there."""

    kind, title = "picture-missing", "There is no picture of this item"


class ObservationMissing(NotFound):
    """An observation that does not exist."""

    kind, title = "observation-missing", "There is no such observation"


class TaxonMissing(NotFound):
    """A taxon that does not exist, or does no more."""

    kind, title = "taxon-missing", "There is no such taxon"


class VoteMissing(NotFound):
    """Nothing of one's own that could be taken back."""

    kind, title = "vote-missing", "There is no vote to take back"


class MethodNotAllowed(RequestError):
    """The address exists, the method does not."""

    status, kind, title = 405, "method-not-allowed", "This address does not take that method"


class KeyMissing(RequestError):
    """No key came with the request, or one that lets nobody in."""

    status, kind, title = 401, "key-missing", "A valid API key is needed"


class RoleTooLow(RequestError):
    """The key's role does not reach that far."""

    status, kind, title = 403, "role-too-low", "The key's role does not allow this"


class HostRefused(RequestError):
    """A name that is not this machine's own: a page elsewhere may have pointed it here (DNS rebinding)."""

    status, kind, title = 403, "host-refused", "Without API keys only this machine is answered"


class ReviewerUnnamed(RequestError):
    """A vote or a lease without a name."""

    status, kind, title = 422, "reviewer-unnamed", "A reviewer needs a name"


class BodyMalformed(RequestError):
    """The body cannot be parsed, or broke off."""

    status, kind, title = 400, "body-malformed", "The body cannot be parsed"


class RequestInvalid(RequestError):
    """A field is missing or has the wrong form."""

    status, kind, title = 422, "request-invalid", "A field is missing or has the wrong form"


class BodyTooLarge(RequestError):
    """The whole request is larger than the server takes."""

    status, kind, title = 413, "body-too-large", "The request is too large"


class TooManyImages(RequestError):
    """More images than one call may carry."""

    status, kind, title = 413, "too-many-images", "Too many images in one call"


class ImageEmpty(RequestError):
    """A file of zero bytes."""

    status, kind, title = 422, "image-empty", "The image file is empty"


class ImageTooLarge(RequestError):
    """An image of more bytes or pixels than the server takes."""

    status, kind, title = 413, "image-too-large", "The image is too large"


class ImageFormatUnknown(RequestError):
    """A file that is none of the accepted image formats."""

    status, kind, title = 415, "image-format-unknown", "The file is not an accepted image format"


class ImageBroken(RequestError):
    """An image of an accepted format whose content is damaged."""

    status, kind, title = 422, "image-broken", "The image is damaged"


class RegionOutside(RequestError):
    """A part of a picture that lies outside of it."""

    status, kind, title = 422, "region-outside", "The picture has no such part"


class PriorInvalid(RequestError):
    """Weights of labels that are not known, or that are no weights."""

    status, kind, title = 422, "prior-invalid", "The prior cannot be used"


class ArchiveBroken(RequestError):
    """A file that is no zip archive, or one that nobody should unpack."""

    status, kind, title = 422, "archive-broken", "The archive cannot be read"


class TaxonomyBroken(RequestError):
    """A file that is neither a table of taxa nor a Darwin Core archive of them."""

    status, kind, title = 422, "taxonomy-broken", "The file of taxa cannot be read"


class CollectionExists(RequestError):
    """A name that is taken."""

    status, kind, title = 409, "collection-exists", "A collection of this name exists already"


class PictureExists(RequestError):
    """The same file, byte for byte, is in the collection; `item` says where."""

    status, kind, title = 409, "picture-exists", "The collection holds this picture already"


class LeaseMissing(RequestError):
    """A vote on an observation that somebody else may be looking at."""

    status, kind, title = 409, "lease-missing", "You have no lease on this observation"


class TaxonConflict(RequestError):
    """A change that the taxonomy cannot take."""

    status, kind, title = 409, "taxon-conflict", "The taxonomy cannot be changed like this"


class IdempotencyConflict(RequestError):
    """An Idempotency-Key that came with another request before."""

    status, kind, title = 422, "idempotency-conflict", "This Idempotency-Key was used for something else"


class VersionRefused(RequestError):
    """A version of a model that failed a check; the one in use stays."""

    status, kind, title = 409, "version-refused", "The version failed its checks"


class DiskFull(RequestError):
    """There is no room to write; nothing was changed."""

    status, kind, title = 507, "disk-full", "The disk is full"


class Overloaded(RequestError):
    """All places are taken; come back after `Retry-After` seconds."""

    status, kind, title = 503, "overloaded", "The server is busy"


class RuntimeUnavailable(RequestError):
    """What runs the models does not answer; come back after `Retry-After` seconds."""

    status, kind, title = 503, "runtime-unavailable", "What runs the models does not answer"

    @classmethod
    def because(cls, reason: str) -> "RuntimeUnavailable":
        """With what is in the way."""
        return cls(
            f"what runs the models does not answer ({reason}); try again in a second", headers={"Retry-After": "1"}
        )


class DeadlineExceeded(RequestError):
    """The time that the caller gave with `X-Request-Timeout` is up."""

    status, kind, title = 503, "deadline-exceeded", "The time for this request is up"


class RequestAbandoned(RequestError):
    """Whoever asked has closed the connection, so nothing more is done."""

    status, kind, title = 499, "request-abandoned", "Whoever asked has gone"


class VectorOutdated(RequestError):
    """The embedder was switched between making a vector and keeping it; the caller makes another."""

    status, kind, title = 503, "vector-outdated", "The embedder was switched meanwhile"


class InternalError(RequestError):
    """A bug of ours; the log has the details under the request id."""

    status, kind, title = 500, "internal-error", "Something went wrong on our side"


# What any request that carries a picture may be answered with.
PICTURE_AT_FAULT = (ImageEmpty, ImageTooLarge, ImageFormatUnknown, ImageBroken)
NOT_NOW = (RuntimeUnavailable, Overloaded)  # the same again may well succeed in a moment
BAD_PICTURE = (
    BodyMalformed,
    BodyTooLarge,
    ImageTooLarge,
    ImageFormatUnknown,
    RequestInvalid,
    ImageEmpty,
    ImageBroken,
    Overloaded,
    RuntimeUnavailable,
    DeadlineExceeded,
)
