# A pipe is written to, not replaced by a file.
mkfifo pipe
fragsim export small.csv -q -f -o pipe &
sed -n 1,2p pipe
wait $!
echo $?
test -p pipe && ls
