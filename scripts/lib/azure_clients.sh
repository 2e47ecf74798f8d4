# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The storage service's own clients, in Python, JavaScript, Go, Java and Rust, of today and of years ago: what the
# tests of the queue gateway speak to it with. Sourced, after say.sh.

azure_python_package=azure-storage-queue==12.18.1
azure_python_12_8_package=azure-storage-queue==12.8.0
azure_kombu_packages=(kombu==5.7.0 azure-storage-queue==12.18.1)
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

# Sets MUSTER_AZURE_CLIENTS to a folder with the programs of the clients that must be compiled, and a Python that has
# kombu; builds what is missing or has changed. Fails where a compiler is missing, or its packages cannot be fetched;
# the tests of what is not there are skipped. Takes some ten minutes of two cores, once.
build_azure_clients() {
  local folder=$PWD/build/tools/azure_clients name status=0
  export MUSTER_AZURE_CLIENTS=$folder
  mkdir -p "$folder"
  for name in go java rust kombu; do
    build_azure_client "$name" "$folder" || status=1
  done
  return "$status"
}

# build_azure_client NAME FOLDER
build_azure_client() {
  local name=$1 folder=$2 sources=tests/queue_gateway/azure_$1_client made_of
  made_of=$({ cat scripts/lib/azure_clients.sh &&
    { [ ! -d "$sources" ] || find "$sources" -type f -print0 | sort -z | xargs -0 cat; }; } | sha256sum)
  [ "$(cat "$folder/$name.made_of" 2> /dev/null)" != "$made_of" ] || return 0
  say "building the client $name into build/tools/azure_clients"
  if ! "build_azure_$name" "$sources" "$folder" < /dev/null; then
    say "without the client $name its tests are SKIPPED"
    return 1
  fi
  printf '%s\n' "$made_of" > "$folder/$name.made_of"
}

# The first major version has another name and the same interface.
build_azure_go() {
  local sources=$1 folder=$2 work=$2/go_1_module
  command -v go > /dev/null || return
  mkdir -p "$work" && cp "$sources"/*.go "$sources"/v1/go.* "$work/" && sed -i 's|azqueue/v2|azqueue|' "$work"/*.go ||
    return
  (cd "$sources" && GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -o "$folder/go" .) &&
    (cd "$work" && GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -o "$folder/go-1" .)
}

build_azure_java() {
  local sources=$1 classes=$2/java
  command -v mvn > /dev/null && command -v javac > /dev/null || return
  mkdir -p "$classes" &&
    mvn --quiet --batch-mode --file "$sources/pom.xml" dependency:copy-dependencies \
      -DoutputDirectory="$classes/jars" &&
    javac -cp "$classes/jars/*" -d "$classes" "$sources"/*.java
}

build_azure_rust() {
  local sources=$1 folder=$2
  command -v cargo > /dev/null || return
  # Beside its sources cargo would write a lock file.
  mkdir -p "$folder/rust_crate" && cp -r "$sources"/. "$folder/rust_crate/" &&
    cargo build --quiet --manifest-path "$folder/rust_crate/Cargo.toml" --target-dir "$folder/rust_target" &&
    cp "$folder/rust_target/debug/azure_rust_client" "$folder/rust"
}

build_azure_kombu() {
  local folder=$2/kombu
  python3 -m venv --clear "$folder" &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 30 \
      --only-binary :all: "${azure_kombu_packages[@]}"
}
