# find_package(cusync) gives cusync::cusync, find_package(cusync COMPONENTS sim) also cusync::sim.
# Two export sets, so that the headers can be used where there is no Boost.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cusync)

install(DIRECTORY include/cusync DESTINATION include FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS cusync_headers EXPORT cusyncTargets)
install(TARGETS cusync_sim EXPORT cusyncSimTargets)
install(EXPORT cusyncTargets NAMESPACE cusync:: DESTINATION ${package_dir})
install(EXPORT cusyncSimTargets NAMESPACE cusync:: DESTINATION ${package_dir})
if(TARGET cusync_cli)
  install(TARGETS cusync_cli)
  install(FILES docs/chain.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/cusync)
endif()

configure_package_config_file(cmake/cusyncConfig.cmake.in cusyncConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(cusyncConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/cusyncConfig.cmake ${PROJECT_BINARY_DIR}/cusyncConfigVersion.cmake
  DESTINATION ${package_dir})
