fragsim report r.h5 -o review.txt
