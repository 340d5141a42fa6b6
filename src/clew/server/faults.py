"""What the server itself refuses, before anything is asked of control."""

from clew.ports.fault import Fault


class ServerFault(Fault):
    code = "server"


class Foreign(ServerFault):
    """From another site, or for another host: a page that somebody else wrote."""

    code = "server:foreign"


class Unauthorized(ServerFault):
    code = "server:unauthorized"


class BadTicket(ServerFault):
    code = "server:ticket"


class BodyTooLarge(ServerFault):
    code = "server:body-too-large"


class NotJson(ServerFault):
    code = "server:not-json"


class NotUnderstood(ServerFault):
    code = "server:not-understood"


class TooMany(ServerFault):
    code = "server:busy"
