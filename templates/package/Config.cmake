# Made by aotc @VERSION@. All places are relative to this file: the folder may be moved.
#
#   @NAME@::@NAME@    the shared library, or the static one if there is no other
#   @NAME@::static    the static library

get_filename_component(_aotc_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(EXISTS "${_aotc_root}/lib/lib@NAME@.a" AND NOT TARGET @NAME@::static)
  find_package(Threads QUIET)
  add_library(@NAME@::static STATIC IMPORTED)
  set_target_properties(@NAME@::static PROPERTIES
    IMPORTED_LOCATION "${_aotc_root}/lib/lib@NAME@.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_INCLUDE_DIRECTORIES "${_aotc_root}/include"
    INTERFACE_LINK_LIBRARIES "@RUNTIME@${CMAKE_THREAD_LIBS_INIT};${CMAKE_DL_LIBS};m")
endif()

if(NOT TARGET @NAME@::@NAME@)
  if(EXISTS "${_aotc_root}/lib/lib@NAME@.so")
    add_library(@NAME@::@NAME@ SHARED IMPORTED)
    set_target_properties(@NAME@::@NAME@ PROPERTIES
      IMPORTED_LOCATION "${_aotc_root}/lib/lib@NAME@.so"
      IMPORTED_SONAME "lib@NAME@.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_aotc_root}/include")
  elseif(TARGET @NAME@::static)
    add_library(@NAME@::@NAME@ INTERFACE IMPORTED)
    set_target_properties(@NAME@::@NAME@ PROPERTIES INTERFACE_LINK_LIBRARIES @NAME@::static)
  else()
    set(@NAME@_FOUND FALSE)
    set(@NAME@_NOT_FOUND_MESSAGE "There is no library in ${_aotc_root}/lib.")
  endif()
endif()

unset(_aotc_root)
