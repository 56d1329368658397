# Data after the trace is an error, not ignored; a torn file is named as one.
pickle() { printf '\200\2].'; }
{
    pickle
    pickle
} | fragsim info -
echo "$?"
{
    pickle
    cat small.csv
} | gzip -c >two.gz
fragsim info two.gz
echo "$?"
pickle | head -c 3 | fragsim info - || echo "$?"
printf '\200\2]q\0q\0q\0q\0' >torn.pickle
fragsim info torn.pickle
echo "$?"
gzip -c small.csv | head -c 40 >torn.gz
fragsim info torn.gz
echo "$?"
