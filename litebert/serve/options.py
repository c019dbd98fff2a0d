"""What can be set about a server. The defaults are for one person's machine: nobody else can reach it."""

from dataclasses import dataclass, field

from litebert.core.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """What the server takes on, and how long it takes over it."""

    max_body_bytes: int = 1_000_000  # of a request; above: 413
    max_inputs: int = 64  # in a request; above: 422
    max_characters: int = 20_000  # of an input, all its texts together; above: 422
    max_queue: int = 512  # inputs that wait for the model; above: 429
    max_batch: int = 32  # inputs that the model is given at once
    max_wait_seconds: float = 0.002  # that an input waits for company while the model is idle
    timeout_seconds: float = 30.0  # for a request, from its first byte to its answer; above: 503 (408 while it arrives)

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "max_inputs", "max_characters", "max_queue", "max_batch", "timeout_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} = {getattr(self, name)} must be above 0")
        if self.max_wait_seconds < 0:
            raise ConfigError(f"max_wait_seconds = {self.max_wait_seconds} must be 0 or above")
        if self.max_inputs > self.max_queue:
            raise ConfigError(
                f"a queue of {self.max_queue} has no room for a request of {self.max_inputs} inputs: "
                "raise max_queue, or lower max_inputs"
            )


@dataclass(frozen=True)
class ServeOptions:
    """Where the server listens, and to whom."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free one
    token: str = ""  # what clients must send as `Authorization: Bearer ...`; empty: nothing
    origins: tuple[str, ...] = ()  # of other sites whose pages may ask, such as https://example.org
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise ConfigError(f"port = {self.port} is no port: 1 to 65535, or 0 for any free one")
        for origin in self.origins:
            if origin != "*" and not origin.startswith(("http://", "https://")):
                raise ConfigError(f"origin '{origin}' must be like https://example.org, or *")
