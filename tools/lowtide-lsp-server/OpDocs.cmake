# cmake -DTBLGEN=… -DINCLUDES=… -DRECORDS=… -DOUTPUT=… -P OpDocs.cmake: what the records say of each op, as a C++ string.
set(text "")
separate_arguments(records UNIX_COMMAND "${RECORDS}")
separate_arguments(includes UNIX_COMMAND "${INCLUDES}")
foreach(record ${records})
  execute_process(COMMAND ${TBLGEN} -gen-op-doc ${includes} ${record} OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND text "${page}")
endforeach()
file(WRITE ${OUTPUT} "R\"markdown(${text})markdown\"\n")
