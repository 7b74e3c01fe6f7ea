"""hpc-sched demo."""

import argparse
import importlib.util
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

import yaml
from cliff.command import Command

from hpc_sched import exceptions, topology
from hpc_sched.cli import samples
from hpc_sched.demo import picture, runs
from hpc_sched.demo.scenario import Settings
from hpc_sched.topology.model import Topology

STOCK, PLUGIN = "stock Nova", "with hpc_sched"
MAX_HOSTS = 256
TIMEOUT = 85.0
TIMEOUT_PER_HOST = 3.0  # beyond the 32 hosts of the default


class Demo(Command):
    """Place a group on a real Nova in this machine, without and with hpc_sched.

    Starts Nova's API, conductor, scheduler, Placement and fake computes twice, once with
    stock weighers and once as etc/nova.conf.sample enables hpc_sched, occupies some hosts,
    creates a server group with its VMs in one request through the API, lets it grow by half,
    and prints where the VMs are and what that costs. Needs the extra 'demo'.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "--hosts", type=int, default=32, metavar="N", help="hosts in all (default: 32)"
        )
        parser.add_argument(
            "--leaves", type=int, default=4, metavar="N", help="leaf switches (default: 4)"
        )
        parser.add_argument(
            "--group-size",
            type=int,
            default=16,
            metavar="N",
            help="VMs of the first request; half as many follow (default: 16)",
        )
        parser.add_argument(
            "--topology",
            type=Path,
            metavar="FILE",
            help="a topology file of the driver yaml, in place of --hosts and --leaves",
        )
        parser.add_argument(
            "--json", action="store_true", help="print the result as JSON on standard output"
        )
        parser.add_argument(
            "-v", dest="nova_log", action="store_true", help="show Nova's log on standard error"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run the demo and print its result; return the exit code."""
        _require_demo_extra()
        with tempfile.TemporaryDirectory(prefix="hpc-sched-demo-") as folder:
            path = parsed_args.topology or _write_topology(parsed_args, Path(folder))
            fabric = topology.load("yaml", path=path)
            growth = parsed_args.group_size // 2
            _check_size(fabric, parsed_args.group_size, growth)
            settings = {
                name: Settings(
                    topology_file=str(Path(path).resolve()),
                    nova_conf=snippet,
                    group_size=parsed_args.group_size,
                    growth=growth,
                    policy="soft-anti-affinity",
                )
                for name, snippet in (
                    (STOCK, ""),
                    (PLUGIN, str(samples.path_of("nova.conf.sample"))),
                )
            }
            extra = max(len(fabric.hosts) - 32, 0) + max(parsed_args.group_size - 16, 0)
            verbose = parsed_args.nova_log or self.app.options.verbose_level > 1
            progress = _Progress(self.app.stderr)
            results = runs.run_all(
                settings,
                progress.show,
                timeout=TIMEOUT + TIMEOUT_PER_HOST * extra,
                verbose=verbose,
            )
            progress.end()
        if parsed_args.json:
            json.dump(results, self.app.stdout, indent=2)
            self.app.stdout.write("\n")
        else:
            self.app.stdout.write(picture.render(fabric, results) + "\n")
        return 0


class _Progress:
    """What each run is doing, on one line of a terminal, or a line a change elsewhere."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream or sys.stderr
        self.doing: dict[str, str] = {}
        self.began = time.monotonic()
        self.in_place = self.stream.isatty()

    def show(self, run: str, text: str) -> None:
        if self.doing.get(run) == text:
            return
        stage_changed = self.doing.get(run, "").rstrip("0123456789/ ") != text.rstrip(
            "0123456789/ "
        )
        self.doing[run] = text
        seconds = f"{time.monotonic() - self.began:3.0f} s"
        if self.in_place:
            line = " | ".join(f"{name}: {what}" for name, what in self.doing.items())
            self._write(f"\r\x1b[K{seconds}  {line}"[:160])
        elif stage_changed:
            self._write(f"{seconds}  {run}: {text}\n")

    def end(self) -> None:
        if self.in_place:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _require_demo_extra() -> None:
    missing = [
        name
        for name in ("nova", "placement", "fixtures", "wsgi_intercept", "oslotest")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise exceptions.HPCSchedError(
            f"the demo needs {', '.join(missing)}: pip install 'hpc-sched[demo]'"
        )


def _write_topology(parsed_args: argparse.Namespace, folder: Path) -> Path:
    """Write the fabric of --hosts and --leaves: one core switch over equal leaves."""
    hosts, leaves = parsed_args.hosts, parsed_args.leaves
    if leaves < 1 or hosts < leaves:
        raise exceptions.ConfigError(
            f"--hosts {hosts} --leaves {leaves}: expected at least one leaf and a host a leaf"
        )
    width = len(str(hosts))
    bounds = [number * hosts // leaves for number in range(leaves + 1)]
    switches = [
        {
            "name": f"leaf{number + 1:02d}",
            "hosts": f"node[{low + 1:0{width}d}-{high:0{width}d}]",
        }
        for number, (low, high) in enumerate(itertools.pairwise(bounds))
    ]
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump({"switches": [{"name": "core1", "switches": switches}]}))
    return path


def _check_size(fabric: Topology, group_size: int, growth: int) -> None:
    if group_size < 1:
        raise exceptions.ConfigError(f"--group-size {group_size}: expected at least 1")
    if len(fabric.hosts) > MAX_HOSTS:
        raise exceptions.ConfigError(
            f"{len(fabric.hosts)} hosts: the demo starts a compute service for each, "
            f"{MAX_HOSTS} at most"
        )
    if group_size + growth > len(fabric.hosts):
        raise exceptions.ConfigError(
            f"--group-size {group_size} grows to {group_size + growth}: "
            f"more than the {len(fabric.hosts)} hosts, each of which takes one VM"
        )
