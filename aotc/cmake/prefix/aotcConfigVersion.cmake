execute_process(
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/../../../bin/aotc" --cmake-dir
  OUTPUT_VARIABLE _aotc_folder OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _aotc_result)
if(_aotc_result EQUAL 0)
  include("${_aotc_folder}/aotcConfigVersion.cmake")
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
unset(_aotc_folder)
unset(_aotc_result)
