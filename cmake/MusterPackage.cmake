# Debian packages by CPack, built by scripts/package:
#
#   muster            the command, for those who submit and look, or run batches on one machine
#   muster-services   the services, their systemd units and configuration, the user that they run as
#   muster-dev        the libraries, headers and CMake package for programs with handlers of one's own
#
# Units and configuration belong to packages only: `cmake --install` leaves them out.
set(unit_folder lib/systemd/system)

# The units name the programs below /usr/local, where `cmake --install` puts them. A package has them
# below /usr.
file(GLOB units ${PROJECT_SOURCE_DIR}/deploy/systemd/*.service)
foreach(unit ${units})
  get_filename_component(name ${unit} NAME)
  file(READ ${unit} text)
  string(REPLACE "/usr/local/bin/" "/usr/bin/" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/${name} CONTENT "${text}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name} DESTINATION ${unit_folder}
    COMPONENT units EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/muster.sysusers DESTINATION lib/sysusers.d
  RENAME muster.conf COMPONENT units EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/mesh.env DESTINATION /etc/muster
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ COMPONENT units EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/examples/rules/one-machine.yaml DESTINATION /etc/muster
  RENAME rules.yaml COMPONENT units EXCLUDE_FROM_ALL)
# For a Grafana and a Prometheus wherever they run.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/grafana ${PROJECT_SOURCE_DIR}/deploy/prometheus
  DESTINATION share/muster COMPONENT muster EXCLUDE_FROM_ALL)
foreach(package muster muster-services muster-dev)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/copyright DESTINATION share/doc/${package}
    COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()

# Debian 12 and 13 have other releases of the libraries, so each has packages of its own.
set(debian unknown)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
  string(REGEX REPLACE "[^0-9.]" "" debian "${release}")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VENDOR "The muster authors")
set(CPACK_PACKAGE_CONTACT "The muster authors <muster@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
# /etc is outside of the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

# What each package has: a group of components.
set(CPACK_COMPONENTS_ALL programs muster services units muster-services development muster-dev)
set(CPACK_COMPONENT_PROGRAMS_GROUP command)
set(CPACK_COMPONENT_MUSTER_GROUP command)
set(CPACK_COMPONENT_SERVICES_GROUP mesh)
set(CPACK_COMPONENT_UNITS_GROUP mesh)
set(CPACK_COMPONENT_MUSTER-SERVICES_GROUP mesh)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP dev)
set(CPACK_COMPONENT_MUSTER-DEV_GROUP dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)

set(CPACK_DEBIAN_PACKAGE_RELEASE 1+deb${debian})
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
# dpkg-shlibdeps finds the packages of the libraries, but for this one, which tells it nothing; and whose
# libraries are named alike in all versions.
set(opentelemetry "")
if(TARGET opentelemetry-cpp::otlp_grpc_exporter)
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" version "${opentelemetry-cpp_VERSION}")
  math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
  set(opentelemetry ", opentelemetry-cpp (>= ${version}), opentelemetry-cpp (<< ${CMAKE_MATCH_1}.${next_minor})")
endif()

set(CPACK_DEBIAN_COMMAND_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME muster)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "tzdata${opentelemetry}")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS muster-services)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION
  "elastic work-queue mesh: the command\nmuster splits batches of transactions into items, puts them on durable queues,\nand aggregates the results exactly once. The package has the command line, which\ntalks to a mesh, and runs batches on one machine without one.")

set(CPACK_DEBIAN_MESH_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_MESH_PACKAGE_NAME muster-services)
set(CPACK_DEBIAN_MESH_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MESH_PACKAGE_DEPENDS
  "muster (= ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), adduser, tzdata${opentelemetry}")
set(CPACK_DEBIAN_MESH_PACKAGE_RECOMMENDS nats-server)
set(CPACK_DEBIAN_MESH_DESCRIPTION
  "elastic work-queue mesh: the services\nInitiator, processor, controller, scaling agent and queue gateway of muster,\nwith their systemd units. None starts by itself.")
set(CPACK_DEBIAN_MESH_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles)
set(CPACK_DEBIAN_MESH_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_DEV_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME muster-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "cmake, g++, make | ninja-build, pkg-config, libabsl-dev, libboost-dev, libcli11-dev, libcurl4-openssl-dev, libexpat1-dev, libgrpc++-dev, libgtest-dev, liblz4-dev, libnats-dev, libprotobuf-dev, librocksdb-dev, libsimdjson-dev, libsqlite3-dev, libssl-dev, libxxhash-dev, libyaml-cpp-dev, libzstd-dev, nlohmann-json3-dev, prometheus-cpp-dev, protobuf-compiler-grpc")
if(TARGET opentelemetry-cpp::otlp_grpc_exporter)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", opentelemetry-cpp-dev")
endif()
set(CPACK_DEBIAN_DEV_DESCRIPTION
  "libraries for handlers that are linked into muster\nHeaders, static libraries and a CMake package for a muster and a\nmuster-processor with handlers of one's own.")

include(CPack)
cpack_add_component_group(command)
cpack_add_component_group(mesh)
cpack_add_component_group(dev)
