# Precompiled headers: those of the standard library, Abseil, gRPC, nlohmann/json, CLI11 and GoogleTest are most of
# what clang compiles, and here each kind of target reads them once. They hold headers of others
# and what protoc writes of the gRPC services, and every file still includes what it uses: builds with the presets
# `warnings` and `threads` have none. g++ has them in its release build alone and of the common ones only, which save it a sixth:
# what it keeps of gRPC's or CLI11's headers takes longer to load than they take to read.
#
#   kind          for
#   plain, cold   libraries and programs; with g++ a library that is COLD (MusterLibrary.cmake) has its own
#   grpc          those that see gRPC's headers, by a library that they name or by one below it
#   tests         test programs
#   tests_grpc    test programs that see gRPC's headers
#   generated     what protoc writes
set(headers_common
  <algorithm> <atomic> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional>
  <set> <sstream> <stop_token> <string> <thread> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
  <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/strings/string_view.h> <absl/time/time.h> <absl/types/span.h>)
set(services batch call job ledger mesh partition release report schedule stream worker)
list(TRANSFORM services REPLACE "(.+)" "<muster/v1/\\1_service.grpc.pb.h>" OUTPUT_VARIABLE headers_of_services)
set(headers_plain ${headers_common} <nlohmann/json.hpp>)
set(headers_grpc ${headers_plain} <CLI/CLI.hpp> <grpcpp/grpcpp.h> <google/protobuf/message.h> ${headers_of_services})
set(headers_tests ${headers_plain} <gmock/gmock.h> <gtest/gtest.h>)
set(headers_tests_grpc ${headers_grpc} <gmock/gmock.h> <gtest/gtest.h>)
set(headers_generated
  <grpcpp/grpcpp.h> <google/protobuf/generated_message_reflection.h> <google/protobuf/map_field.h>
  <google/protobuf/reflection_ops.h> <google/protobuf/wire_format.h>)

# Whether code that names `library` sees gRPC's headers: recorded by muster_library.
function(muster_sees_grpc result)
  foreach(library ${ARGN})
    get_property(sees GLOBAL PROPERTY MUSTER_SEES_GRPC_${library})
    if(library STREQUAL "proto_grpc" OR sees)
      set(${result} ON PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} OFF PARENT_SCOPE)
endfunction()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
  # One for each degree of optimisation, which must be that of the files that read it.
  foreach(kind plain cold)
    add_library(muster_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(muster_precompiled_${kind} PRIVATE muster_build_flags
      absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::span absl::status absl::statusor absl::strings
      absl::time)
    target_precompile_headers(muster_precompiled_${kind} PRIVATE ${headers_common})
  endforeach()
  target_compile_options(muster_precompiled_cold PRIVATE -Og)

  function(muster_precompile target kind)
    get_target_property(cold ${target} MUSTER_COLD)
    if(cold)
      target_precompile_headers(${target} REUSE_FROM muster_precompiled_cold)
    else()
      target_precompile_headers(${target} REUSE_FROM muster_precompiled_plain)
    endif()
  endfunction()
  function(muster_precompile_generated target)
  endfunction()
  function(muster_precompile_programs folder)
  endfunction()
  return()
endif()

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR CMAKE_DISABLE_PRECOMPILE_HEADERS OR MUSTER_FUZZ)
  function(muster_precompile target kind)
  endfunction()
  function(muster_precompile_generated target)
  endfunction()
  function(muster_precompile_programs folder)
  endfunction()
  return()
endif()

file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
foreach(kind plain grpc tests tests_grpc generated)
  add_library(muster_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
  if(NOT kind STREQUAL "generated")
    target_link_libraries(muster_precompiled_${kind} PRIVATE muster_build_flags
      absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::span absl::status absl::statusor absl::strings
      absl::time nlohmann_json::nlohmann_json)
  endif()
  if(kind MATCHES "grpc|generated")
    target_link_libraries(muster_precompiled_${kind} PRIVATE gRPC::grpc++)
  endif()
  if(kind MATCHES grpc)
    target_link_libraries(muster_precompiled_${kind} PRIVATE CLI11::CLI11 muster::proto_grpc)
  endif()
  if(kind MATCHES tests)
    target_link_libraries(muster_precompiled_${kind} PRIVATE GTest::gmock)
  endif()
  # ccache keeps nothing that reads a precompiled header with times in it.
  target_compile_options(muster_precompiled_${kind} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(muster_precompiled_${kind} PRIVATE ${headers_${kind}})
endforeach()

# Gives `target` the precompiled headers of its kind. `kind`: plain or tests; the names of its libraries follow.
function(muster_precompile target kind)
  muster_sees_grpc(grpc ${ARGN})
  if(grpc)
    string(REGEX REPLACE "^plain$" "grpc" kind ${kind})
    string(REGEX REPLACE "^tests$" "tests_grpc" kind ${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM muster_precompiled_${kind})
endfunction()

# Gives `target`, whose sources protoc writes, its precompiled headers.
function(muster_precompile_generated target)
  target_compile_options(${target} PRIVATE -pthread)
  if(NOT MUSTER_SANITIZE)
    target_precompile_headers(${target} REUSE_FROM muster_precompiled_generated)
  endif()
endfunction()

# Gives the programs of `folder` and below that have no precompiled headers those of their kind.
function(muster_precompile_programs folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(has ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(type STREQUAL "EXECUTABLE" AND NOT has AND "muster_build_flags" IN_LIST libraries)
      list(TRANSFORM libraries REPLACE "^muster::" "")
      muster_precompile(${target} plain ${libraries})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below ${folders})
    muster_precompile_programs(${below})
  endforeach()
endfunction()
