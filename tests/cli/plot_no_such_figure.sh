fragsim plot r.h5 pie -o c.svg
