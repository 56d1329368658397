# SIGTERM while stdin gives nothing, then while it gives events without end.
mkfifo pipe
fragsim replay - -p direct -o r.h5 --json r.json <pipe &
exec 3>pipe
echo 'op,id,bytes,stream' >&3
sleep 1
kill -TERM $!
wait $!
echo $?
exec 3>&-
awk 'BEGIN { print "op,id,bytes,stream"; for (;;) print "alloc,1,512,0\nfree,1,0,0" }' >pipe 2>/dev/null &
fragsim info - --json i.json <pipe &
sleep 1
kill -TERM $!
wait $!
echo $?
rm pipe
ls
