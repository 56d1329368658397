# programs.cmake: stops with the packages to install if a program that the paper is made
# with is absent. The target `paper` runs it at each build, so that nothing has to be
# configured again after an installation.
foreach(program python3 gnuplot latexmk pdflatex)
    find_program(found_${program} ${program})
    if(NOT found_${program})
        message(FATAL_ERROR "The paper needs python3, gnuplot, latexmk and pdflatex; "
            "there is no ${program}. On Debian:\n"
            "  apt install python3 gnuplot-nox latexmk lmodern texlive-latex-extra "
            "texlive-fonts-recommended texlive-pictures")
    endif()
endforeach()
