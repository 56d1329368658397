# The layout of JSON: commas, lines, spaces and ends, with one row and several.
shown() {
    sed -E 's/"(tool|command)": "[^"]*"/"\1": .../
        s/"(path|sha256)": "[^"]*"/"\1": .../g' | cut -c1-70
}
fragsim info small.csv -q --json - | shown
fragsim info small.csv small.csv -q --json - | shown
fragsim fit small.csv -q -p direct --json - | shown
fragsim fit small.csv -q -p direct -p bfc --frontier f --json - | shown
fragsim replay small.csv -q -p direct -p bfc --json - | shown
fragsim policies first_fit --json - | cut -c1-34
fragsim policies bfc --json - | cut -c1-34
