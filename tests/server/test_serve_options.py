"""What can be set about a server: what makes no sense is refused, and who is local is known by any of its names."""

import math

import pytest
from fastapi.testclient import TestClient
from refusals import refuses

from litebert.core.errors import ConfigError
from litebert.server.app import build_app
from litebert.server.models import NamedModel
from litebert.server.options import Limits, ServeOptions


@pytest.mark.parametrize("name", ["timeout_seconds", "max_wait_seconds"])
@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0])
def test_times_without_an_end_are_refused(name: str, seconds: float) -> None:
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: seconds})


@pytest.mark.parametrize("host", ["Example.org", "example.org:8000"])
def test_a_host_that_no_request_could_name_is_refused(host: str) -> None:
    with refuses(ConfigError, "bad-value"):
        ServeOptions(hosts=(host,))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1", "localhost"])
def test_every_name_of_this_machine_is_local(host: str) -> None:
    assert host in ServeOptions(host=host).with_own_hosts().hosts


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "example.org"])
def test_other_names_are_not(host: str) -> None:
    assert ServeOptions(host=host).with_own_hosts().hosts == ()


def test_an_app_can_be_started_again(models: list[NamedModel]) -> None:
    app = build_app(models[:1], ServeOptions())
    for _ in range(2):
        with TestClient(app, base_url="http://localhost") as client:
            assert client.post("/v1/embed", json={"inputs": ["a"]}).status_code == 200
