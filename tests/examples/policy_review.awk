# policy_review.awk: writes the preface of policy_review.sh (a page with the answer
# and a row for each job, then the first part of its appendix) or the end of its
# appendix (method and limits) as HTML, from the outputs of fragsim. It computes no memory or time of its own, only counts and ratios.
# Variable: part, preface or appendix.

# The cells of a row of CSV in cell[1..]; a quoted cell may contain commas.
function split_row(row, cell,    n, text) {
    for (n = 1; row != ""; n++) {
        if (row ~ /^"/) {
            match(row, /^"([^"]|"")*"/)
            text = substr(row, 2, RLENGTH - 2)
            gsub(/""/, "\"", text)
            row = substr(row, RLENGTH + 2)
        } else {
            match(row, /^[^,]*/)
            text = substr(row, 1, RLENGTH)
            row = substr(row, RLENGTH + 2)
        }
        cell[n] = text
    }
}

# The number in a column of the present row.
function number(name) {
    if (!(name in column))
        die("a table of fragsim has no column " name)
    return cell[column[name]] + 0
}

function html(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

function mib(bytes) { return sprintf("%.0f MiB", bytes / 1048576) }
function percent(ratio) { return sprintf("%+.1f %%", 100 * (ratio - 1)) }
function change(new, old) { return sprintf("%+.0f MiB", (new - old) / 1048576) }
function plural(n, word) { return n " " word (n == 1 ? "" : "s") }
function add(list, text) { return list (list == "" ? "" : ", ") text }
function die(text) { print "policy_review: " text >"/dev/stderr"; exit failed = 3 }

# A row of a table; cells are separated by |. The first one is a text, and one
# that begins with ~ is a text that may take several lines, so that the table is
# as wide as its page at most.
function row(kind, text,    cell, n, i, side) {
    n = split(text, cell, "|")
    printf "<tr>"
    for (i = 1; i <= n; i++) {
        side = i == 1 ? " class=\"l\"" : \
            sub(/^~/, "", cell[i]) ? " class=\"l w\"" : ""
        printf "<%s%s>%s</%s>", kind, side, cell[i], kind
    }
    print "</tr>"
}

function table_begins(head) {
    print "<div class=\"wide\"><table><thead>"
    row("th", head)
    print "</thead><tbody>"
}

function table_ends() { print "</tbody></table></div>" }

FNR == 1 { file++; delete column }

# info.json: the recorded seconds of each trace and device.
file == 1 && match($0, /"sha256": "[0-9a-f]*"/) {
    sha = substr($0, RSTART + 11, RLENGTH - 12)
}
file == 1 && match($0, /"device": [0-9]+/) {
    device = substr($0, RSTART + 10, RLENGTH - 10)
    if (match($0, /"duration_seconds": [0-9.e+-]+/))
        recorded[sha, device] = substr($0, RSTART + 20, RLENGTH - 20) + 0
}

# runs.csv and recorded.csv: one row for each run.
file == 2 || file == 3 {
    split_row($0, cell)
    if (FNR == 1) {
        for (i in cell)
            column[cell[i]] = i
        next
    }
    job = cell[column["trace"]]
    if (cell[column["device"]] != 0)
        job = job ", device " cell[column["device"]]
    side = cell[column["policy"]] == "torch" ? "default" : "switch"
}

file == 2 {
    key = cell[column["trace_sha256"]] SUBSEP cell[column["device"]]
    if (!(job in seconds)) {
        jobs[++job_count] = job
        keys[job] = key
        seconds[job] = recorded[key]
        all_seconds += recorded[key]
    } else if (keys[job] != key)
        die("two traces have the name " job)
    if (cell[column["capacity_bytes"]] != "") {
        capacities[job, side, ++limited[job, side]] = number("capacity_bytes")
        ooms[job, side, limited[job, side]] = number("num_ooms")
        next
    }
    bound[job] = number("lower_bound_bytes")
    requested[job] = number("peak_requested_bytes")
    peak[job, side] = number("peak_reserved_bytes")
    need[job, side] = number("need_bytes")
    if (!need[job, side])
        die(job " fits no device")
}

file == 3 {
    calls[job, side] = number("num_segment_alloc") + \
        number("num_segment_free") + number("num_map") + number("num_unmap")
    time[job, side] = number("modelled_device_seconds")
    all_calls[side] += calls[job, side]
    all_time[side] += time[job, side]
}

file == 4 { tune[++tune_count] = $0 }
file == 5 && (/^    / || /cannot be used/) {
    sub(/^ +/, "")
    conf = conf (conf == "" ? "" : "; ") $0
}
file == 6 && /: exact$/ { exact++ }
file == 6 && /, device [0-9]+: / { judged++ }

# Counts the limited runs: capacities in the order of the sweep.
function count_deaths(    i, k, j, ratio, dies, lives) {
    for (i = 1; i <= job_count; i++) {
        j = jobs[i]
        for (k = 1; k <= limited[j, "default"]; k++) {
            ratio = sprintf("%.2f", capacities[j, "default", k] / requested[j])
            if (!(ratio in possible)) {
                ratios[++ratio_count] = ratio
                possible[ratio] = 0
            }
            if (capacities[j, "default", k] < bound[j])
                continue
            possible[ratio]++
            possible_all++
            dies = ooms[j, "default", k] > 0
            lives = ooms[j, "switch", k] == 0
            deaths[ratio, "default"] += dies
            deaths[ratio, "switch"] += !lives
            if (dies)
                dead[j, "default"] = add(dead[j, "default"], ratio "x")
            if (!lives)
                dead[j, "switch"] = add(dead[j, "switch"], ratio "x")
            deaths_all["default"] += dies
            deaths_all["switch"] += !lives
            if (dies && lives) {
                gained++
                gains[ratio] = add(gains[ratio], html(j))
            } else if (!dies && !lives) {
                lost++
                losses[ratio] = add(losses[ratio], html(j))
            }
        }
    }
}

# Compares the needs, and the peaks on an unlimited device. The need with
# expandable segments is found in steps of 2 MiB, so less is no difference.
function compare_needs(    i, j, by) {
    for (i = 1; i <= job_count; i++) {
        j = jobs[i]
        need_log += log(need[j, "switch"] / need[j, "default"])
        peak_log += log(peak[j, "switch"] / peak[j, "default"])
        by = need[j, "switch"] - need[j, "default"]
        if (by >= 2097152) {
            worse_count++
            worse = add(worse, "<code>" html(j) "</code> (" \
                change(need[j, "switch"], need[j, "default"]) ", " \
                percent(need[j, "switch"] / need[j, "default"]) ")")
        } else if (by <= -2097152)
            better_count++
        if (peak[j, "switch"] > peak[j, "default"])
            higher = add(higher, "<code>" html(j) "</code>")
        if (seconds[j] > 0 && share(j) > share_most) {
            share_most = share(j)
            share_job = j
        }
    }
}

# Driver seconds that the switch adds, as a share of the recorded ones.
function share(j) {
    return (time[j, "switch"] - time[j, "default"]) / seconds[j]
}

# The answer by the rule that the appendix states.
function answer() {
    if (gained + 0 <= lost + 0 && need_log >= 0)
        return "No."
    if (all_seconds > 0 && all_time["switch"] - all_time["default"] > \
        0.01 * all_seconds)
        return "Only if its driver calls are affordable."
    if (gained + 0 <= lost + 0 || need_log >= 0)
        return "Not for all jobs alike."
    return worse_count + lost > 0 ? "Yes, with a way back for some jobs." : "Yes."
}

function say_answer(    extra) {
    extra = all_time["switch"] - all_time["default"]
    printf "<p class=\"verdict\"><b>%s</b> ", answer()
    printf "Of %d runs of %s on devices that the job itself fits in, " \
        "%d die with PyTorch's default and %d with expandable segments: " \
        "the switch rescues %d and loses %d.</p>\n", possible_all,
        plural(job_count, "recording"), deaths_all["default"],
        deaths_all["switch"], gained, lost
    printf "<ul>\n<li><b>Memory.</b> The device that a job needs, so that " \
        "no request fails with it or with more, changes by %s (geometric " \
        "mean), and is smaller for %d of %d recordings. On a device without " \
        "limit, peak reserved changes by %s.</li>\n", percent(exp(need_log / job_count)), better_count,
        job_count, percent(exp(peak_log / job_count))
    printf "<li><b>Price.</b> For the recorded requests, driver calls " \
        "change from %d to %d. They are modelled to take %.1f ms instead of %.1f ms", all_calls["default"],
        all_calls["switch"], 1000 * all_time["switch"],
        1000 * all_time["default"]
    if (all_seconds > 0)
        printf ", %+.2f %% of the %.1f s that were recorded", \
            100 * extra / all_seconds, all_seconds
    if (share_job != "")
        printf "; the most is %+.2f %%, for <code>%s</code>, of which %s were " \
            "recorded", 100 * share_most, html(share_job),
            seconds[share_job] < 0.1 ? \
                sprintf("%.1f ms", 1000 * seconds[share_job]) : \
                sprintf("%.1f s", seconds[share_job])
    printf ".</li>\n<li><b>Who gets worse.</b> "
    if (worse == "")
        print "No recording needs a larger device."
    else
        printf "%s a larger device: %s. Such a job keeps the default with " \
            "<code>PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False</code>.\n",
            plural(worse_count, "recording") \
                (worse_count == 1 ? " needs" : " need"), worse
    if (higher != "")
        printf "Without a limit, %s reserved more than with the default.\n",
            higher
    print "</li>\n<li><b>What a recording cannot tell.</b> Expandable segments " \
        "are not supported on Windows and WSL, by programs that share memory " \
        "between processes (CUDA IPC, custom all-reduce of inference " \
        "servers), and by some NCCL and RDMA registrations. A recording " \
        "does not show whether a job does this, nor what a MIG slice does. " \
        "Search for such jobs before the switch.</li>\n</ul>"
}

function table_of_capacities(    i, r) {
    print "<h2 class=\"page\">Appendix: who dies at which capacity</h2>\n<p>A run dies if the device " \
        "refuses a request. The capacity is a multiple of the peak that the " \
        "job requests. Recordings whose requests do not fit are not counted: " \
        "no allocator can serve them.</p>"
    table_begins("capacity|recordings|die with<br>the default|die with " \
        "expandable<br>segments|~rescued by the switch|~lost by the switch")
    for (i = 1; i <= ratio_count; i++) {
        r = ratios[i]
        row("td", r "x|" possible[r] "|" deaths[r, "default"] + 0 "|" \
            deaths[r, "switch"] + 0 "|~" (r in gains ? gains[r] : "&ndash;") \
            "|~" (r in losses ? losses[r] : "&ndash;"))
    }
    table_ends()
}

# Capacities at which a job dies.
function died(j, side) {
    return "~" ((j, side) in dead ? dead[j, side] : "&ndash;")
}

# One row for each job: all that the page says of it.
function table_of_jobs(    i, j) {
    print "<p>The need is the least capacity of a device from which on no " \
        "request fails. A job dies at a capacity, a multiple of the peak that " \
        "it requests, if the device refuses a request. Driver calls are those " \
        "of the recorded requests.</p>"
    table_begins("job|peak<br>requested|need:<br>default|" \
        "expandable<br>segments|change|~dies with<br>the default at|" \
        "~with expandable<br>segments at|driver<br>calls|added time,<br>of recorded")
    for (i = 1; i <= job_count; i++) {
        j = jobs[i]
        row("td", html(j) "|" mib(requested[j]) "|" mib(need[j, "default"]) \
            "|" mib(need[j, "switch"]) "|" \
            percent(need[j, "switch"] / need[j, "default"]) "|" \
            died(j, "default") "|" died(j, "switch") "|" \
            calls[j, "default"] " &rarr; " calls[j, "switch"] "|" \
            (seconds[j] > 0 ? sprintf("%+.2f %%", 100 * share(j)) : "&ndash;"))
    }
    table_ends()
}

# What `fragsim tune` found, without the notes on traces, which the page has.
function other_settings(    i) {
    print "<h2>Is there a better default?</h2>\n<p>Other settings on all " \
        "recordings at once (<code>fragsim tune -c inf</code>; no part was " \
        "held out, so the choice fits these recordings).</p>\n<pre>"
    for (i = 1; i <= tune_count; i++)
        if (tune[i] !~ /^# note on /)
            print html(tune[i])
    print "</pre>"
}

function appendix() {
    printf "<h2 class=\"page\">Method</h2>\n<p>Each recording is a snapshot " \
        "of PyTorch's allocator, with every request of the job. fragsim " \
        "replays the requests with PyTorch's own rules; with the settings " \
        "of the recording, the replay is exact on %d of %d devices of these " \
        "recordings (every segment, address and block; " \
        "<code>fragsim validate</code>). A job that died is completed: its " \
        "last step is finished, and steps like the recorded ones follow. " \
        "Driver time is modelled from measured calls of an H200.</p>\n",
        exact, judged
    print "<p>The rule of the answer: <b>No</b>, if the switch rescues no " \
        "more runs than it loses and the mean need is not smaller. <b>Only if its driver calls are affordable</b>, if they " \
        "add more than 1 % to the recorded time. <b>Not for all jobs " \
        "alike</b>, if only one of the two, runs and memory, improves. " \
        "Otherwise <b>Yes</b>; with a way back, if a run is lost or a " \
        "recording needs a device that is larger by 2 MiB or more.</p>"
    print "<h2>Limits</h2>\n<ul>"
    printf "<li><code>fragsim conf</code> says about the setting: %s</li>\n",
        html(conf)
    print "<li>CUDA IPC, NCCL and RDMA registrations, custom all-reduce, " \
        "Windows, WSL and MIG slices leave no mark in a recording, so no " \
        "count of this page covers them.</li>\n" \
        "<li>The requests are those of the recorded run. A program that " \
        "reads the free memory, catches an OOM or chooses its kernels by " \
        "their workspace would request something else.</li>\n" \
        "<li>The recordings are short. Expandable segments map most of " \
        "their memory in the first steps, so the share of driver calls in " \
        "a long job is smaller than here. Time that is not spent in driver " \
        "calls is not modelled.</li>\n" \
        "<li>A recording that begins late starts with the segments that " \
        "the job held then, whatever the policy.</li>\n" \
        "<li>The answer is about these recordings. They are not a sample " \
        "of any platform's jobs: run this review on recordings of your " \
        "own.</li>\n</ul>"
}

END {
    if (failed)
        exit failed
    if (!job_count)
        die("no recording was read")
    count_deaths()
    compare_needs()
    if (part == "appendix") {
        appendix()
        exit
    }
    print "<h1>Should a training platform switch its default to expandable " \
        "segments?</h1>"
    say_answer()
    table_of_jobs()
    table_of_capacities()
    other_settings()
}
