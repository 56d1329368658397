fragsim gen tilling -o t.h5
