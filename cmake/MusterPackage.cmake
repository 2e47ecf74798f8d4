# Debian packages by CPack, built by scripts/package:
#
#   muster       the programs, systemd units, the user that the services run as, configuration
#   muster-dev   the libraries, headers and CMake package for programs with handlers of one's own
#
# The files of the services (units, configuration) belong to packages only: `cmake --install` leaves
# them out.
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
    COMPONENT services EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/muster.sysusers DESTINATION lib/sysusers.d
  RENAME muster.conf COMPONENT services EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/mesh.env DESTINATION /etc/muster
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ COMPONENT services EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/examples/rules/one-machine.yaml DESTINATION /etc/muster
  RENAME rules.yaml COMPONENT services EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/copyright DESTINATION share/doc/muster
  COMPONENT services EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/copyright DESTINATION share/doc/muster-dev
  COMPONENT package-development EXCLUDE_FROM_ALL)

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

set(CPACK_COMPONENTS_ALL programs services development package-development)
set(CPACK_COMPONENT_PROGRAMS_GROUP runtime)
set(CPACK_COMPONENT_SERVICES_GROUP runtime)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP dev)
set(CPACK_COMPONENT_PACKAGE-DEVELOPMENT_GROUP dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)

set(CPACK_DEBIAN_PACKAGE_RELEASE 1+deb${debian})
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_RUNTIME_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME muster)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "adduser, tzdata")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "nats-server")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
  "elastic work-queue mesh\nmuster splits batches of transactions into items, puts them on durable queues,\nand aggregates the results exactly once. The package has the command line, the\nservices of a mesh, and their systemd units.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_STRICT_PERMISSION ON)

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
cpack_add_component_group(runtime)
cpack_add_component_group(dev)
