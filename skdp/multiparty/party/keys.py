"""Keys and pinned certificates: a party is known by the fingerprint of its certificate, and by nothing else.

The plan holds the certificate of every party. A certificate is self-signed, since it is pinned: nobody has to
trust a certificate authority. Whoever holds the private key of a pinned certificate is that party.
"""

import hashlib
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

_DAYS = 365  # that a new certificate is valid; a choice, not tuned


class CertificateError(ValueError):
    """A certificate or a key is not the one of the plan, or not valid now."""


def fingerprint_of(certificate: str | bytes) -> str:
    """SHA-256 of the DER form, in hexadecimal digits.

    Parameters
    ----------
    certificate : str or bytes
        One certificate: PEM text, or DER bytes.

    Raises
    ------
    ValueError
        If it is not one PEM certificate.
    """
    if isinstance(certificate, str):
        if certificate.count("-----BEGIN ") != 1:
            raise ValueError("it must be one certificate in PEM form, and nothing else")
        certificate = ssl.PEM_cert_to_DER_cert(certificate)
    return hashlib.sha256(certificate).hexdigest()


def check_dates(certificate: str, name: str) -> None:
    """Refuse a certificate that is not valid now.

    Parameters
    ----------
    certificate : str
        PEM text.
    name : str
        Whose it is, for the message.

    Raises
    ------
    CertificateError
    """
    from cryptography import x509

    try:
        parsed = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise CertificateError(f"the certificate of {name} is damaged") from error
    now = datetime.now(UTC)
    if now > parsed.not_valid_after_utc:
        raise CertificateError(
            f"the certificate of {name} expired on {parsed.not_valid_after_utc:%Y-%m-%d}: "
            "make a new one, and a new plan with it"
        )
    if now < parsed.not_valid_before_utc:
        raise CertificateError(
            f"the certificate of {name} begins on {parsed.not_valid_before_utc:%Y-%m-%d}: is the clock right?"
        )


def check_key(key_path: str | os.PathLike[str], certificate: str, name: str) -> None:
    """Refuse a private key that others can read, or that does not belong to a certificate.

    Parameters
    ----------
    key_path : str or path-like
        PEM file without a password.
    certificate : str
        PEM text.
    name : str
        Whose it is, for the message.

    Raises
    ------
    OSError
        If the file cannot be read.
    CertificateError
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    path = Path(key_path)
    secret = path.read_bytes()
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise CertificateError(f"other users may read the key {path}: set its mode to 0600 (chmod 600)")
    try:
        public = load_pem_private_key(secret, None).public_key()
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{path} is not a private key in PEM form without a password") from (error)
    if public != x509.load_pem_x509_certificate(certificate.encode()).public_key():
        raise CertificateError(f"the key {path} does not belong to the certificate of {name}")


def make_keys(folder: str | os.PathLike[str], name: str, *, days: int = _DAYS) -> tuple[Path, Path]:
    """Write a new key and its self-signed certificate: NAME.key (mode 0600) and NAME.crt.

    Parameters
    ----------
    folder : str or path-like
        Made if missing.
    name : str
        Of the party; becomes the subject, which nobody reads for a decision.
    days : int, default=365
        How long the certificate is valid from now.

    Returns
    -------
    key, certificate : Path

    Raises
    ------
    FileExistsError
        If one of the files is there: a key is never written over.
    """
    from cryptography.hazmat.primitives import serialization

    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    key_path, certificate_path = where / f"{name}.key", where / f"{name}.crt"
    if certificate_path.exists():
        raise FileExistsError(f"{certificate_path} is there already; keys are never written over")
    key, certificate = _new_certificate(name, days)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        descriptor = os.open(key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise FileExistsError(f"{key_path} is there already; keys are never written over") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(secret)
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key_path, certificate_path


def _new_certificate(name: str, days: int):  # type: ignore[no-untyped-def]
    """An ECDSA P-256 key and a certificate that can sign no other certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, certificate
