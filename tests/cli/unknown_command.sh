fragsim replya small.csv
