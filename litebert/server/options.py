"""Server options. With the defaults, only this machine can reach the server."""

import ipaddress
import math
import re
from dataclasses import dataclass, field, replace

from litebert.core.errors import ConfigError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Limits:
    """Limits on the size, number and duration of requests."""

    max_body_bytes: int = 1_000_000  # per request; above: 413
    max_inputs: int = 64  # per request; above: 422
    max_characters: int = 20_000  # per input: all its texts, after normalization; above: 422
    max_tokens: int = 16_384  # per input, over all its windows; above: 422
    max_queue: int = 512  # inputs waiting for the model; above: 429
    max_batch: int = 64  # inputs computed at once
    max_wait_seconds: float = 0.002  # that an input waits for others while the model is idle
    # For a request, from its head to its response; above: 503 (408 while its body arrives). The same limit applies to
    # receiving the head and to sending each part of the response; above: the connection is closed.
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        sizes = ("max_body_bytes", "max_inputs", "max_characters", "max_tokens", "max_queue", "max_batch")
        for name in (*sizes, "timeout_seconds"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(
                    "out-of-range", f"{name} must be positive and finite, got {getattr(self, name)}", option=name
                )
        if not 0 <= self.max_wait_seconds < math.inf:
            raise ConfigError(
                "out-of-range",
                f"max_wait_seconds must be non-negative and finite, got {self.max_wait_seconds}",
                option="max_wait_seconds",
            )
        if self.max_inputs > self.max_queue:
            raise ConfigError(
                "conflicting-options",
                f"max_inputs = {self.max_inputs} exceeds max_queue = {self.max_queue}: "
                "raise max_queue, or lower max_inputs",
            )


@dataclass(frozen=True)
class ServeOptions:
    """Where the server listens, and which clients it accepts."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free port
    token: str = ""  # clients must send `Authorization: Bearer TOKEN`; empty: no token is required
    origins: tuple[str, ...] = ()  # whose pages may send requests (CORS), such as https://example.org
    hosts: tuple[str, ...] = ()  # accepted in the Host header; empty: any
    limits: Limits = field(default_factory=Limits)
    root_path: str = ""  # path prefix added by a proxy, such as /bert
    rerank_label: str = ""  # of relevant texts, for /v1/rerank with classifiers; empty: set per request

    def __post_init__(self) -> None:
        if self.root_path and not re.fullmatch(r"(/[\w.~-]+)+", self.root_path):
            raise ConfigError(
                "bad-value",
                f"root_path must start with a slash and not end with one, such as /bert; got '{self.root_path}'",
                option="root_path",
            )
        if not 0 <= self.port < 65536:
            raise ConfigError(
                "out-of-range", f"port must be 1 to 65535, or 0 for any free port; got {self.port}", option="port"
            )
        for host in self.hosts:
            if host != host.lower() or (":" in host and not _is_address(host)):
                raise ConfigError(
                    "bad-value",
                    f"host names must be lower case and without a port, such as example.org; got '{host}'",
                    option="allow_hosts",
                )
        for origin in self.origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/]+", origin):
                raise ConfigError(
                    "bad-value",
                    f"origins must be * or a scheme and host, such as https://example.org; got '{origin}'",
                    option="origins",
                )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host == "localhost" or (_is_address(self.host) and ipaddress.ip_address(self.host).is_loopback)

    @property
    def is_private(self) -> bool:
        """Whether clients must be on this machine or have the token."""
        return self.is_local or bool(self.token)

    def with_own_hosts(self) -> "ServeOptions":
        """The options, with this machine's own names as accepted hosts if only this machine can reach the server.

        Otherwise a page of another site whose name resolves to 127.0.0.1 (DNS rebinding) could send requests.
        """
        return replace(self, hosts=(*LOOPBACK, self.host, *self.hosts)) if self.is_local else self


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
