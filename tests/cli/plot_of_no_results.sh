fragsim plot small.csv compare -o c.svg
