cat >xla.py <<'END'
import re, sys
assignment, ranges = (open(path).read() for path in sys.argv[1:3])
live = {name: (int(begin), int(end)) for name, begin, end in
        re.findall(r'^    (\S+\}):(\d+)-(\d+)$', ranges, re.M)}
print('id,lower,upper,size')
for part in re.split(r'^allocation ', assignment, flags=re.M):
    if not re.match(r'\d+: size \d+, preallocated-temp', part):
        continue
    for name, size in re.findall(
            r'^ value: <\d+ (\S+) @\d+> \(size=(\d+),', part, re.M):
        begin, end = live[name if '{' in name else name + '{}']
        print(f'{name},{begin},{max(end, begin + 1)},{size}')
END
python3 xla.py MODULE-buffer-assignment.txt MODULE-live-range.txt >buffers.csv
