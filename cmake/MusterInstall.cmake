# `cmake --install` puts the programs, the libraries, their headers and a CMake package in place, so
# that anyone builds a `muster` with handlers of one's own (examples/own_handler):
#
#   find_package(muster REQUIRED)
#   target_link_libraries(my_muster PRIVATE muster::main)
#
# Conformance suites stay at home: they need GoogleTest. So do the examples. Headers go into a folder
# of their own, include/muster, because theirs begin with names as common as cli/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(include_dir ${CMAKE_INSTALL_INCLUDEDIR}/muster)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/muster)

get_property(libraries GLOBAL PROPERTY MUSTER_LIBRARIES)
list(FILTER libraries EXCLUDE REGEX "_conformance$|_fakes$|^example_")
foreach(library ${libraries})
  install(TARGETS muster_${library} EXPORT muster
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  get_property(folder GLOBAL PROPERTY MUSTER_FOLDER_${library})
  if(NOT library MATCHES "^proto")
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/
      DESTINATION ${include_dir}/${folder} COMPONENT development
      FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/generated/ ${PROJECT_BINARY_DIR}/proto/generated_grpc/
  DESTINATION ${include_dir} COMPONENT development FILES_MATCHING PATTERN "*.pb.h")
install(EXPORT muster NAMESPACE muster:: FILE musterTargets.cmake DESTINATION ${package_dir}
  COMPONENT development)

# The package finds what muster was built on by the very file that the build itself uses.
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/musterConfig.cmake.in
  ${PROJECT_BINARY_DIR}/musterConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/musterConfig.cmake ${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/MusterDependencies.cmake DESTINATION ${package_dir}
  COMPONENT development)

install(TARGETS muster RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
install(TARGETS muster-queue-gateway muster-replica-keeper muster-scaling-agent
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT services)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/links)
foreach(service muster-initiator muster-processor muster-controller)
  file(CREATE_LINK muster ${PROJECT_BINARY_DIR}/links/${service} SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/links/${service} DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT services)
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/schema)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/muster
    COMPONENT programs)
endif()
