"""Where gang claims are made: by options, and by what the multipliers allow."""

import math
from pathlib import Path

import pytest
from nova.conf import scheduler as scheduler_options
from oslo_config import cfg

from hpc_sched import conf
from hpc_sched.enabled_plugins import HOP_BYTE_WEIGHER, MDOBP_WEIGHER
from hpc_sched.nova_glue.claim import claim_conditions


@pytest.fixture
def own_conf(monkeypatch: pytest.MonkeyPatch) -> cfg.ConfigOpts:
    """Return options as a service of its own has them, with HopByteWeigher enabled."""
    own = cfg.ConfigOpts()
    scheduler_options.register_opts(own)
    conf.register_opts(own)
    monkeypatch.setattr(claim_conditions, "CONF", own)
    return own


def has_weighers(monkeypatch: pytest.MonkeyPatch, **multipliers: float) -> None:
    """Have weighers enabled with these multipliers."""
    enabled = type("Enabled", (), {"multipliers": multipliers})
    monkeypatch.setattr(claim_conditions.configured_plugins, "enabled", enabled)


def test_gang_claims_change_by_sighup(own_conf, monkeypatch, tmp_path: Path):
    has_weighers(monkeypatch, **{HOP_BYTE_WEIGHER: 1.0})
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text("")
    own_conf([], default_config_files=[str(nova_conf)])
    assert claim_conditions.obstacle() is None
    nova_conf.write_text("[hpc_sched]\ngang_claims = false\n")
    own_conf.mutate_config_files()
    assert claim_conditions.obstacle() == "gang_claims is false"
    nova_conf.write_text("")
    own_conf.mutate_config_files()
    assert claim_conditions.obstacle() is None


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan])
def test_nothing_is_claimed_where_the_topology_does_not_count(own_conf, monkeypatch, multiplier):
    has_weighers(monkeypatch, **{HOP_BYTE_WEIGHER: multiplier})
    assert "multiplier above 0" in str(claim_conditions.obstacle())


@pytest.mark.parametrize(
    ("others", "expected"),
    [(0.0, 21.0), (-50.0, 121.0), (1e12, None), (math.inf, None), (math.nan, None)],
)
def test_a_claimed_host_wins_against_the_sum_of_all_or_nothing_is_claimed(
    own_conf, monkeypatch, others, expected
):
    has_weighers(monkeypatch, **{HOP_BYTE_WEIGHER: 10.0})
    monkeypatch.setattr(claim_conditions.shunned_hosts, "examples", lambda states: states)
    monkeypatch.setattr(claim_conditions.shunned_hosts, "sum_of_multipliers", lambda _: abs(others))
    monkeypatch.setattr(claim_conditions, "_multiplier", lambda *_: 10.0)
    assert claim_conditions.decisive_multiplier([object()]) == expected


def test_a_claimed_host_wins_against_weights_above_1(own_conf, monkeypatch):
    """Those of MDOBPWeigher go up to 250.5 where all hosts are on one leaf."""
    has_weighers(monkeypatch, **{HOP_BYTE_WEIGHER: 10.0, MDOBP_WEIGHER: 10.0})
    monkeypatch.setattr(claim_conditions.shunned_hosts, "examples", lambda states: states)
    monkeypatch.setattr(claim_conditions.shunned_hosts, "sum_of_multipliers", lambda _: 0.0)
    monkeypatch.setattr(claim_conditions, "_multiplier", lambda *_: 10.0)
    assert claim_conditions.decisive_multiplier([object()]) == 2 * (10 + 2505) + 1
