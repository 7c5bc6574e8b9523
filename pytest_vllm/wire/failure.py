"""How an exchange failed on its way: a closed list, so that nobody reads it out of a sentence."""

from __future__ import annotations

from enum import StrEnum

#: What the error of an exchange begins with that failed as `Failure.HELD`, and with it the reason of a check.
HELD_UP = "this process was held up"
TOO_BUSY = "the machine is too busy to judge"


class Failure(StrEnum):
    """What became of an exchange that has no complete response. The values stand in recording files."""

    NOT_SENT = "not-sent"
    """The request never left: it could not be made, or the run had stopped."""
    UNFIT = "unfit"
    """The server is not made for the request: it lacks the route, the feature or the context."""
    NO_CONNECTION = "no-connection"
    """No name, no route, refused, or no connection in time."""
    PROXY = "proxy"
    """The proxy in between could not be used: not reached, refused the tunnel, or wants a login."""
    TLS = "tls"
    """The two ends agreed on no TLS: a certificate that is not trusted, or no TLS at all."""
    TIMEOUT_FIRST_BYTE = "timeout-first-byte"
    """The time was up before the response head came."""
    TIMEOUT_SILENCE = "timeout-silence"
    """A response that had begun sent nothing for too long."""
    TIMEOUT_TOTAL = "timeout-total"
    """The time was up while the response still came."""
    RESET = "reset"
    """The connection broke."""
    TRUNCATED = "truncated"
    """The connection was closed in order, before the response was complete."""
    PROTOCOL = "protocol"
    """The bytes are not HTTP/1.1, more than a recording holds, or a stream that goes on after its end."""
    GIVEN_UP = "given-up"
    """This run stopped waiting for it."""
    STOPPED = "stopped"
    """It was never sent: the recording had stopped before, since the server was gone or hung."""
    HELD = "held"
    """It failed each time while this process was held up, so that the failure may be this process's own."""

    @property
    def ours(self) -> bool:
        """Whether it says nothing of the server: this run did not send it, or could not wait for it."""
        return self in (Failure.GIVEN_UP, Failure.STOPPED, Failure.HELD)

    @property
    def unreached(self) -> bool:
        """Whether the request never reached a server."""
        return self in (Failure.NO_CONNECTION, Failure.PROXY, Failure.TLS)

    @property
    def slow(self) -> bool:
        """Whether time ran out."""
        return self in (Failure.TIMEOUT_FIRST_BYTE, Failure.TIMEOUT_SILENCE, Failure.TIMEOUT_TOTAL)


class TransportError(OSError):
    """A failure with its words; an OSError, as every failure of a socket is."""

    def __init__(self, failure: Failure, words: str) -> None:
        """`str()` is the words."""
        super().__init__(words)
        self.failure = failure


#: How the errors of recordings of format 1 begin, which knew no list of failures: first match wins.
_WORDS = (
    ("not sent", Failure.NOT_SENT),
    ("no connection to", Failure.NO_CONNECTION),
    ("not complete within", Failure.TIMEOUT_TOTAL),
    ("no byte came for", Failure.TIMEOUT_SILENCE),
    ("given up", Failure.GIVEN_UP),
    ("the connection closed before", Failure.TRUNCATED),
    ("the connection ended inside", Failure.TRUNCATED),
    ("the body ended after", Failure.TRUNCATED),
    ("the connection broke", Failure.RESET),
)


def failure_in_words(error: str, *, answered: bool) -> Failure | None:
    """The failure of a recording of format 1, by its error's words; None without an error.

    Args:
        error: the words.
        answered: whether a response head had come.
    """
    if not error:
        return None
    found = next((kind for words, kind in _WORDS if error.startswith(words)), Failure.PROTOCOL)
    if found is Failure.NO_CONNECTION and ": no TLS" in error:
        return Failure.TLS
    if found is Failure.TIMEOUT_TOTAL and not answered:
        return Failure.TIMEOUT_FIRST_BYTE
    return found
