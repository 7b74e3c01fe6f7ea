"""The tests' own databases on real servers: skipped with a reason, and never left behind."""

import secrets

import pytest
import sqlalchemy as sa

from tests.functional import servers


@pytest.fixture(params=servers.SERVERS)
def server(request: pytest.FixtureRequest) -> servers.Server:
    found = servers.SERVERS[request.param]
    with servers.databases_on(request.param):  # skips where there is none
        pass
    return found


def names_on(server: servers.Server) -> set[str]:
    with server.connect() as connection:
        return set(connection.scalars(sa.text(server.list_databases)))


@pytest.mark.parametrize("name", servers.SERVERS)
def test_where_no_server_answers_tests_are_skipped_and_say_why(monkeypatch, name):
    server = servers.SERVERS[name]
    away = server.url.set(port=1, host="127.0.0.1", password="secret")
    monkeypatch.setenv(server.variable, away.render_as_string(hide_password=False))
    with (
        pytest.raises(
            pytest.skip.Exception, match=rf"no server at .*:1.*{server.variable}"
        ) as skip,
        servers.databases_on(name),
    ):
        pass
    assert "secret" not in str(skip.value)


def test_databases_are_dropped_after_a_failure(server):
    name = next(name for name, found in servers.SERVERS.items() if found is server)
    made = []

    def fail() -> None:
        with servers.databases_on(name) as make:
            made.append(sa.make_url(make("api")).database)
            assert made[0] in names_on(server)
            raise ArithmeticError("of a test")

    with pytest.raises(ArithmeticError):
        fail()
    assert made[0] not in names_on(server)


def test_databases_of_a_process_that_was_killed_are_dropped_and_no_others(server):
    dead, alive = (f"{servers.PREFIX}{secrets.randbits(31)}_api" for _ in range(2))
    with server.connect() as living, server.connect() as connection:
        number = int(alive.removeprefix(servers.PREFIX).split("_")[0])
        assert living.scalar(sa.text(server.lock), {"number": number})
        try:
            for name in (dead, alive):
                connection.execute(sa.text(f"CREATE DATABASE {name}"))
            servers.drop_stale(server, connection)
            assert names_on(server) & {dead, alive} == {alive}
        finally:
            for name in (dead, alive):
                connection.execute(sa.text(server.drop.format(name)))
