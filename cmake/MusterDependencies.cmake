# Every library that muster builds on, all from Debian. It is installed too: a program that links an
# installed muster finds them by this same file. What only muster's own tests need is found at its
# end.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(RocksDB REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
# Headers only: Beast and Asio, on which the HTTP server of the queue gateway stands.
find_package(Boost 1.74 CONFIG REQUIRED)
find_package(EXPAT REQUIRED)
find_package(gRPC CONFIG REQUIRED)
# It finds civetweb, its HTTP server, too.
find_package(prometheus-cpp CONFIG REQUIRED)

# Sends traces, metrics and logs by OTLP. Debian 13 has it, Debian 12 in its backports; without it
# muster is built all the same, and says so when it is asked to send.
find_package(opentelemetry-cpp CONFIG QUIET)

# Packaged with pkg-config files only: PkgConfig::MUSTER_ZSTD, _LZ4, _XXHASH, _NATS. The prefix keeps
# their variables apart from those of RocksDB's own find modules.
find_package(PkgConfig REQUIRED)
pkg_check_modules(MUSTER_ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(MUSTER_LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(MUSTER_XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(MUSTER_NATS REQUIRED IMPORTED_TARGET libnats)

# yaml-cpp 0.7 (Debian 12) exports a plain name, 0.8 (Debian 13) a namespaced one.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(NOT CMAKE_FIND_PACKAGE_NAME STREQUAL "muster")
  find_package(GTest REQUIRED)
  if(MUSTER_TESTS)
    find_package(rapidcheck REQUIRED)
  endif()
endif()
