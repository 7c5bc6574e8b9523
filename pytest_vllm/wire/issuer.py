"""Who issued a certificate: the one field that the standard library shows of trusted certificates alone.

Source: RFC 5280, section 4.1 (TBSCertificate), in DER (X.690).
"""

from __future__ import annotations

#: Object identifiers of the parts of a name: commonName, organizationName.
_PARTS = {b"\x55\x04\x03": "CN", b"\x55\x04\x0a": "O"}


def issuer_in(der: bytes) -> str:
    """`CN=…, O=…` of the issuer; empty when these bytes are not a certificate that can be read."""
    try:
        certificate = _fields(_fields(der)[0][1])
        tbs = _fields(certificate[0][1])
        after = tbs[1:] if tbs[0][0] == 0xA0 else tbs  # the version, where it is told
        names = [pair for one in _fields(after[2][1]) for pair in _fields(one[1])]
        pairs = [_fields(pair[1]) for pair in names]
        found = [(_PARTS[kind[1]], text[1]) for kind, text in pairs if kind[1] in _PARTS]
    except (IndexError, ValueError):
        return ""
    return ", ".join(f"{name}={text.decode('utf-8', 'replace')}" for name, text in found)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """(tag, contents) of the elements that stand one after the other."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            octets = size & 0x7F
            size, at = int.from_bytes(data[at : at + octets]), at + octets
        if at + size > len(data):
            raise ValueError("an element is longer than what holds it")
        found.append((tag, data[at : at + size]))
        at += size
    return found
