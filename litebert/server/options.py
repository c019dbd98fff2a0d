"""What can be set about a server. The defaults are for one person's machine: nobody else can reach it."""

import ipaddress
import math
import re
from dataclasses import dataclass, field, replace

from litebert.core.errors import ConfigError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Limits:
    """What the server takes on, and how long it takes over it."""

    max_body_bytes: int = 1_000_000  # of a request; above: 413
    max_inputs: int = 64  # in a request; above: 422
    max_characters: int = 20_000  # of an input, all its texts together, after normalization; above: 422
    max_tokens: int = 16_384  # computed for an input, all its windows together; above: 422
    max_queue: int = 512  # inputs that wait for the model; above: 429
    max_batch: int = 64  # inputs that the model is given at once
    max_wait_seconds: float = 0.002  # that an input waits for company while the model is idle
    # For a request, from its head to its answer; above: 503 (408 while it arrives). As long again may each of these
    # take: the head before it, and sending each part of the answer; above: the connection is closed.
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        sizes = ("max_body_bytes", "max_inputs", "max_characters", "max_tokens", "max_queue", "max_batch")
        for name in (*sizes, "timeout_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError("out-of-range", f"{name} = {getattr(self, name)} must be above 0, and have an end")
        if not 0 <= self.max_wait_seconds < math.inf:
            raise ConfigError(
                "out-of-range", f"max_wait_seconds = {self.max_wait_seconds} must be 0 or above, and have an end"
            )
        if self.max_inputs > self.max_queue:
            raise ConfigError(
                "conflicting-options",
                f"a queue of {self.max_queue} has no room for a request of {self.max_inputs} inputs: "
                "raise max_queue, or lower max_inputs",
            )


@dataclass(frozen=True)
class ServeOptions:
    """Where the server listens, and to whom."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free one
    token: str = ""  # what clients must send as `Authorization: Bearer ...`; empty: nothing
    origins: tuple[str, ...] = ()  # of other sites whose pages may ask, such as https://example.org
    hosts: tuple[str, ...] = ()  # that requests may be addressed to; empty: any
    limits: Limits = field(default_factory=Limits)
    root_path: str = ""  # under which a proxy offers the server, such as /bert

    def __post_init__(self) -> None:
        if self.root_path and not re.fullmatch(r"(/[\w.~-]+)+", self.root_path):
            raise ConfigError("bad-value", f"root path '{self.root_path}' must be like /bert, with no slash at its end")
        if not 0 <= self.port < 65536:
            raise ConfigError("out-of-range", f"port = {self.port} is no port: 1 to 65535, or 0 for any free one")
        for host in self.hosts:
            if host != host.lower() or (":" in host and not _is_address(host)):
                raise ConfigError(
                    "bad-value", f"host '{host}' must be a name in small letters, without a port: example.org"
                )
        for origin in self.origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/]+", origin):
                raise ConfigError(
                    "bad-value", f"origin '{origin}' must be like https://example.org with nothing behind it, or *"
                )

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine can reach it."""
        return self.host == "localhost" or (_is_address(self.host) and ipaddress.ip_address(self.host).is_loopback)

    @property
    def is_private(self) -> bool:
        """Whether only this machine, or whoever has the token, may ask."""
        return self.is_local or bool(self.token)

    def with_own_hosts(self) -> "ServeOptions":
        """Of a server that only this machine reaches, the names that this machine has for itself.

        Or a page of another site, whose name is made to mean 127.0.0.1 (DNS rebinding), could ask as if it were ours.
        """
        return replace(self, hosts=(*LOOPBACK, self.host, *self.hosts)) if self.is_local else self


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
