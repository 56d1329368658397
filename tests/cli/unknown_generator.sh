fragsim gen trainin -o t.h5
