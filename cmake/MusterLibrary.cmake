# muster_library(NAME LAYER n [OPTIMISED|COLD] SRCS … DEPS … EXTERNAL …)
# muster_test(NAME SRCS … DEPS … EXTERNAL … [LABELS …] [TIMEOUT seconds]
#   [SHARDS n] [ONE_THREAD])
#
# A library is a folder of the tree, and its name is the folder's path (muster/queue/rocksdb →
# queue_rocksdb, services/initiator/batch → initiator_batch, tests/fakes/nats → nats_fakes). A folder may
# have further ones, such as the forms that need gRPC. Two rules are checked while CMake configures, and
# a breach stops the build:
#   1. a library depends only on libraries of a strictly lower layer, so siblings never meet;
#   2. a file includes only headers of its own folder and of the libraries that DEPS names.
# DEPS are PUBLIC; EXTERNAL are third-party targets. Use EXTERNAL_PUBLIC where a header includes one. OPTIMISED:
# its tests compute for long, so that it is optimised in every build. COLD: it does nothing for each transaction,
# item or message, so that a release build spends little on optimising it (-Og).

set_property(GLOBAL PROPERTY MUSTER_LIBRARIES "")

# Fails unless each quoted include of `files` belongs to `own_folder` or to a library in `deps`.
function(muster_check_includes owner own_folder deps)
  set(allowed ${own_folder})
  foreach(dep ${deps})
    get_property(folder GLOBAL PROPERTY MUSTER_FOLDER_${dep})
    list(APPEND allowed ${folder})
  endforeach()
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} includes 
         REGEX "^ *# *include \"(muster|services|cli|examples|bench|tests)/")
    foreach(line ${includes})
      string(REGEX REPLACE "^ *# *include \"([^\"]*)/[^/\"]*\".*" "\\1" folder "${line}")
      if(NOT folder IN_LIST allowed)
        message(FATAL_ERROR "${owner}: ${file} has ${line}, but ${owner} does not name the library "
                            "of '${folder}' in DEPS (it may use: ${allowed})")
      endif()
    endforeach()
  endforeach()
endfunction()

function(muster_library name)
  cmake_parse_arguments(ARG "OPTIMISED;COLD" "LAYER" "SRCS;DEPS;EXTERNAL;EXTERNAL_PUBLIC" ${ARGN})
  foreach(dep ${ARG_DEPS})
    get_property(dep_layer GLOBAL PROPERTY MUSTER_LAYER_${dep})
    if("${dep_layer}" STREQUAL "")
      message(FATAL_ERROR "${name}: unknown library '${dep}' (is it added before ${name}?)")
    endif()
    if(NOT dep_layer LESS ARG_LAYER)
      message(FATAL_ERROR "${name} (layer ${ARG_LAYER}) must not depend on ${dep} "
                          "(layer ${dep_layer}): only strictly lower layers")
    endif()
  endforeach()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL PROPERTY MUSTER_LAYER_${name} ${ARG_LAYER})
  set_property(GLOBAL PROPERTY MUSTER_FOLDER_${name} ${folder})
  set_property(GLOBAL PROPERTY MUSTER_DEPS_${name} ${ARG_DEPS})
  muster_sees_grpc(grpc ${ARG_DEPS})
  set_property(GLOBAL PROPERTY MUSTER_SEES_GRPC_${name} ${grpc})
  set_property(GLOBAL APPEND PROPERTY MUSTER_LIBRARIES ${name})

  # All sources of a library are listed with their headers, so that headers are checked too.
  list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  muster_check_includes(${name} ${folder} "${ARG_DEPS}" ${paths})

  set(sources ${ARG_SRCS})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND muster::)
  if(sources)
    add_library(muster_${name} STATIC ${ARG_SRCS})
    set(scope PUBLIC)
    target_link_libraries(muster_${name} PRIVATE $<BUILD_INTERFACE:muster_build_flags>)
    target_link_libraries(muster_${name} PRIVATE ${ARG_EXTERNAL})
    if(ARG_OPTIMISED AND CMAKE_BUILD_TYPE STREQUAL "Debug")
      target_compile_options(muster_${name} PRIVATE -O1)
    else()
      set_target_properties(muster_${name} PROPERTIES MUSTER_COLD "${ARG_COLD}")
      muster_precompile(muster_${name} plain ${ARG_DEPS})
    endif()
    if(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL "Release")
      target_compile_options(muster_${name} PRIVATE -Og)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(muster_${name} INTERFACE ${ARG_EXTERNAL})
  endif()
  add_library(muster::${name} ALIAS muster_${name})
  set_target_properties(muster_${name} PROPERTIES EXPORT_NAME ${name})
  if(NOT MUSTER_TESTS AND folder MATCHES "^tests/")
    set_target_properties(muster_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(muster_${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/muster>)
  target_compile_features(muster_${name} ${scope} cxx_std_20)
  target_link_libraries(muster_${name} ${scope} ${deps} ${ARG_EXTERNAL_PUBLIC})
endfunction()

# What a sanitizer must know of gRPC, as the environment of a test that has it.
set(MUSTER_GRPC_TEST_ENVIRONMENT "")
if(MUSTER_SANITIZE STREQUAL "thread")
  string(CONCAT MUSTER_GRPC_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_grpc.supp "
    "ignore_noninstrumented_modules=1")
elseif(MUSTER_SANITIZE MATCHES "address")
  string(CONCAT MUSTER_GRPC_TEST_ENVIRONMENT
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan_grpc.supp:print_suppressions=0")
endif()

# A test program, run by ctest as one test. LABELS: `slow` keeps it out of `scripts/test --quick`, `deep`
# out of the gate, too; either lets it start before the others. SHARDS: it runs as n tests beside each other,
# NAME_1 to NAME_n, each with a share of its cases; for those that wait most of the time. ONE_THREAD: what it
# tests has one thread, so that ThreadSanitizer has nothing to find in it. A test that a build leaves out is
# built only by its name.
function(muster_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "TIMEOUT;SHARDS" "SRCS;DEPS;EXTERNAL;LABELS" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARG_SRCS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  set_property(GLOBAL APPEND PROPERTY MUSTER_TEST_PROGRAMS ${name})
  set_property(GLOBAL PROPERTY MUSTER_TEST_FOLDER_${name} ${folder})
  set_property(GLOBAL PROPERTY MUSTER_TEST_DEPS_${name} "${ARG_DEPS}")
  set_property(GLOBAL PROPERTY MUSTER_TEST_SRCS_${name} "${paths}")
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND muster::)
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE muster_build_flags ${deps} ${ARG_EXTERNAL}
    GTest::gmock GTest::gtest_main)
  if(NOT MUSTER_TESTS OR (ARG_ONE_THREAD AND MUSTER_SANITIZE STREQUAL "thread"))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(tests ${name})
  if(ARG_SHARDS)
    list(TRANSFORM tests APPEND _1 OUTPUT_VARIABLE tests)
    foreach(number RANGE 2 ${ARG_SHARDS})
      list(APPEND tests ${name}_${number})
    endforeach()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(MUSTER_SANITIZE)  # such a program takes several times as long
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 6")
  endif()
  set(shard 0)
  foreach(test ${tests})
    add_test(NAME ${test} COMMAND ${name})
    set(environment ${MUSTER_GRPC_TEST_ENVIRONMENT})
    if(ARG_SHARDS)
      list(APPEND environment GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${shard})
      math(EXPR shard "${shard} + 1")
    endif()
    set_tests_properties(${test} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT "${environment}")
    if(ARG_LABELS)
      set_tests_properties(${test} PROPERTIES COST 100)
    endif()
  endforeach()
  if(NOT ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY MUSTER_QUICK_TESTS ${name})
  endif()
endfunction()

# The target quick_tests: what `scripts/test --quick` runs under a sanitizer, without the programs that
# the slow tests alone start.
function(muster_add_quick_tests)
  get_property(tests GLOBAL PROPERTY MUSTER_QUICK_TESTS)
  add_custom_target(quick_tests DEPENDS ${tests} ${ARGN})
endfunction()

# Checks what the test programs include, and gives them their precompiled headers. Called when all folders are
# added: a test stands beside what it tests, and may use the fakes and the engines that are built on it.
function(muster_finish_tests)
  get_property(tests GLOBAL PROPERTY MUSTER_TEST_PROGRAMS)
  foreach(test ${tests})
    get_property(folder GLOBAL PROPERTY MUSTER_TEST_FOLDER_${test})
    get_property(deps GLOBAL PROPERTY MUSTER_TEST_DEPS_${test})
    get_property(files GLOBAL PROPERTY MUSTER_TEST_SRCS_${test})
    muster_check_includes(${test} ${folder} "${deps}" ${files})
    muster_precompile(${test} tests ${deps})
  endforeach()
endfunction()
