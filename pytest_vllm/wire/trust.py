"""Whom TLS trusts, what it shows of itself, and what is said when it refuses."""

from __future__ import annotations

import ssl
from pathlib import Path

from pytest_vllm.wire.failure import Failure, TransportError
from pytest_vllm.wire.issuer import issuer_in

#: OpenSSL's X509_V_ERR codes: expired, not yet valid; a name or an address that the certificate lacks.
_DATES, _NAMES = (9, 10), (62, 64)
#: What OpenSSL says when the other end does not speak TLS.
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
TRUST = 'name its authority: --vllm-ca-file=FILE, [server.tls] ca = "FILE", or SSL_CERT_FILE'
SHOW = '--vllm-client-cert=FILE, or [server.tls] certificate = "FILE" and key'


def tls_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """TLS that trusts the system's authorities (or `SSL_CERT_FILE`, `SSL_CERT_DIR`) and one's own.

    Args:
        ca: file or folder of authorities.
        certificate: file of a client certificate, with its key unless `key` names that.
        key: file of its key, not encrypted.

    Raises TransportError when a file cannot be used.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca:
        folder = Path(ca).is_dir()
        try:
            context.load_verify_locations(capath=ca) if folder else context.load_verify_locations(ca)
        except OSError as error:
            raise TransportError(Failure.TLS, f"the CA file {ca} cannot be used: {_words(error)}") from error
    if certificate:
        try:
            context.load_cert_chain(certificate, key or None, password=lambda: "")
        except OSError as error:
            what = f"the client certificate {certificate}" + (f" with the key {key}" if key else "")
            raise TransportError(Failure.TLS, f"{what} cannot be used: {_words(error)}") from error
    return context


def refusal(error: ssl.SSLError, where: str, der: bytes = b"") -> TransportError:
    """The failure of a handshake, in words: what was refused, by whom, and what would help.

    Args:
        error: what OpenSSL says.
        where: the server, or the host and port.
        der: the certificate that was refused, where it is known.
    """
    return TransportError(Failure.TLS, f"no TLS with {where}: {reason(error, der)}")


def reason(error: ssl.SSLError, der: bytes = b"") -> str:
    """Why a handshake failed, and the next step."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {_unverified(error, der)}"
    text = str(error).upper()
    if "CERTIFICATE_REQUIRED" in text or "CERTIFICATE REQUIRED" in text:
        return f"the server wants a client certificate; give one: {SHOW}"
    if "ALERT" in text:
        return f"the server refused it ({_words(error)}): a client certificate may be wanted: {SHOW}"
    if any(word in text for word in _PLAIN):
        return f"what listens there does not speak TLS ({_words(error)}); check port and scheme"
    return _words(error)


def _unverified(error: ssl.SSLCertVerificationError, der: bytes) -> str:
    said = (error.verify_message or _words(error)).rstrip(".")
    if error.verify_code in _NAMES:
        return f"{said}; use a name that the certificate carries"
    if error.verify_code in _DATES:
        return f"{said}; renew the server's certificate, or mend this machine's clock"
    issuer = issuer_in(der)
    return f"{said}{f' (issued by {issuer})' if issuer else ''}; {TRUST}"


def _words(error: OSError) -> str:
    reason_: str = getattr(error, "reason", "") or error.strerror or str(error) or type(error).__name__
    return reason_
