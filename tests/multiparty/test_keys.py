"""Keys: who a party is."""

import hashlib
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from skdp.cli import main
from skdp.multiparty.party.keys import CertificateError, check_dates, check_key, fingerprint_of, make_keys

# Where others' permissions exist, and the test does not run where they mean nothing.
posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")


@pytest.fixture
def made(tmp_path):
    return make_keys(tmp_path, "hospital_a")


def test_a_new_key_is_secret_and_never_written_over(tmp_path, made):
    key, certificate = made
    before = key.read_bytes()
    for gone in (None, certificate):  # either file alone is enough to refuse
        if gone is not None:
            gone.unlink()
        with pytest.raises(FileExistsError, match="never written over"):
            make_keys(tmp_path, "hospital_a")
    assert key.read_bytes() == before


@posix
def test_only_the_owner_may_read_a_key(made):
    assert stat.S_IMODE(made[0].stat().st_mode) == 0o600
    made[0].chmod(0o640)
    with pytest.raises(CertificateError, match="chmod 600"):
        check_key(made[0], made[1].read_text(), "hospital_a")


def test_a_certificate_can_sign_no_other_and_its_fingerprint_is_that_of_the_der(made):
    pem = made[1].read_text()
    parsed = x509.load_pem_x509_certificate(pem.encode())
    assert not parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    der = ssl.PEM_cert_to_DER_cert(pem)
    assert fingerprint_of(pem) == fingerprint_of(der) == hashlib.sha256(der).hexdigest()
    for text in ("", pem + pem, made[0].read_text() + pem):
        with pytest.raises(ValueError, match="one certificate"):
            fingerprint_of(text)


def test_a_key_must_belong_to_the_certificate(tmp_path, made):
    other, _ = make_keys(tmp_path, "hospital_b")
    check_key(made[0], made[1].read_text(), "hospital_a")
    with pytest.raises(CertificateError, match="does not belong to the certificate of hospital_a"):
        check_key(other, made[1].read_text(), "hospital_a")
    secret = load_pem_private_key(made[0].read_bytes(), None)
    locked = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
    for wrong in (b"nothing", made[1].read_bytes(), locked):
        other.write_bytes(wrong)
        with pytest.raises(CertificateError, match="not a private key in PEM form"):
            check_key(other, made[1].read_text(), "hospital_a")


def test_dates_are_checked_by_name(tmp_path, made):
    check_dates(made[1].read_text(), "hospital_a")
    expired = make_keys(tmp_path, "old", days=0)[1].read_text()
    with pytest.raises(CertificateError, match="certificate of old expired on"):
        check_dates(expired, "old")
    with pytest.raises(CertificateError, match="certificate of hospital_a is damaged"):
        check_dates(made[1].read_text().replace("M", "N", 1), "hospital_a")
    until = x509.load_pem_x509_certificate(made[1].read_bytes()).not_valid_after_utc
    assert abs(until - datetime.now(UTC) - timedelta(days=365)) < timedelta(hours=1)


def test_the_command_makes_keys_and_shows_fingerprints(tmp_path, capsys):
    assert main(["party", "keys", "--out", str(tmp_path), "one", "two"]) == 0
    said = capsys.readouterr().out
    for name in ("one", "two"):
        assert fingerprint_of((tmp_path / f"{name}.crt").read_text()) in said
        assert (tmp_path / f"{name}.key").exists()
    assert main(["party", "keys", "--out", str(tmp_path), "one"]) == 2
    assert "never written over" in capsys.readouterr().err
    assert main(["party", "keys", "--out", str(tmp_path)]) == 2
