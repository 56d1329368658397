# The example of the manual: rules that a recording breaks. Then rules that
# hold, and every way of wrong use.
bundled=$(dirname "$0")/../../traces/bundled
ln -s "$bundled"/*.pickle.xz .
cat >nightly.rules <<RULES
# The job must fit beside the other one.
capacity 5.05GiB
ooms <= 0
fragmentation <= 25%
steps >= 5
RULES
fragsim check lstm_varlen__cap_below.pickle.xz --rules nightly.rules
echo $?
fragsim check -q multistream.pickle.xz leak_frames.pickle.xz -r nightly.rules
echo $?
fragsim check -q lstm_varlen__cap_below.pickle.xz -r nightly.rules \
    --json - | sed '2,3d'
echo $?
fragsim check small.csv
echo $?
fragsim check small.csv -r nightly.rules -c 64MiB
echo $?
fragsim check small.csv -r missing.rules
echo $?
echo 'peak_reservd <= 1GiB' >wrong.rules
fragsim check small.csv -r wrong.rules
echo $?
# A job that died fails by any rules but those that allow a death.
echo 'peak_reserved <= 200GiB' >any.rules
fragsim check -q lstm_varlen__cap_below.pickle.xz -r any.rules
echo $?
echo 'deaths <= 1' >>any.rules
fragsim check -q lstm_varlen__cap_below.pickle.xz -r any.rules
echo $?
