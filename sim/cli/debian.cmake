# debian.cmake - the Debian package (cpack -G DEB): the tool, the library and its
# headers in one package. CMakeLists.txt includes this file; CPack runs it again when
# the files are in place, before they are packed. lintian has nothing to say but what
# the overrides below explain.
if(CPACK_TEMPORARY_INSTALL_DIRECTORY)
    set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
    set(doc ${share}/doc/fragsim)
    file(GLOB pages ${share}/man/man1/*.1)
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
    configure_file(${CPACK_RESOURCE_FILE_LICENSE} ${doc}/copyright COPYONLY)
    string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
    file(WRITE ${doc}/changelog "fragsim (${CPACK_PACKAGE_VERSION}) unstable; "
         "urgency=medium\n\n  * CHANGELOG.md of the source names the changes.\n\n"
         " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
    execute_process(COMMAND gzip -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE ${share}/lintian/overrides/fragsim [[
# One package holds the tool, the library and its headers.
fragsim: package-name-doesnt-match-sonames libfragsim0
fragsim: link-to-shared-library-in-wrong-package *
fragsim: pkg-config-unavailable-for-cross-compilation *
# CPack writes these scripts; the trigger does the same.
fragsim: maintscript-calls-ldconfig *
# Stand-ins for libraries of CUDA whose functions do nothing call nothing of libc.
fragsim: library-not-linked-against-libc *
]])
    file(CHMOD_RECURSE ${doc} ${share}/lintian FILE_PERMISSIONS OWNER_READ OWNER_WRITE
         GROUP_READ WORLD_READ DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE
         OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    return()
endif()

set(CPACK_GENERATOR DEB)
# What is not built yet, as after ./run demo, is built first: Ninja has no target
# `preinstall', which cpack would build.
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_COMMANDS
    "\"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\"")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_FILE})
# Whoever publishes a package names an address that is read.
set(FRAG_CONTACT "The fragsim authors <fragsim@fragsim.invalid>" CACHE STRING
    "The maintainer of the Debian package")
set(CPACK_PACKAGE_CONTACT ${FRAG_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION
    "fragsim replays recorded traces of GPU memory against policies of allocators
on a simulated device, without a GPU. It says whether another allocator, or
another setting of PyTorch's, would have fitted, why a request failed, and
what to export.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS python3) # for pytorch_record.py
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The stand-ins for CUDA's libraries use the one for the driver, which is beside them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/dry)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gnuplot-nox)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "slurm-client, parallel")
# Only libfragsim is for programs of others, so CPack does not list the libraries.
file(CONFIGURE OUTPUT debian/shlibs @ONLY
     CONTENT "libfragsim 0 fragsim (>= @PROJECT_VERSION@)\n")
file(CONFIGURE OUTPUT debian/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs
    ${PROJECT_BINARY_DIR}/debian/triggers)
include(CPack)
