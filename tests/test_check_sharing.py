"""hpc-sched check sharing: standard output, standard error and exit code."""

import json
from pathlib import Path

from hpc_sched.cli import main
from tests.snapshots import flavor, group, saved, server

EXTREME = flavor("extreme", app_class="extreme")
LOUD = flavor("loud", app_class="async", cache_score="70", app_name="LU")
FILTERS = ("HPCDedicatedHostFilter", "HPCInterferenceFilter")


def run(path: str, *arguments: str) -> int:
    return main.main(["check", "sharing", "--snapshot", path, *arguments])


def test_hosts_without_a_broken_rule_are_exit_code_0(tmp_path: Path, capsys):
    own = [server("a", "n01", EXTREME), server("b", "n01", EXTREME)]
    path = saved(tmp_path, [*own, server("c", "n02")], [group("job", own)], filters=FILTERS)
    assert run(path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "16 hosts and 3 VMs checked: good."


def test_each_broken_rule_has_a_row_and_is_exit_code_1(tmp_path: Path, capsys):
    servers = [
        server("a", "n01", EXTREME),
        server("b", "n01"),
        server("c", "n02", LOUD),
        server("d", "n02", LOUD),
    ]
    index = {"LU": {"LU": 0.5}}
    path = saved(tmp_path, servers, filters=FILTERS, interference=index)
    assert run(path, "-f", "json") == 1
    shown = [tuple(row.values()) for row in json.loads(capsys.readouterr().out)]
    assert shown == [
        ("n01", "dedicated host", "class extreme with VMs of others", "a b"),
        ("n02", "cache scores", "140 of at most 100", "c d"),
        ("n02", "interference", "applications that the index keeps apart", "c d"),
    ]


def test_limits_do_not_count_without_their_filter(tmp_path: Path, capsys):
    servers = [server("c", "n02", LOUD), server("d", "n02", LOUD)]
    assert run(saved(tmp_path, servers, filters=FILTERS[:1])) == 0
    assert run(saved(tmp_path, servers)) == 1
    assert "1 host with a broken rule." in capsys.readouterr().out
