# What is installed for those who build with Umbra, and the Debian packages (cpack -G DEB).
include(CMakePackageConfigHelpers)
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/Umbra)
configure_package_config_file(cmake/UmbraConfig.cmake.in ${PROJECT_BINARY_DIR}/UmbraConfig.cmake
  INSTALL_DESTINATION ${folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/UmbraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/UmbraConfig.cmake ${PROJECT_BINARY_DIR}/UmbraConfigVersion.cmake
  cmake/UmbraKernels.cmake DESTINATION ${folder} COMPONENT dev)
install(EXPORT UmbraTargets NAMESPACE Umbra:: DESTINATION ${folder} COMPONENT dev)
if(UMBRA_BUILD_TOOLS)
  install(EXPORT UmbraToolsTargets NAMESPACE Umbra:: DESTINATION ${folder} COMPONENT dev)
endif()

# umbra_pkg_config(name description libraries private_libraries requires)
function(umbra_pkg_config name description libraries private_libraries requires)
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.pc "prefix=\${pcfiledir}/${up}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}

Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Cflags: -I\${includedir} -ffp-contract=off -fwrapv
Libs: ${libraries}
Libs.private: ${private_libraries}
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()
umbra_pkg_config(umbra "Tensor expressions, header-only" "" "" "")
umbra_pkg_config(umbra-runtime "Runs kernels that Umbra compiled ahead of time"
  "-L\${libdir} -lumbra_runtime -lm" "-lxxhash -ldl -lstdc++" "")
# Only for programs that are linked to libumbra_runtime.a: the shared library opens the one for GPUs by itself.
umbra_pkg_config(umbra-cuda "Runs kernels on GPUs, in programs that are linked statically"
  "-L\${libdir} -Wl,--undefined=umbra_cuda_library -lumbra_cuda" "" "umbra-runtime")
umbra_pkg_config(umbra-compiler "Compiles tensor expressions in the process" "-L\${libdir} -lumbra_compiler" "" "umbra-runtime")

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME umbra)
set(CPACK_PACKAGE_CONTACT "Umbra maintainers <maintainers@umbra.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tools runtime cuda dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libumbra-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runs kernels that Umbra compiled: threads, checks, BLAS; no compiler.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS libumbra-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME libumbra-cuda)
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Runs kernels on NVIDIA's GPUs; the driver and cuBLAS are opened when they are needed.")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "libumbra-runtime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME umbra-tools)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The tools that generate, show and run kernels, and the compiler's libraries.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libumbra-runtime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "g++ | clang, libclang-common-19-dev, libumbra-cuda")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libumbra-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, link libraries and the CMake and pkg-config files of Umbra.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libumbra-runtime (= ${PROJECT_VERSION}), libumbra-cuda (= ${PROJECT_VERSION}), umbra-tools (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libxxhash-dev")
include(CPack)
