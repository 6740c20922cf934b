# How cuSync's own programs, examples and tests are compiled. Nothing here reaches a user's target.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CUSYNC_CCACHE ccache)
mark_as_advanced(CUSYNC_CCACHE)
if(CUSYNC_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CUSYNC_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CUSYNC_CCACHE})
endif()

add_library(cusync_program INTERFACE)
target_link_libraries(cusync_program INTERFACE cusync_headers)
if(TARGET cusync_sim)
  target_link_libraries(cusync_program INTERFACE cusync_sim)
endif()
# Off: -Wmissing-field-initializers, since a designated initializer leaves out fields on purpose, and
# -Wrestrict, since GCC 12 warns about every "literal" + std::string (GCC bug 105651).
target_compile_options(cusync_program INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Wno-restrict>)
if(CUSYNC_WERROR)
  target_compile_options(cusync_program INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(CUSYNC_STATIC)
  target_link_options(cusync_program INTERFACE -static-libstdc++ -static-libgcc)
endif()

# What `make sanitize` and `make cuda` build; programs and tests add themselves.
add_custom_target(host_side)
add_custom_target(cuda_side)
