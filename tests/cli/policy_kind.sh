fragsim replay small.csv -p plan:online,rest=expandable -q --csv - | tail -1 | cut -d, -f3-7
fragsim replay small.csv -p plan:online -p plan_online -q --csv - | cut -d, -f3-6
fragsim replay small.csv -q -p plan:onlin
fragsim replay small.csv -q -p plan:online=1
