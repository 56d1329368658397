# browser.cmake - links the tool as a module for a Web Worker, and makes of it one
# page, fragsim.html, which loads nothing.
set(browser ${PROJECT_SOURCE_DIR}/sim/browser)
target_sources(fragsim PRIVATE ${browser}/without_hdf5.c ${browser}/browser_child.c
    ${browser}/system_calls.c)
target_include_directories(frag_flags BEFORE INTERFACE ${browser}/libc)
target_link_options(fragsim PRIVATE
    -lworkerfs.js
    -sMODULARIZE=1 -sEXPORT_NAME=fragsim -sENVIRONMENT=worker
    -sFORCE_FILESYSTEM=1 -sEXIT_RUNTIME=1 -sDYNAMIC_EXECUTION=0
    -sEXPORTED_RUNTIME_METHODS=FS,ENV,WORKERFS
    -sINITIAL_MEMORY=64MB -sTOTAL_STACK=8MB
    -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB)
add_custom_command(OUTPUT fragsim.html
    COMMAND ${CMAKE_COMMAND} -E env python3 ${browser}/assemble.py
            $<TARGET_FILE:fragsim> ${PROJECT_BINARY_DIR}/fragsim.html
    DEPENDS fragsim ${browser}/assemble.py ${browser}/browser.html ${browser}/browser.js
            ${browser}/worker.js
            ${PROJECT_SOURCE_DIR}/sim/cli/texts/page.css
    VERBATIM)
add_custom_target(page DEPENDS fragsim.html)
