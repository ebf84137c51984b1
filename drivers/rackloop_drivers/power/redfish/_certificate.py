"""A certificate authority for one lab: signs one certificate for loopback and is then forgotten."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import timedelta
from pathlib import Path

from rackloop.clock import Clock

# As long as clients put up with, for labs that stay up for long.
_VALID = timedelta(days=800)


def serve_tls(directory: Path, clock: Clock) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for 127.0.0.1 and localhost; the CA file that clients verify with, and what to serve with.

    The server's key is in ``directory`` (mode 600); the authority's key is kept nowhere.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    begins = clock.wall() - timedelta(days=1)

    def certificate(subject: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("Rackloop mock lab CA"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + _VALID)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )

    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    sign_only = {
        "digital_signature": True,
        "content_commitment": False,
        "key_encipherment": False,
        "data_encipherment": False,
        "key_agreement": False,
        "encipher_only": False,
        "decipher_only": False,
    }
    authority = (
        certificate("Rackloop mock lab CA", ca_key, is_authority=True)
        .add_extension(x509.KeyUsage(**sign_only, key_cert_sign=True, crl_sign=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    served = (
        certificate("localhost", key, is_authority=False)
        .add_extension(x509.KeyUsage(**sign_only, key_cert_sign=False, crl_sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    ca_file, own_file = directory / "bmc-ca.pem", directory / "bmc-server.pem"
    ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    own_file.touch(mode=0o600)
    own_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + served.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_file)
    return ca_file, context
