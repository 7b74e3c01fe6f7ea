"""hpc-sched demo."""

import argparse
import importlib.util
import itertools
import json
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from hpc_sched import exceptions, terminal_text, topology
from hpc_sched.cli.common.argument_types import argument, flag, number
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.cli.common.output import StatusLine
from hpc_sched.demo import runs
from hpc_sched.topology.model import Topology
from hpc_sched.topology.switch_names import leaf_title
from hpc_sched.topology.writers import yaml_writer

STOCK, LISTING1, PLUGIN = "stock Nova", "Listing 1 alone", "with hpc_sched"
HOSTS, GROUP_SIZE = 36, 16
MAX_HOSTS = 256
NEEDED = ("nova", "placement", "fixtures", "wsgi_intercept", "oslotest")  # modules
LEGEND = "1 first request   2 growth   x other tenants   . free"
# Seconds. Ends a Nova that hangs, but not a slow machine.
TIMEOUT = 900.0
TIMEOUT_PER_HOST = 20.0  # and per VM, for each above the default


class Demo(HPCSchedCommand):
    """Place a group on a real Nova in this machine, without and with hpc_sched.

    Starts Nova's API, conductor, scheduler, Placement and fake computes three times: with
    stock filters and weighers, with the published Listing 1 as the only addition, and as
    etc/nova.conf.sample enables hpc_sched. Occupies some hosts, creates a server group with
    its VMs in one request through the API, grows it by half, and prints the places of the VMs
    and their cost. Needs the extra 'demo'.
    """

    EPILOG = "exit codes: 0 done, 1 failed, 2 wrong usage"

    ARGUMENTS = (
        number("--hosts", "number of hosts", int, default=HOSTS),
        number("--leaves", "number of leaf switches", int, default=4),
        number("--pods", "number of switches between leaves and root; 1 for none", int, default=2),
        number(
            "--group-size",
            "VMs of the first request; half as many follow",
            int,
            default=GROUP_SIZE,
        ),
        argument(
            "--topology",
            "topology file of the driver yaml, in place of --hosts, --leaves and --pods",
            type=Path,
            metavar="FILE",
        ),
        flag("--json", "print the result as JSON on standard output"),
        argument("-v", "show Nova's log on standard error", dest="nova_log", action="store_true"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run the demo and print its result; return the exit code."""
        _require_demo_extra()
        size = parsed_args.group_size
        with tempfile.TemporaryDirectory(prefix="hpc-sched-demo-") as folder:
            path = parsed_args.topology
            if path is not None:
                fabric = topology.load("yaml", path=path)
            else:
                fabric = _generated(parsed_args)
                path = Path(folder, "topology.yaml")
                path.write_text(yaml_writer.text_of(fabric))
            _check_size(fabric, size, size // 2)
            stock = runs.Settings(str(path.resolve()), size, size // 2)
            plugin = replace(stock, nova_conf=str(path_of("nova.conf.sample")))
            extra = max(len(fabric.hosts) - HOSTS, 0) + max(size - GROUP_SIZE, 0)
            progress = _Progress(self.app.stderr)
            results = runs.run_all(
                {STOCK: stock, LISTING1: replace(plugin, listing1=True), PLUGIN: plugin},
                progress.show,
                timeout=TIMEOUT + TIMEOUT_PER_HOST * extra,
                verbose=parsed_args.nova_log or self.app.options.verbose_level > 1,
            )
            progress.line.close()
        shown = json.dumps(results, indent=2) if parsed_args.json else render(fabric, results)
        self.app.stdout.write(shown + "\n")
        return 0


class _Progress:
    """The stage of each run, on one line of a terminal; elsewhere a line for each stage."""

    def __init__(self, stream: TextIO | None) -> None:
        self.line = StatusLine(stream or sys.stderr)
        self.doing: dict[str, str] = {}
        self.began = time.monotonic()

    def show(self, run: str, text: str) -> None:
        if self.doing.get(run) == text:
            return
        before, now = (what.rstrip("0123456789/ ") for what in (self.doing.get(run, ""), text))
        self.doing[run] = text
        seconds = f"{time.monotonic() - self.began:3.0f} s"
        if self.line.in_place:
            line = " | ".join(f"{name}: {what}" for name, what in self.doing.items())
            self.line.show(f"{seconds}  {line}")
        elif before != now:
            self.line.show(f"{seconds}  {run}: {text}")


def render(topology: Topology, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the leaves with the group's VMs, the runs side by side, and the costs below."""
    names = list(results)
    titles = {leaf: leaf_title(topology, leaf) for leaf in topology.leaves}
    label = max(len("  least possible"), *map(len, titles.values())) + 2
    pictures = {
        leaf: [_cells(topology, leaf, result) for result in results.values()] for leaf in titles
    }
    width = max(17, *map(len, itertools.chain(names, *pictures.values())))

    def row(title: str, texts: Iterable[str]) -> str:
        return title.ljust(label) + "".join(text.ljust(width + 3) for text in texts)

    lines = [row("", names)]
    lines += [row(titles[leaf], pictures[leaf]) for leaf in titles]
    lines += ["", " " * label + LEGEND, ""]
    every = (result["steps"] for result in results.values())
    for step_number, steps in enumerate(zip(*every, strict=True)):
        lines.append(
            f"{'grown' if step_number else 'placed'} to {max(step['count'] for step in steps)} VMs"
        )
        shown = {
            "Hop-Byte cost": [terminal_text.hop_bytes(step["hop_bytes"]) for step in steps],
            "least possible": [terminal_text.hop_bytes(step["least"]) for step in steps],
            "leaves used": [str(len({*map(topology.leaf_of, step["hosts"])})) for step in steps],
            "time": [f"{step['seconds']} s" for step in steps],
            "in error": [str(step["failed"]) for step in steps if any(s["failed"] for s in steps)],
        }
        lines += [row(f"  {title}", texts) for title, texts in shown.items() if texts]
    return "\n".join(line.rstrip() for line in lines)


def _cells(topology: Topology, leaf: str, result: Mapping[str, Any]) -> str:
    first, last = result["steps"][0]["hosts"], result["steps"][-1]["hosts"]
    signs = {
        host: sign
        for hosts, sign in ((result["busy"], "x"), (last, "2"), (first, "1"))
        for host in hosts
    }
    return " ".join(signs.get(host, ".") for host in topology.hosts_of(leaf))


def _require_demo_extra() -> None:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        names = ", ".join(missing)
        raise exceptions.HPCSchedError(f"the demo needs {names}: pip install 'hpc-sched[demo]'")


def _generated(args: argparse.Namespace) -> Topology:
    """Return the topology of --hosts, --leaves and --pods, of nearly equal switches."""
    hosts, leaves, pods = args.hosts, args.leaves, args.pods
    _refuse(
        (
            leaves < 1 or hosts < leaves,
            f"--hosts {hosts} --leaves {leaves}: expected at least one leaf and a host a leaf",
        ),
        (
            pods < 1 or leaves < pods,
            f"--leaves {leaves} --pods {pods}: expected at least one pod and a leaf a pod",
        ),
    )
    names = [f"node{number:0{len(str(hosts))}d}" for number in range(1, hosts + 1)]
    tree: dict[str, Any] = dict(_named_parts("leaf{:02d}", names, leaves))
    if pods > 1:
        tree = {name: dict(part) for name, part in _named_parts("pod{}", list(tree.items()), pods)}
    return Topology.from_tree({"core1": tree})


def _named_parts(form: str, things: list[Any], number: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield a list in nearly equal parts, numbered from 1."""
    bounds = [part * len(things) // number for part in range(number + 1)]
    for i, (low, high) in enumerate(itertools.pairwise(bounds), 1):
        yield form.format(i), things[low:high]


def _check_size(fabric: Topology, group_size: int, growth: int) -> None:
    hosts = len(fabric.hosts)
    _refuse(
        (group_size < 1, f"--group-size {group_size}: expected at least 1"),
        (
            hosts > MAX_HOSTS,
            f"{hosts} hosts: the demo starts a compute service for each, {MAX_HOSTS} at most",
        ),
        (
            group_size + growth > hosts,
            f"--group-size {group_size} grows to {group_size + growth}: "
            f"more than the {hosts} hosts, each of which takes one VM",
        ),
    )


def _refuse(*faults: tuple[bool, str]) -> None:
    """Raise ConfigError with the text of the first fault that is there, if any is."""
    for is_there, text in faults:
        if is_there:
            raise exceptions.ConfigError(text)


def path_of(name: str) -> Path:
    """Return the path of a sample file; HPCSchedError names the places that were searched."""
    user = sysconfig.get_path("data", sysconfig.get_preferred_scheme("user"))
    places = [
        Path(__file__).resolve().parents[2] / "etc" / name,
        *(Path(at, "etc", "hpc_sched", name) for at in (sysconfig.get_path("data"), user)),
    ]
    if found := next(filter(Path.is_file, places), None):
        return found
    raise exceptions.HPCSchedError(f"{name} is at none of {', '.join(map(str, places))}")
