"""A real slurmctld with nodes that have no slurmd: Debian's slurmctld, slurm-client and munge."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpc_sched.topology import hostlist

_PROGRAMS = ("munged", "slurmctld", "scontrol", "srun")
_READY = "Running as primary controller"
_SECONDS = 120.0
_POLL = 0.02

# Nodes of a cloud are powered down and may be planned with: they need no daemon of their own.
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
TopologyPlugin=topology/tree
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=300
{nodes}PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


@dataclass(frozen=True, slots=True)
class Controller:
    """A running slurmctld."""

    programs: dict[str, str]  # paths by name
    environment: dict[str, str]

    def version(self) -> tuple[int, ...]:
        """Return the release, such as (22, 5, 8)."""
        found = re.search(r"(\d+)\.(\d+)\.(\d+)", self._run("scontrol", "--version").stdout)
        assert found is not None
        return tuple(map(int, found.groups()))

    def topology(self) -> str:
        """Return what ``scontrol show topology`` prints."""
        return self._run("scontrol", "show", "topology").stdout

    def drain(self, nodes: Collection[str], among: Sequence[str]) -> None:
        """Drain some nodes and no others of ``among``."""
        for state, those in (("undrain", set(among)), ("drain", set(nodes))):
            if those:
                change = [f"nodename={','.join(sorted(those))}", f"state={state}", "reason=test"]
                answer = self._run("scontrol", "update", *change)
                assert answer.returncode == 0, answer.stderr

    def choice(self, nodes: int) -> set[str] | None:
        """Return the nodes on which a job would start now, None if there are not enough."""
        answer = self._run("srun", "--test-only", f"--nodes={nodes}", "true").stderr
        if found := re.search(r" on nodes (\S+) in partition ", answer):
            return set(hostlist.expand(found[1]))
        assert "allocation failure" in answer, answer
        return None

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs[program], *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )


@contextmanager
def controlled(topology: str, nodes: Sequence[str]) -> Iterator[Controller]:
    """Run slurmctld with a topology.conf; the test is skipped where the programs are missing.

    It and munged use a folder, a key and a port of their own, not those of the machine.
    """
    programs = _found()
    with ExitStack() as stack:
        # The path of a socket has at most 107 characters: pytest's folders are too deep.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm")))
        (folder / "state").mkdir()
        (folder / "topology.conf").write_text(topology)
        conf = folder / "slurm.conf"
        conf.write_text(
            _CONF.format(
                host=socket.gethostname().split(".")[0],
                port=_free_port(),
                user=pwd.getpwuid(os.geteuid()).pw_name,
                folder=folder,
                nodes="".join(f"NodeName={node} CPUs=1 State=CLOUD\n" for node in nodes),
            )
        )
        key = folder / "munge.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        settings = {"key-file": key, "socket": folder / "munge.socket"}
        settings |= {"pid-file": folder / "munge.pid", "seed-file": folder / "munge.seed"}
        # Forced: the folder is closed to others, to which munged objects.
        munge = [f"--{name}={path}" for name, path in settings.items()] + ["--num-threads=1"]
        stack.enter_context(
            _running([programs["munged"], "--foreground", "--force", *munge], "Created 1 work")
        )
        stack.enter_context(_running([programs["slurmctld"], "-D", "-f", str(conf)], _READY))
        yield Controller(programs, {**os.environ, "SLURM_CONF": str(conf)})


@contextmanager
def _running(command: Sequence[str], ready: str) -> Iterator[None]:
    """Run a program until the block ends; wait for a word in its output first."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

        def said() -> str:
            log.seek(0)
            return log.read()

        try:
            end = time.monotonic() + _SECONDS
            while ready not in said():
                assert process.poll() is None, f"{command[0]} has ended: {said()}"
                assert time.monotonic() < end, f"{command[0]} is not ready: {said()}"
                time.sleep(_POLL)
            yield
        finally:
            process.kill()
            process.wait(_SECONDS)


def _found() -> dict[str, str]:
    """Return the paths of all programs by their names."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"])
    programs = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    if missing := [name for name, where in programs.items() if where is None]:
        pytest.skip(f"no {', '.join(missing)} (Debian: slurmctld, slurm-client, munge)")
    return {name: where for name, where in programs.items() if where is not None}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
