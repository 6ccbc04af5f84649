"""Makes vectors.json: answers of authenticators that are not ours.

    pip install soft-webauthn==0.1.4 fido2==1.2.0 cryptography==44.0.3
    python vectors.py > vectors.json

`soft` is the answer of soft-webauthn's device (ES256, asks its user and does not verify it). The others are
written with the CBOR and COSE of fido2 and signed by cryptography: EdDSA, RS256, and ES256 with a packed
attestation that signs itself, all with a verified user.
"""
import json
import os
from base64 import urlsafe_b64encode
from struct import pack

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2 import cbor, cose
from fido2.utils import sha256
from soft_webauthn import SoftWebauthnDevice

SITE, ORIGIN = "hikite.example", "https://hikite.example"
# What stands for the user `alice`.
USER = sha256(b"alice")


def text(data):
    return urlsafe_b64encode(data).decode().rstrip("=")


def written(answer):
    response = {name: text(value) for name, value in answer["response"].items()}
    return {"id": text(answer["rawId"]), "rawId": text(answer["rawId"]), "type": answer["type"], "response": response}


def soft():
    device, first, second = SoftWebauthnDevice(), os.urandom(32), os.urandom(32)
    made = device.create(
        {"publicKey": {"rp": {"id": SITE}, "user": {"id": USER}, "challenge": first,
                       "pubKeyCredParams": [{"alg": -7, "type": "public-key"}], "attestation": "none"}}, ORIGIN)
    used = device.get({"publicKey": {"rpId": SITE, "challenge": second}}, ORIGIN)
    return {"name": "soft", "verified": False, "made_for": text(first), "made": written(made),
            "used_for": text(second), "used": written(used)}


def hard(name, key, cose_key, sign, attest=False):
    first, second, identifier = os.urandom(32), os.urandom(32), os.urandom(48)

    def client(kind, challenge):
        return json.dumps({"type": kind, "challenge": text(challenge), "origin": ORIGIN, "crossOrigin": False,
                           "other_keys_can_be_added_here": "do not compare"}).encode()

    data = client("webauthn.create", first)
    authenticator = (sha256(SITE.encode()) + b"\x45" + pack(">I", 7) + os.urandom(16)
                     + pack(">H", len(identifier)) + identifier + cbor.encode(cose_key))
    statement = {"alg": -7, "sig": sign(authenticator + sha256(data))} if attest else {}
    attestation = {"fmt": "packed" if attest else "none", "attStmt": statement, "authData": authenticator}
    made = {"rawId": identifier, "type": "public-key",
            "response": {"clientDataJSON": data, "attestationObject": cbor.encode(attestation)}}
    data = client("webauthn.get", second)
    authenticator = sha256(SITE.encode()) + b"\x85" + pack(">I", 8) + cbor.encode({"appid": True})
    used = {"rawId": identifier, "type": "public-key",
            "response": {"clientDataJSON": data, "authenticatorData": authenticator,
                         "signature": sign(authenticator + sha256(data)), "userHandle": USER}}
    return {"name": name, "verified": True, "made_for": text(first), "made": written(made),
            "used_for": text(second), "used": written(used)}


edwards = ed25519.Ed25519PrivateKey.generate()
rivest = rsa.generate_private_key(65537, 2048)
curve = ec.generate_private_key(ec.SECP256R1())
print(json.dumps([
    soft(),
    hard("EdDSA", edwards, cose.EdDSA.from_cryptography_key(edwards.public_key()), edwards.sign),
    hard("RS256", rivest, cose.RS256.from_cryptography_key(rivest.public_key()),
         lambda message: rivest.sign(message, padding.PKCS1v15(), hashes.SHA256())),
    hard("packed", curve, cose.ES256.from_cryptography_key(curve.public_key()),
         lambda message: curve.sign(message, ec.ECDSA(hashes.SHA256())), attest=True),
], indent=1))
