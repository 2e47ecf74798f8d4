#!/usr/bin/env bash
# clandestined 1.1.0 (rendezvous hashing for Python): find_nodes() with two replicas gives the same node twice, where
# the nodes are of one zone or have none.
#
# Guess: two of the three nodes, as copies are for: the zones are optional, and two replicas are the default.
# Seen: ['3', '3'], and so it is for each of 1000 keys. With two zones and three replicas the third is the first once
# more, although its zone has another node. It goes through the zones in turn and takes the first node of each.
#
# Who it hurts: whoever keeps two copies of queues or files by it: both are on one machine, and gone with it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check clandestined==1.1.0
cat > "$work/seen.py" << 'PYTHON'
from clandestined import Cluster


def twice(nodes, replicas):
    cluster = Cluster(nodes, replicas=replicas)
    found = [cluster.find_nodes(f"key {number}") for number in range(1000)]
    return sum(len(set(nodes)) < replicas for nodes in found)


print(
    twice({"1": {"name": "a"}, "2": {"name": "b"}, "3": {"name": "c"}}, 2),
    twice({"1": {"zone": "x"}, "2": {"zone": "x"}, "3": {"zone": "y"}}, 3),
    twice({"1": {"zone": "x"}, "2": {"zone": "x"}, "3": {"zone": "y"}}, 2),
)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "clandestined 1.1.0, keys of 1000 with a node twice: no zones, two zones and three replicas, two and two: $seen"
[ "$seen" = "1000 1000 0" ]
