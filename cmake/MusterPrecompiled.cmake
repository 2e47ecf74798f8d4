# Precompiled headers, for clang: the headers of the standard library, Abseil, gRPC, nlohmann/json and
# GoogleTest are most of what it compiles, and here each kind of target reads them once. With g++ 12 it is
# not worth it (it saves a tenth, and warns of errors in the standard library). They hold headers of others
# only, and every file still includes what it uses: builds with g++ and the preset `threads` have none.
#
#   kind          for
#   plain         libraries and programs
#   grpc          those that speak gRPC
#   tests         test programs
#   tests_grpc    test programs that speak gRPC
set(headers_plain
  <algorithm> <atomic> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional>
  <set> <sstream> <stop_token> <string> <thread> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
  <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/strings/string_view.h> <absl/time/time.h> <absl/types/span.h> <nlohmann/json.hpp>)
set(headers_grpc ${headers_plain} <grpcpp/grpcpp.h> <google/protobuf/message.h>)
set(headers_tests ${headers_plain} <gmock/gmock.h> <gtest/gtest.h>)
set(headers_tests_grpc ${headers_grpc} <gmock/gmock.h> <gtest/gtest.h>)

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR CMAKE_DISABLE_PRECOMPILE_HEADERS OR MUSTER_FUZZ)
  function(muster_precompile target kind)
  endfunction()
  return()
endif()

file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
foreach(kind plain grpc tests tests_grpc)
  add_library(muster_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(muster_precompiled_${kind} PRIVATE muster_build_flags
    absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::span absl::status absl::statusor absl::strings
    absl::time nlohmann_json::nlohmann_json)
  if(kind MATCHES grpc)
    target_link_libraries(muster_precompiled_${kind} PRIVATE gRPC::grpc++)
  endif()
  if(kind MATCHES tests)
    target_link_libraries(muster_precompiled_${kind} PRIVATE GTest::gmock)
  endif()
  target_precompile_headers(muster_precompiled_${kind} PRIVATE ${headers_${kind}})
endforeach()

# Gives `target` the precompiled headers of its kind. `kind`: plain or tests; the names of its libraries follow.
function(muster_precompile target kind)
  if("proto_grpc" IN_LIST ARGN)
    string(REGEX REPLACE "^plain$" "grpc" kind ${kind})
    string(REGEX REPLACE "^tests$" "tests_grpc" kind ${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM muster_precompiled_${kind})
endfunction()
