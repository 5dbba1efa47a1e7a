# In share/cmake/aotc, where CMake looks: the rest is in the Python package.
get_filename_component(_aotc_command "${CMAKE_CURRENT_LIST_DIR}/../../../bin/aotc" ABSOLUTE)
execute_process(
  COMMAND "${_aotc_command}" --cmake-dir
  OUTPUT_VARIABLE _aotc_folder OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _aotc_result)
if(_aotc_result EQUAL 0)
  set(AOTC_EXECUTABLE "${_aotc_command}" CACHE FILEPATH "The aotc command")
  include("${_aotc_folder}/aotcConfig.cmake")
else()
  set(aotc_FOUND FALSE)
  set(aotc_NOT_FOUND_MESSAGE "${_aotc_command} does not run: ${_aotc_result}")
endif()
unset(_aotc_command)
unset(_aotc_folder)
unset(_aotc_result)
