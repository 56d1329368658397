fragsim replay
