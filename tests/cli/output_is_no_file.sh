# A device or a folder is never renamed over. A link stands for the device, so
# that a failure replaces the link.
ln -s /dev/full full
mkdir folder
fragsim replay small.csv -q -p direct -f -o folder
echo $?
fragsim replay small.csv -q -p direct -f -o full
echo $?
fragsim import small.csv -q -f -o full
echo $?
test -c full && ls
