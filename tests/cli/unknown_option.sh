fragsim replay small.csv --polizy torch
