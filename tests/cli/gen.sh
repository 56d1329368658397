# The same seed gives the same bytes, another one others.
fragsim gen training:steps=2,layers=2 -o a.h5 --seed 3
fragsim gen training:steps=2,layers=2 -o b.h5 --seed 3
fragsim gen training:steps=2,layers=2 -o c.h5 --seed 4
cmp a.h5 b.h5 && ! cmp -s a.h5 c.h5 && echo reproducible
fragsim replay a.h5 c.h5 -q -p direct --csv - | cut -d, -f1,7,8
fragsim gen stationary:allocs=10 -o a.h5 2>/dev/null || echo "kept a.h5: $?"
fragsim gen | head -3
