// worker.js - runs one command of the tool: an instance of the module with a file
// system of its own, in which the dropped files are. Nothing is sent anywhere.
"use strict";

const HOME = "/home/web_user";
const MISSING = 127; // CHILD_MISSING of sim/cli/child.h
const TOOL = "/bin/fragsim";
const DROPPED = "/dropped";
const PIECE = 8 << 20; // bytes

// Reads a dropped file in large pieces, because each read waits for another process
// of the browser. In place of WORKERFS's own function.
function read(stream, buffer, offset, length, position) {
    const end = stream.pieceFrom + (stream.piece ? stream.piece.length : 0);
    if (!stream.piece || position < stream.pieceFrom || position >= end) {
        const blob = stream.node.contents.slice(position, position + PIECE);
        stream.piece = new Uint8Array(new FileReaderSync().readAsArrayBuffer(blob));
        stream.pieceFrom = position;
    }
    const from = position - stream.pieceFrom;
    const part = stream.piece.subarray(from, from + length);
    buffer.set(part, offset);
    return part.length;
}

// Starts the tool with these words, in a folder that has the dropped files. Its
// streams go to the files of these names, so that they are no terminals and no byte
// is lost. Returns its exit code and its file system.
function start(state, words, stdout, stderr) {
    let code = null, FS = null;
    const options = {
        arguments: words,
        thisProgram: TOOL,
        instantiateWasm(imports, done) {
            const instance = new WebAssembly.Instance(state.wasm, imports);
            done(instance, state.wasm);
            return instance.exports;
        },
        preRun: [module => {
            FS = module.FS;
            FS.init(); // opens the streams
            FS.mkdir("/bin");
            FS.writeFile(TOOL, "");
            FS.symlink(TOOL, "/proc/self/exe");
            FS.mkdir(DROPPED);
            module.WORKERFS.stream_ops.read = read;
            FS.mount(module.WORKERFS, { files: state.files }, DROPPED);
            for (const { name } of state.files) {
                FS.symlink(DROPPED + "/" + name, HOME + "/" + name);
            }
            // A stream that is opened again takes the same number.
            [[1, stdout], [2, stderr]].forEach(([fd, path]) => {
                FS.close(FS.getStream(fd));
                FS.open(path, "a");
            });
            Object.assign(module.ENV, { NO_COLOR: "1", CI: "1", TZ: "UTC" });
            FS.chdir(HOME);
        }],
        onExit(status) { code = status; },
        quit(status, thrown) { throw thrown; },
        child: (parent, argv, output) => child(state, parent, argv, output),
    };
    try {
        fragsim(options).catch(() => {}); // main() has run when it returns
    } catch (thrown) {
        if (code === null) {
            throw thrown;
        }
    }
    return { code, FS };
}

// For browser_child.c. The k-th child has run in a worker of its own, whose memory is
// then given back, or it is asked for: its parent goes on with an empty answer, so as
// to ask for the others, and is run again when all are there.
function child(state, parent, argv, output) {
    if (argv[0] !== TOOL) {
        return MISSING;
    }
    const done = state.children[state.next++];
    if (!done) {
        state.asked.push(argv.slice(1));
    }
    parent.FS.writeFile(output, done ? done.stdout : "");
    return done ? done.code : 0;
}

function command(state) {
    const { code, FS } = start(state, state.words, "/stdout", state.stderr);
    if (state.asked.length) {
        return { asked: state.asked };
    }
    const dropped = new Set([".", "..", ...state.files.map(file => file.name)]);
    const outputs = FS.readdir(HOME).filter(name => !dropped.has(name));
    return {
        code,
        stdout: FS.readFile("/stdout"),
        stderr: FS.readFile(state.stderr),
        outputs: outputs.map(name => ({ name, bytes: FS.readFile(HOME + "/" + name) })),
    };
}

onmessage = event => {
    try {
        postMessage(command({ ...event.data, next: 0, asked: [] }));
    } catch (thrown) {
        postMessage({ failed: String(thrown && thrown.stack || thrown) });
    }
};
