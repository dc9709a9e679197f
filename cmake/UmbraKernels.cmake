# umbra_add_kernels: kernels that are compiled ahead of time, as part of a target.
#
#   umbra_add_kernels(<target> <file>... [NAME <name>] [TARGETS <target>...] [STATIC_RUNTIME])
#
# Files are .umb texts, or C++ with functions that are marked as kernels. NAME (the target's name, unless
# given) is that of the generated header and the prefix of its C functions; the kernels of the .umb files
# are one library. TARGETS are plain, sse2, avx2, avx512, and cuda:sm_80,sm_90 or the like for GPUs, which needs NVRTC
# to build; without them sse2, avx2, avx512 on x86-64, else plain. The program links libumbra_runtime, or its static form.
#
# Variables: UMBRA_KERNELS=OFF compiles C++ files as they are. UMBRA_TOOL and UMBRA_EXTRACT_TOOL are the
# generators, programs of the machine that builds; a build for another machine has to set them.

option(UMBRA_KERNELS "Compile kernels ahead of time; else C++ evaluates them eagerly" ON)

# The program that generates: as a variable says, as Umbra provides it, or as PATH has it.
function(umbra_find_tool variable name result)
  if(NOT ${variable} AND TARGET Umbra::${name} AND NOT CMAKE_CROSSCOMPILING)
    set(${result} Umbra::${name} PARENT_SCOPE)
    return()
  endif()
  # CMAKE_PREFIX_PATH may lead to the programs of another machine.
  find_program(${variable} ${name} NO_CMAKE_PATH NO_CMAKE_FIND_ROOT_PATH DOC "Umbra's generator ${name}, for the machine that builds")
  set(${result} "${${variable}}" PARENT_SCOPE)
endfunction()

# The flags of sources for an instruction set, which stand in the first line of each, too.
function(umbra_kernel_flags instruction_set result)
  set(flags -O3 -fno-fast-math -ffp-contract=off -fwrapv -fno-math-errno -fno-trapping-math -w)
  set(sse2 -msse2)
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  if(instruction_set STREQUAL cuda)  # images, no code
    set(flags "")
  elseif(NOT instruction_set STREQUAL plain)
    list(APPEND flags -march=x86-64 ${${instruction_set}})
  endif()
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# Adds what a generator makes to `target`: NAME.h, NAME.cc, and UNIT.TARGET.cc for each unit, in `folder`.
function(umbra_add_generated target name folder)
  cmake_parse_arguments(PARSE_ARGV 3 ARG "" "DEPFILE;COMMENT" "COMMAND;DEPENDS;UNITS;TARGETS;TEXTS")
  set(sources ${folder}/${name}.cc)
  # Generated files name the user's without a folder, so that they are the same everywhere.
  set(places "")
  foreach(text IN LISTS ARG_TEXTS)
    get_filename_component(base ${text} NAME)
    list(APPEND places -fdebug-prefix-map=${base}=${text})
  endforeach()
  foreach(instruction_set IN LISTS ARG_TARGETS)
    umbra_kernel_flags(${instruction_set} flags)
    foreach(unit IN LISTS ARG_UNITS)
      set(source ${folder}/${unit}.${instruction_set}.cc)
      list(APPEND sources ${source})
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS "${flags};${places}")
    endforeach()
  endforeach()
  if(TARGET ${target}_${name}_generate)
    message(FATAL_ERROR "umbra_add_kernels: ${target} has kernels called ${name} already; give these another NAME")
  endif()
  set(depfile "")
  if(ARG_DEPFILE)
    set(depfile DEPFILE ${ARG_DEPFILE})
  endif()
  # Files that would not change keep their time stamps; the generator's stamp tells when they were made.
  set(stamp ${folder}/${name}.stamp)
  add_custom_command(OUTPUT ${stamp} BYPRODUCTS ${sources} ${folder}/${name}.h
    COMMAND ${ARG_COMMAND} DEPENDS ${ARG_DEPENDS} ${depfile}
    COMMENT "${ARG_COMMENT}" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${target}_${name}_generate DEPENDS ${stamp})
  add_dependencies(${target} ${target}_${name}_generate)
  # Each is compiled by itself: sources of different instruction sets must not be merged.
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES
    GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${sources})
  set_property(TARGET ${target} APPEND PROPERTY INCLUDE_DIRECTORIES ${folder})
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES $<BUILD_INTERFACE:${folder}>)
endfunction()

# Properties rather than target_link_libraries, which would fix how the caller has to use it.
function(umbra_link target library)
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(NOT "${library}" IN_LIST linked)
    set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES ${library})
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${library})
  endif()
endfunction()

function(umbra_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "STATIC_RUNTIME" "NAME" "TARGETS")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "umbra_add_kernels: there is no target ${target}; add_executable or add_library comes first")
  endif()
  set(texts "")
  set(programs "")
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(path ${file} ABSOLUTE)
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "umbra_add_kernels: there is no file ${path}")
    elseif(path MATCHES "\\.umb$")
      list(APPEND texts ${path})
    else()
      list(APPEND programs ${path})
    endif()
  endforeach()
  if(NOT texts AND NOT programs)
    message(FATAL_ERROR "umbra_add_kernels: no file for ${target}; give .umb texts, or C++ with marked functions")
  endif()
  target_sources(${target} PRIVATE ${programs})
  if(NOT UMBRA_KERNELS)
    if(texts)
      message(FATAL_ERROR "umbra_add_kernels: UMBRA_KERNELS is OFF, but ${texts} can only be compiled ahead of "
        "time: the text form has no eager evaluation. Turn UMBRA_KERNELS on, or leave these files out")
    endif()
    umbra_link(${target} Umbra::headers)
    return()
  endif()

  if(NOT ARG_NAME)
    string(MAKE_C_IDENTIFIER ${target} ARG_NAME)
  endif()
  set(known plain)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(known plain sse2 avx2 avx512)
    set(default sse2 avx2 avx512)
  else()
    set(default plain)
  endif()
  if(NOT ARG_TARGETS)
    set(ARG_TARGETS ${default})
  endif()
  set(kinds "")  # of sources: the instruction sets, and cuda
  foreach(kind IN LISTS ARG_TARGETS)
    if(kind MATCHES "^cuda:sm_[0-9]+[af]?(,sm_[0-9]+[af]?)*$")
      set(kind cuda)
    elseif(NOT kind IN_LIST known)
      string(JOIN ", " names ${known})
      message(FATAL_ERROR "umbra_add_kernels: unknown target '${kind}'; for ${CMAKE_SYSTEM_PROCESSOR} "
        "there are ${names}, and for GPUs cuda:sm_80,sm_90 and the like")
    endif()
    list(APPEND kinds ${kind})
  endforeach()
  list(REMOVE_DUPLICATES kinds)
  string(JOIN "," targets ${ARG_TARGETS})
  if(ARG_STATIC_RUNTIME AND cuda IN_LIST kinds)
    umbra_link(${target} Umbra::cuda_static)
  elseif(ARG_STATIC_RUNTIME)
    umbra_link(${target} Umbra::runtime_static)
  else()
    umbra_link(${target} Umbra::runtime)
  endif()

  if(texts)
    umbra_find_tool(UMBRA_TOOL umbra tool)
    if(NOT tool)
      message(FATAL_ERROR "umbra_add_kernels: the tool umbra, which generates kernels, is not there; install the "
        "package umbra-tools, or set UMBRA_TOOL to its path on the machine that builds")
    endif()
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/umbra_kernels/${target}/${ARG_NAME})
    set(units "")
    foreach(text IN LISTS texts)
      get_filename_component(stem ${text} NAME_WLE)
      list(APPEND units ${ARG_NAME}.${stem})
    endforeach()
    umbra_add_generated(${target} ${ARG_NAME} ${folder} TARGETS ${kinds} UNITS ${units} TEXTS ${texts}
      COMMAND ${tool} aot ${texts} --targets ${targets} --out ${folder} --name ${ARG_NAME}
      DEPENDS ${texts} ${tool} COMMENT "Generating the kernels ${ARG_NAME}")
  endif()
  if(NOT programs)
    return()
  endif()
  umbra_find_tool(UMBRA_EXTRACT_TOOL umbra-extract tool)
  if(NOT tool)
    message(FATAL_ERROR "umbra_add_kernels: the tool umbra-extract, which reads kernels from C++, is not there; "
      "install the package umbra-tools, set UMBRA_EXTRACT_TOOL to its path on the machine that builds, or turn "
      "UMBRA_KERNELS off to evaluate ${programs} eagerly")
  endif()
  if(cuda IN_LIST kinds)
    # Expressions of a GPU's tensors have no eager evaluation: without generated code they are errors when they are met.
    set_property(SOURCE ${programs} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_DEFINITIONS UMBRA_KERNELS_AHEAD_OF_TIME)
  endif()
  # The flags that the compiler gets for the target's sources.
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  get_target_property(standard ${target} CXX_STANDARD)
  if(NOT standard)
    set(standard 17)
  endif()
  list(APPEND flags -std=c++${standard} "$<$<BOOL:${includes}>:-I$<JOIN:${includes},$<SEMICOLON>-I>>"
    "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},$<SEMICOLON>-D>>" "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>")
  foreach(program IN LISTS programs)
    get_filename_component(stem ${program} NAME_WE)
    string(MAKE_C_IDENTIFIER ${ARG_NAME}_${stem} name)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/umbra_kernels/${target}/${name})
    umbra_add_generated(${target} ${name} ${folder} TARGETS ${kinds} UNITS ${name} TEXTS ${program}
      COMMAND ${tool} ${program} --targets ${targets} --out ${folder} --name ${name}
        --depfile ${folder}/${name}.d -- ${flags}
      DEPFILE ${folder}/${name}.d DEPENDS ${program} ${tool} COMMENT "Extracting the kernels of ${stem}")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      # The eager functions are weak; without this, an archive might give them before the compiled ones.
      set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_OPTIONS LINKER:--undefined=${name}_kernels)
    endif()
  endforeach()
endfunction()
