"""Messages are encrypted as RFC 8291 says: its own example comes out byte for byte, and each message is another."""

from cryptography.hazmat.primitives.asymmetric import ec

from clew.control.push.encryption import encrypt
from tests.control.push_kit import CURVE, Browser, decoded, encoded, point

# RFC 8291, section 5 and appendix A.
MESSAGE = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
SECRET = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
SEALED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_rfc() -> None:
    sender = ec.derive_private_key(int.from_bytes(decoded(SENDER), "big"), CURVE)
    sealed = encrypt(MESSAGE, decoded(BROWSER), decoded(SECRET), sender=sender, salt=decoded(SALT))
    assert encoded(sealed) == SEALED


def test_the_length_tells_nothing_and_no_two_are_the_same() -> None:
    browser = Browser("https://push.test/a")
    public = point(browser.private.public_key())
    sealed = [encrypt(each, public, browser.secret, padded=1024) for each in (b"a", b"a", b"b" * 900)]
    assert len({len(each) for each in sealed}) == 1
    assert len(set(sealed)) == len(sealed)
    assert [browser.opened(each) for each in sealed] == [b"a", b"a", b"b" * 900]
