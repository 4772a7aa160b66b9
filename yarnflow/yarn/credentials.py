"""The certificate by which an application's ApplicationMaster refuses other users.

skein encrypts and authenticates its own calls by one self-signed certificate that both sides
have.  By default it keeps one per user in the home directory; here each application gets its own,
which exists in memory and in the application's files only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

#: the name skein's clients expect
_NAME: Final = "skein-internal"
#: clocks of the cluster's machines may differ
_SKEW: Final = timedelta(days=1)
#: jobs may run for years; a certificate that expires would end them
_VALID: Final = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Certificate and private key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def new_credentials() -> Credentials:
    """A fresh pair on an elliptic curve, which takes no time to make."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .sign(key, hashes.SHA256())
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
