#!/bin/bash
# simgrid 3.32: with network/optim:Lazy, its default, flows take the wrong time where a host starts
# two at the same instant.
#
# Lazy shares anew only what has to do with the links that an event touches (selective update); Full
# shares all links anew at each event. Lazy is documented as an optimization, so the times are to be
# the same. They are not: of one of two flows that a host starts at once, Lazy overlooks the links
# beyond the one that both have in common. A flow that is there already keeps the rate that it had,
# and more passes a link than it can carry.
#
# Here, on four hosts with 1 GB/s each way, 0 sends 1 GB to 1, and after 0.1 s 2 sends 1 GB to 1 and
# 1 GB to 3. From then on each of the three flows has half of a link: 0 -> 1 ends after
# 0.1 + 0.9 / 0.5 = 1.9 s, and a latency of 2 us. Lazy says 1.0 s, as if it had host 1's link for
# itself. Where 2 starts the same flows in the other order, or a microsecond apart, Lazy is right.
#
# The packages are Debian 12's, for its own Python 3.11, unpacked into a temporary folder.
#
# Exit: 0 as described, 1 changed, 2 could not be tried.
set -u
folder=$(mktemp -d) || exit 2
trap 'cd /; rm -rf "$folder"' EXIT
cd "$folder" || exit 2
[ "$(/usr/bin/python3 -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null)" = "3 11" ] || {
    echo "no Python 3.11 at /usr/bin/python3"
    exit 2
}
# Those of libsimgrid's libraries that a Debian without it may lack.
timeout 300 apt-get -q download python3-simgrid libsimgrid3.32 libboost-context1.74.0 \
    libboost-stacktrace1.74.0 libns3.37 libgfortran5 libquadmath0 libgsl27 libgslcblas0 \
    libsqlite3-0 libxml2 libicu72 liblzma5 >apt.log 2>&1 || {
    tail -3 apt.log
    exit 2
}
for package in ./*.deb; do
    dpkg -x "$package" root || exit 2
done
cat >try.py <<'PYTHON'
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor

GB = 10**9
update, apart, *targets = sys.argv[1:]
engine = Engine([
    "try", "--log=root.thresh:warning", f"--cfg=network/optim:{update}", "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0",
])
zone = NetZone.create_full_zone("fabric")
hosts = [zone.create_host(str(number), 1e9) for number in range(4)]
links = [[zone.create_link(f"{way}{number}", GB).set_latency(1e-6).seal() for number in range(4)]
         for way in ("up", "down")]
for a in range(4):
    for b in range(4):
        if a != b:
            route = [LinkInRoute(links[0][a]), LinkInRoute(links[1][b])]
            zone.add_route(hosts[a].netpoint, hosts[b].netpoint, None, None, route, False)
zone.seal()
ends = {}


def first():
    Comm.sendto(hosts[0], hosts[1], GB)
    ends["0 -> 1"] = Engine.clock


def send(target):
    Comm.sendto(hosts[2], hosts[target], GB)
    ends[f"2 -> {target}"] = Engine.clock


def second(wait, target):
    this_actor.sleep_for(wait)
    send(target)


Actor.create("first", hosts[0], first)
for number, target in enumerate(targets):
    Actor.create(f"to {target}", hosts[2], second, 0.1 + number * float(apart), int(target))
engine.run()
print(*(f"{name} {ends[name]:.6f}" for name in sorted(ends)), sep=", ")
PYTHON
LD_LIBRARY_PATH=$(printf '%s:' "$folder"/root/usr/lib/*-linux-gnu "$folder"/root/lib/*-linux-gnu)
export LD_LIBRARY_PATH
export PYTHONPATH="$folder/root/usr/lib/python3/dist-packages"
try() {
    timeout 30 /usr/bin/python3 try.py "$@" 2>err.log
}
echo "simgrid $(dpkg-deb -f python3-simgrid_*.deb Version), Debian's package"
found=""
while read -r what args; do
    # shellcheck disable=SC2086
    seen=$(try $args) && [ -n "$seen" ] || {
        tail -5 err.log
        exit 2
    }
    echo "${what//_/ }: $seen"
    found="$found$seen;"
done <<'CASES'
all_links_anew_(Full) Full 0 1 3
selective_update_(Lazy,_the_default) Lazy 0 1 3
for_comparison,_Lazy,_in_the_other_order Lazy 0 3 1
for_comparison,_Lazy,_1_us_apart Lazy 1e-6 1 3
CASES
expected="0 -> 1 1.900002, 2 -> 1 2.100002, 2 -> 3 2.100002;"
expected="$expected""0 -> 1 1.000002, 2 -> 1 2.100002, 2 -> 3 2.100002;"
case "$found" in
"$expected""0 -> 1 1.90000"*";0 -> 1 1.90000"*) ;;
*)
    echo changed
    exit 1
    ;;
esac
echo "flow 0 -> 1 ends 0.9 s early where 2 starts two flows at once, and gets 1 GB/s next to 2 -> 1's 0.5"
echo "as described"
