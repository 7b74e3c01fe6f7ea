"""The address of an endpoint. No prometheus_client here: it is an extra."""

from typing import NamedTuple

from hpc_sched import exceptions


class Address(NamedTuple):
    """Host and port; as a text ``HOST:PORT`` or ``[IPv6]:PORT``."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def address_in(text: str) -> Address:
    """Return the address of ``HOST:PORT`` or ``[IPv6]:PORT``; raises ConfigError."""
    host, colon, port = text.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_v6 else host
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port or (":" in host) is not is_v6:
        raise exceptions.ConfigError(f"expected HOST:PORT or [IPv6]:PORT, found {text!r}")
    return Address(host, int(port))
