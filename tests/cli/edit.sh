fragsim edit small.csv -e 'drop:max=3MB' -e 'empty-cache:every=4;scale:factor=2,min=20MB' -o t.h5
fragsim export t.h5
fragsim info t.h5 | grep edit
fragsim edit small.csv -e slcie:events=1..2 -o u.h5
echo $?
fragsim edit small.csv -e slice:steps=1..2 -o u.h5
echo $?
fragsim edit small.csv -e scale:factor=2 -o t.h5
echo $?
