#!/usr/bin/env bash
# parse-k8s-resources 0.0.3 (sums of what Kubernetes reserves, a program of Python): a container that asks for nothing
# counts with the processors of the one before it.
#
# Guess: two processors for a container with a request of two and a sidecar without one, limits of four.
# Seen: four, and limits of eight. The sidecar first, it is two and four. With three sidecars it is eight. Memory is
# not taken over.
#
# Who it hurts: whoever sizes a cluster by the sums: meshes and log shippers add a sidecar to each pod, and double what
# seems to be needed.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check parse-k8s-resources==0.0.3 \
  prettytable==3.17.0 tabulate==0.10.0
api='{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "1Gi"}}}'
sidecar='{"resources": {}}'
seen=""
for containers in "$api" "$api, $sidecar" "$sidecar, $api" "$api, $sidecar, $sidecar, $sidecar"; do
  cat > "$work/deployments.json" << JSON
{"items": [{"kind": "Deployment", "metadata": {"name": "api", "namespace": "shop", "generation": 1},
  "status": {"replicas": 1}, "spec": {"template": {"spec": {"containers": [$containers]}}}}]}
JSON
  seen+="$("$work/venv/bin/parse-k8s-resources" < "$work/deployments.json" | awk 'END { print $1, $2 }'); "
done
echo "parse-k8s-resources 0.0.3, requests and limits alone, with a sidecar, one before it, and three: $seen"
[ "$seen" = "2 4; 4 8; 2 4; 8 16; " ]
