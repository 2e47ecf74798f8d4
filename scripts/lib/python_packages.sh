# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Python packages that some tests need and that Debian lacks, or has in too old a version: another NATS
# client, and the libraries of the Python handler (examples/grpc_handler). Sourced, after say.sh.

python_packages=(grpcio==1.71.0 grpcio-tools==1.71.0 nats-py==2.14.0)

# Repeats the warning at the end of a run, because ctest counts the skipped tests as passed.
warn_of_missing_python_packages() {
  [ -n "${MUSTER_PYTHON:-}" ] ||
    say "without ${python_packages[*]} the tests of another NATS client and of the handler in Python are SKIPPED"
}

# Sets MUSTER_PYTHON to a Python with the packages, unless it is set already. Needs the network the
# first time only; without it, the tests that need the packages are skipped.
find_python_packages() {
  [ -z "${MUSTER_PYTHON:-}" ] || return 0
  local folder=$PWD/build/tools/python
  local wanted=${python_packages[*]}
  if [ "$(cat "$folder/packages" 2> /dev/null)" != "$wanted" ]; then
    say "fetching $wanted from PyPI into build/tools/python"
    if ! { python3 -m venv --clear "$folder" &&
      "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 30 \
        --only-binary :all: "${python_packages[@]}"; } < /dev/null; then
      warn_of_missing_python_packages
      return 0
    fi
    printf '%s\n' "$wanted" > "$folder/packages"
  fi
  export MUSTER_PYTHON=$folder/bin/python
}
