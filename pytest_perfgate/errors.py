"""Every exception that is raised on purpose.

A regression is not an exception but a verdict, and neither is a missing
baseline: these classes are for input, files, devices and services that are not
as they must be. Every message shows the value, the place and the way out.
"""


class PerfGateError(Exception):
    """Base of all errors of this project."""


class UsageError(PerfGateError):
    """An option, a marker or an argument cannot mean anything; exit code 4."""


class BaselineError(PerfGateError):
    """A stored file cannot be used as it is."""


class BaselineCorrupt(BaselineError):
    """A stored file is truncated, not JSON, or holds an impossible value."""


class SchemaTooNew(BaselineError):
    """A stored file was written by a newer version of this package."""


class StoreUnreachable(PerfGateError):
    """The folder of the baselines cannot be read or written; exit code 3."""


class MeasurementError(PerfGateError):
    """A benchmark could not be measured."""


class DeviceUnavailable(MeasurementError):
    """The device that was asked for is not there."""


class BadSample(MeasurementError):
    """A sample is NaN, infinite, or not positive where a ratio is needed."""


class NothingMeasured(MeasurementError):
    """A benchmark named the fixture and then measured nothing."""


class ProtocolError(PerfGateError):
    """Manager and worker do not speak the same language."""


class GitHubError(PerfGateError):
    """GitHub did not do what it was asked; reporting failed, the verdict stands."""


class Unauthorized(GitHubError):
    """The token is wrong or expired, or meant for another host (401)."""


class Forbidden(GitHubError):
    """The token may not do this: allow lists, SAML, a locked conversation (403)."""


class ReadOnlyToken(Forbidden):
    """The token of this job reads only, as that of a fork or of Dependabot."""


class NotFound(GitHubError):
    """It is gone, or the token cannot see it (404, 410)."""


class RateLimited(GitHubError):
    """Too many requests, and no time left to wait."""


class Rejected(GitHubError):
    """The request itself was refused (422 and other 4xx)."""


class TooLong(Rejected):
    """The body of a comment is longer than the server takes."""


class Unreachable(GitHubError):
    """A timeout, a broken connection, or an error of the server itself (5xx)."""


class BadAnswer(GitHubError):
    """The answer is not what the API promises: a login page, a foreign link."""


class BaseTreeError(PerfGateError):
    """The base tree of a paired measurement cannot be had."""


class NotARepository(BaseTreeError, UsageError):
    """There is no git repository to take another commit from."""


class UnknownRef(BaseTreeError, UsageError):
    """git knows no commit of that name."""


class ShallowClone(BaseTreeError, UsageError):
    """The clone's history is cut off before the merge base."""


class UnrelatedHistories(BaseTreeError, UsageError):
    """Two commits have no ancestor in common."""


class WorktreeFailed(BaseTreeError):
    """The base commit cannot be checked out."""


class BaseSetupFailed(BaseTreeError):
    """The user's command that prepares the base tree failed."""


class BasePythonUnusable(BaseTreeError, UsageError):
    """The interpreter named for the base tree cannot run its workers."""
