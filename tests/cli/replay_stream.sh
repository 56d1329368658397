# A stream has the answer of the whole input; what needs all of it is refused.
fragsim export small.csv -q --repeat 3 | fragsim replay --stream - -q -p direct -p first_fit --csv - | cut -d, -f1,3,7-11
fragsim export small.csv -q | fragsim replay --stream - -p plan
