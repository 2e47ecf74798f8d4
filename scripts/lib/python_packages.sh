# shellcheck shell=bash
# Python packages that some tests need and Debian does not have, or has too old: another client of
# NATS, and what the handler in Python (examples/grpc_handler) is written with. Sourced, after say.sh.

python_packages=(grpcio==1.71.0 grpcio-tools==1.71.0 nats-py==2.14.0)

# To be said once more where it is not overlooked: those tests count as passed.
warn_of_missing_python_packages() {
  [ -n "${MUSTER_PYTHON:-}" ] ||
    say "without ${python_packages[*]} the tests of another NATS client and of the handler in Python are SKIPPED"
}

# Sets MUSTER_PYTHON to a Python that has them, unless it is set. Needs the network the first time only,
# and does without it: then the tests that need them are skipped.
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
