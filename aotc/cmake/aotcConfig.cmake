# find_package(aotc): libraries and executables of MLIR modules, as targets. CMake 3.20 or newer.
#
#   aotc_add_library(<target> [SHARED | STATIC] SOURCES <file>... [CHIPS <chip>...]
#                    [PREFIX <prefix>] [OUTPUT_DIRECTORY <folder>] [OPTIONS <option>...])
#
# A library of each source, and a target that links all of them:
# target_link_libraries(app PRIVATE <target>) finds headers and libraries, and programs in the build
# tree find shared libraries. SHARED is the default. Its property AOTC_PACKAGE is the folder of the
# package, for install(DIRECTORY).
#
#   aotc_add_executable(<target> SOURCE <file> [CHIPS <chip>...] [OUTPUT_NAME <name>]
#                       [OPTIONS <option>...])
#
# A program of a source, built by `all`; <target> is an imported executable.
#
# OPTIONS are those of `aotc build`. What aotc reads, aotc itself among it, is in depfiles: with
# Ninja and Makefiles, all is built again when it changes. The command is AOTC_EXECUTABLE.

cmake_minimum_required(VERSION 3.20)

# The environment that this file is installed in comes first, then PATH.
find_program(AOTC_EXECUTABLE aotc
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../../.venv/bin"
  DOC "The aotc command")

if(NOT AOTC_EXECUTABLE)
  set(aotc_FOUND FALSE)
  set(aotc_NOT_FOUND_MESSAGE
    "The command aotc is not in PATH: name it by -DAOTC_EXECUTABLE=/path/to/bin/aotc.")
  return()
endif()

# Sets <name>_command, and <name>_arguments, a file that changes when the options do.
macro(_aotc_command name emit)
  set(${name}_command ${AOTC_EXECUTABLE} build ${source} --emit ${emit})
  if(ARG_CHIPS)
    string(REPLACE ";" "," chips "${ARG_CHIPS}")
    list(APPEND ${name}_command --chip ${chips})
  endif()
  if(ARG_PREFIX)
    list(APPEND ${name}_command --prefix ${ARG_PREFIX})
  endif()
  list(APPEND ${name}_command ${ARG_OPTIONS})
  # Ninja knows commands, Makefiles do not.
  set(${name}_arguments "${folder}/${stem}.arguments")
  file(CONFIGURE OUTPUT ${${name}_arguments} CONTENT "@${name}_command@\n" @ONLY)
endmacro()

# The path of a source, and what aotc calls the module: its name up to the first dot.
macro(_aotc_source file)
  get_filename_component(source "${file}" ABSOLUTE)
  get_filename_component(stem "${source}" NAME_WE)
endmacro()

function(_aotc_check function target)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${target}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${function}(${target}): no value for ${ARG_KEYWORDS_MISSING_VALUES}")
  endif()
endfunction()

function(aotc_add_library target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG
    "SHARED;STATIC" "PREFIX;OUTPUT_DIRECTORY" "SOURCES;CHIPS;OPTIONS")
  _aotc_check(aotc_add_library ${target})
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "aotc_add_library(${target}): name SOURCES.")
  endif()
  if(ARG_SHARED AND ARG_STATIC)
    message(FATAL_ERROR "aotc_add_library(${target}): SHARED or STATIC, not both.")
  endif()
  if(NOT ARG_OUTPUT_DIRECTORY)
    set(ARG_OUTPUT_DIRECTORY "${target}.aotc")
  endif()
  get_filename_component(package "${ARG_OUTPUT_DIRECTORY}" ABSOLUTE
    BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  # Folders that a target includes must be there.
  file(MAKE_DIRECTORY "${package}/include")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.aotc")
  file(MAKE_DIRECTORY "${folder}")

  set(outputs "")
  set(links "")
  foreach(file IN LISTS ARG_SOURCES)
    _aotc_source("${file}")
    set(name "${ARG_PREFIX}${stem}")
    if(ARG_STATIC)
      set(library "${package}/lib/lib${name}.a")
      _aotc_command(build static)
    else()
      set(library "${package}/lib/lib${name}.so")
      _aotc_command(build shared)
    endif()
    set(header "${package}/include/${name}.h")
    add_custom_command(
      OUTPUT "${library}" "${header}"
      BYPRODUCTS
        "${package}/${name}.json"
        "${package}/lib/pkgconfig/${name}.pc"
        "${package}/lib/cmake/${name}/${name}Config.cmake"
        "${package}/lib/cmake/${name}/${name}ConfigVersion.cmake"
      COMMAND ${build_command} -o "${package}/"
        -MD -MF "${folder}/${stem}.d" -MQ "${library}"
      DEPENDS "${source}" "${build_arguments}"
      DEPFILE "${folder}/${stem}.d"
      COMMENT "Building ${name} from ${file}"
      VERBATIM)
    list(APPEND outputs "${library}" "${header}")

    # Of its own, so that programs get the folder of a shared one as their RPATH.
    set(imported "${target}_${name}")
    if(ARG_STATIC)
      add_library(${imported} STATIC IMPORTED GLOBAL)
      set_target_properties(${imported} PROPERTIES
        IMPORTED_LINK_INTERFACE_LANGUAGES C
        INTERFACE_LINK_LIBRARIES "pthread;${CMAKE_DL_LIBS};m")
    else()
      add_library(${imported} SHARED IMPORTED GLOBAL)
      set_target_properties(${imported} PROPERTIES IMPORTED_SONAME "lib${name}.so")
    endif()
    set_target_properties(${imported} PROPERTIES
      IMPORTED_LOCATION "${library}"
      INTERFACE_INCLUDE_DIRECTORIES "${package}/include")
    list(APPEND links ${imported})
  endforeach()

  add_custom_target(${target}_build DEPENDS ${outputs})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_build)
  target_link_libraries(${target} INTERFACE ${links})
  set_target_properties(${target} PROPERTIES AOTC_PACKAGE "${package}")
endfunction()

function(aotc_add_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SOURCE;OUTPUT_NAME" "CHIPS;OPTIONS")
  _aotc_check(aotc_add_executable ${target})
  if(NOT ARG_SOURCE)
    message(FATAL_ERROR "aotc_add_executable(${target}): name a SOURCE.")
  endif()
  if(NOT ARG_OUTPUT_NAME)
    set(ARG_OUTPUT_NAME ${target})
  endif()
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${ARG_OUTPUT_NAME}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.aotc")
  file(MAKE_DIRECTORY "${folder}")
  _aotc_source("${ARG_SOURCE}")
  _aotc_command(build exe)
  # A custom target cannot depend on the file itself: CMake takes that for the imported target.
  add_custom_command(
    OUTPUT "${program}" "${folder}/built"
    COMMAND ${build_command} -o "${program}" -MD -MF "${folder}/${stem}.d" -MQ "${program}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${folder}/built"
    DEPENDS "${source}" "${build_arguments}"
    DEPFILE "${folder}/${stem}.d"
    COMMENT "Building ${ARG_OUTPUT_NAME} from ${ARG_SOURCE}"
    VERBATIM)
  add_custom_target(${target}_build ALL DEPENDS "${folder}/built")
  add_executable(${target} IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${program}")
  add_dependencies(${target} ${target}_build)
endfunction()
