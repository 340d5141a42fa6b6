"""The contract of the kernel's functions: an argument of another type raises ValueError, and says what is expected."""


def must_be(value: object, kind: type | tuple[type, ...], what: str) -> None:
    """`what` names the argument as its caller knows it."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise ValueError(f"{what} must be {wanted}, and is {type(value).__name__}")
