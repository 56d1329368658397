fragsim replay small.csv --address-rule kind
