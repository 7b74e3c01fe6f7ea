"""Plugin of python-openstackclient, which imports it for each of its commands: it stays small."""

import argparse
from typing import Any

API_NAME = "hpc"
API_VERSION_OPTION = "os_hpc_api_version"
# There is no API: the version is that of the commands, and makes the group openstack.hpc.v1.
DEFAULT_API_VERSION = "1"
API_VERSIONS = ("1",)


def make_client(instance: Any) -> Any:
    """Return the connection of a client manager, which the commands use."""
    return instance.sdk_connection


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of global options, to which nothing is added."""
    return parser
