#!/usr/bin/env bash
# parse-k8s-resources 0.0.3 (sums of what Kubernetes reserves, a program of Python): memory counts in Mi and Gi only.
# Ten copies with 2G each need "1" G, as no copies do.
#
# Guess: some 19 G for 2G, for 2Gi 20, and for 1Ti 10240. All are quantities of Kubernetes.
# Seen: 21 for 2Gi and 1 for 2G, 2000M, 2147483648, 2097152Ki and 1Ti. Each sum is one more than it is, and what it does
# not know is nothing. 1000m, a byte in Kubernetes, is nearly a gigabyte.
#
# Who it hurts: whoever sizes a cluster or a bill by the sums: workloads with decimal units or plain bytes are free, and
# there is no word of it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check parse-k8s-resources==0.0.3 \
  prettytable==3.17.0 tabulate==0.10.0
seen=""
for memory in 2Gi 2G 2000M 2147483648 2097152Ki 1Ti 1000m; do
  cat > "$work/deployments.json" << JSON
{"items": [{"kind": "Deployment", "metadata": {"name": "api", "namespace": "shop", "generation": 1},
  "status": {"replicas": 10}, "spec": {"template": {"spec": {"containers": [
    {"resources": {"requests": {"cpu": "1", "memory": "$memory"}}}]}}}}]}
JSON
  seen+="$memory $("$work/venv/bin/parse-k8s-resources" < "$work/deployments.json" | awk 'END { print $3 }'); "
done
echo "parse-k8s-resources 0.0.3, memory of ten copies in G: $seen"
[ "$seen" = "2Gi 21; 2G 1; 2000M 1; 2147483648 1; 2097152Ki 1; 1Ti 1; 1000m 10; " ]
