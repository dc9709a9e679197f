# How every target of this project is made.

set(UMBRA_WARNINGS -Wall -Wextra $<$<BOOL:${UMBRA_WARNINGS_ARE_ERRORS}>:-Werror>)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(UMBRA_SANITIZE)
  add_compile_options(-fsanitize=${UMBRA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${UMBRA_SANITIZE})
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

function(umbra_configure target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE ${UMBRA_WARNINGS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# What `cmake --install` needs: the libraries and the programs that are installed, without tests and examples.
add_custom_target(umbra_installed)

# umbra_add_library(name SHARED|STATIC SOURCES ... LINK ... PRIVATE_LINK ... [COMPONENT ...])
# A shared library is part of the package tools, unless COMPONENT says otherwise; what is linked to is of dev.
function(umbra_add_library name type)
  cmake_parse_arguments(ARG "" "COMPONENT" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT tools)
  endif()
  add_library(${name} ${type} ${ARG_SOURCES})
  umbra_configure(${name})
  target_link_libraries(${name} PUBLIC umbra_headers ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  string(REGEX REPLACE "^umbra_" "" short ${name})
  add_library(Umbra::${short} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  add_dependencies(umbra_installed ${name})
  install(TARGETS ${name} EXPORT UmbraTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${ARG_COMPONENT} NAMELINK_COMPONENT dev
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endfunction()

# umbra_add_program(name SOURCES ... LINK ... [INSTALL])
function(umbra_add_program name)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  umbra_configure(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_INSTALL)
    add_executable(Umbra::${name} ALIAS ${name})
    add_dependencies(umbra_installed ${name})
    install(TARGETS ${name} EXPORT UmbraToolsTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  endif()
endfunction()

# umbra_calls_kernels(SOURCE...): UBSan of clang reads what lies before a function that is called through a pointer; before
# a kernel may lie nothing.
function(umbra_calls_kernels)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
endfunction()

# Writes the C++ source `output` with the texts of `files` (paths under include/), in order.
function(umbra_embed_text output)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${ARGN}"
      -DROOT=${PROJECT_SOURCE_DIR}/include -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
    COMMENT "Embedding the kernel prelude" VERBATIM)
  foreach(file IN LISTS ARGN)
    set_property(SOURCE ${output} APPEND PROPERTY OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/include/${file})
    list(APPEND paths ${PROJECT_SOURCE_DIR}/include/${file})
  endforeach()
  add_custom_command(OUTPUT ${output} DEPENDS ${paths} APPEND)
endfunction()
