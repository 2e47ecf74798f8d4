# One INTERFACE target carries the warnings, the sanitizers and the failpoints of every muster target.
add_library(muster_build_flags INTERFACE)
target_compile_options(muster_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-unused-parameter)
# g++ 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(muster_build_flags INTERFACE -Wno-restrict)
endif()
# Files that are joined are no headers, for which this warning is meant.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(muster_build_flags INTERFACE -Wno-subobject-linkage)
endif()
# The libraries of gRPC ask for it, and a precompiled header serves only targets with the same macros.
target_compile_options(muster_build_flags INTERFACE -pthread)
if(MUSTER_WERROR)
  target_compile_options(muster_build_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(muster_build_flags INTERFACE -Wthread-safety -Wthread-safety-beta)
endif()
if(MUSTER_SANITIZE)
  target_compile_options(muster_build_flags INTERFACE
    -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(muster_build_flags INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()
# Counts in all code which branches an input took; the targets of tests/fuzz bring the fuzzer itself.
if(MUSTER_FUZZ)
  target_compile_options(muster_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
# What users run has no failpoints (muster/base/failpoint.h).
if(MUSTER_TESTS AND NOT MUSTER_FUZZ)
  target_compile_definitions(muster_build_flags INTERFACE MUSTER_FAILPOINTS)
endif()
