# shellcheck shell=bash
# The storage service's own clients, in Python and JavaScript, of today and of years ago: what the tests of
# the queue gateway speak to it with. Sourced, after say.sh.

azure_python_package=azure-storage-queue==12.18.1
azure_python_12_8_package=azure-storage-queue==12.8.0
azure_node_packages=(@azure/storage-queue@12.30.0 azure-storage@2.10.7
  azure-storage-queue-12-32@npm:@azure/storage-queue@12.32.0)

# Sets MUSTER_AZURE_PYTHON and MUSTER_AZURE_PYTHON_12_8 to a Python that has the client, today's and that of
# 2023, and MUSTER_AZURE_NODE_MODULES to a folder that has the clients for node, unless they are set
# already. Needs the network the first time only; without it, or without npm, the tests that need them are
# skipped.
find_azure_clients() {
  find_azure_python MUSTER_AZURE_PYTHON azure_python "$azure_python_package"
  find_azure_python MUSTER_AZURE_PYTHON_12_8 azure_python_12_8 "$azure_python_12_8_package"
  [ -n "${MUSTER_AZURE_NODE_MODULES:-}" ] || find_azure_node_modules
}

# find_azure_python VARIABLE NAME PACKAGE: an environment of its own, as Python has one version at a time.
find_azure_python() {
  local variable=$1 folder=$PWD/build/tools/$2 wanted=$3
  [ -z "${!variable:-}" ] || return 0
  if [ "$(cat "$folder/packages" 2> /dev/null)" != "$wanted" ]; then
    say "fetching $wanted from PyPI into build/tools/$2"
    if ! { python3 -m venv --clear "$folder" &&
      "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 30 \
        --only-binary :all: "$wanted"; } < /dev/null; then
      say "without $wanted its tests are SKIPPED"
      return 0
    fi
    printf '%s\n' "$wanted" > "$folder/packages"
  fi
  export "$variable=$folder/bin/python"
}

find_azure_node_modules() {
  local folder=$PWD/build/tools/azure_node
  local wanted=${azure_node_packages[*]}
  command -v npm > /dev/null || return 0
  if [ "$(cat "$folder/packages" 2> /dev/null)" != "$wanted" ]; then
    say "fetching $wanted from npm into build/tools/azure_node"
    mkdir -p "$folder"
    # A client may want a newer node than there is, so they are loaded once.
    if ! { npm install --prefix "$folder" --no-save --no-fund --no-audit --loglevel=error \
      --fetch-retries=1 --fetch-timeout=30000 "${azure_node_packages[@]}" &&
      NODE_PATH=$folder/node_modules node --eval 'require("@azure/storage-queue"); require("azure-storage"); require("azure-storage-queue-12-32")'; } < /dev/null; then
      say "without $wanted its tests are SKIPPED"
      return 0
    fi
    printf '%s\n' "$wanted" > "$folder/packages"
  fi
  export MUSTER_AZURE_NODE_MODULES=$folder/node_modules
}
