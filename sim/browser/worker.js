// worker.js - runs one command of the tool: an instance of the module with a file
// system of its own, in which the dropped files are. Nothing is sent anywhere.
"use strict";

const HOME = "/home/web_user";
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
// streams go to files, so that they are no terminals and no byte is lost. Returns its
// exit code and its file system.
function start(state) {
    let code = null, FS = null;
    const options = {
        arguments: state.words,
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
            [[1, "/stdout"], [2, "/stderr"]].forEach(([fd, path]) => {
                FS.close(FS.getStream(fd));
                FS.open(path, "a");
            });
            Object.assign(module.ENV, { NO_COLOR: "1", CI: "1", TZ: "UTC" });
            FS.chdir(HOME);
        }],
        onExit(status) { code = status; },
        quit(status, thrown) { throw thrown; },
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

function command(state) {
    const { code, FS } = start(state);
    const dropped = new Set([".", "..", ...state.files.map(file => file.name)]);
    const outputs = FS.readdir(HOME).filter(name => !dropped.has(name));
    return {
        code,
        stdout: FS.readFile("/stdout"),
        stderr: FS.readFile("/stderr"),
        outputs: outputs.map(name => ({ name, bytes: FS.readFile(HOME + "/" + name) })),
    };
}

onmessage = event => {
    try {
        postMessage(command(event.data));
    } catch (thrown) {
        postMessage({ failed: String(thrown && thrown.stack || thrown) });
    }
};
