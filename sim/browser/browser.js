// browser.js - the page: takes files, runs command lines in worker.js, and shows what
// they print and write.
"use strict";

// The buttons: each writes its command line, which the user can change, and runs it
// if there is a file.
const VERBS = [
    ["validate", "FILE", "Does the simulated allocator repeat the recording?"],
    ["explain", "FILE", "Why did the job die?"],
    ["fit", "FILE -p torch -p torch:expandable_segments:True", "How much memory does it need?"],
    ["tune", "FILE", "Which setting does it need?"],
    ["triage", "FILE -o review.html", "All answers on one page"],
];

const $ = id => document.getElementById(id);
let files = [];
let worker = null;

/* ---- the module ---- */

async function compile() {
    const text = $("wasm").textContent;
    const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    const unpacked = new Blob([packed]).stream()
        .pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(unpacked).arrayBuffer());
}

const ready = compile();
const script = URL.createObjectURL(
    new Blob([$("worker").textContent], { type: "text/javascript" }));

// Runs the words of a command in a worker of its own, whose memory is given back at
// its end; resolves to its exit code, what it printed, and the files that it wrote.
async function run(words) {
    worker = new Worker(script);
    try {
        const wasm = await ready;
        return await new Promise((resolve, reject) => {
            worker.onmessage = ({ data }) =>
                data.failed ? reject(new Error(data.failed)) : resolve(data);
            worker.onerror = event => reject(new Error(event.message));
            worker.stop = () => reject(new Error("stopped"));
            worker.postMessage({ wasm, files, words });
        });
    } finally {
        worker.terminate();
        worker = null;
    }
}

/* ---- command lines ---- */

// Splits a line as a shell does: blanks separate words, quotes and backslashes
// protect them.
function split(line) {
    const words = [];
    const pattern = /(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^\s"'\\]))|(\s+)/g;
    let word = null;
    for (const [, double, single, escaped, plain, blank] of line.matchAll(pattern)) {
        if (blank !== undefined) {
            if (word !== null) words.push(word);
            word = null;
        } else {
            word = (word || "") + (double !== undefined
                ? double.replace(/\\(["\\$`])/g, "$1") : single ?? escaped ?? plain);
        }
    }
    if (word !== null) words.push(word);
    return words[0] === "fragsim" ? words.slice(1) : words;
}

function quote(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

function write(verb, rest) {
    const name = files.length ? quote(files[0].name) : "FILE";
    $("line").value = "fragsim " + verb + " " + rest.replace("FILE", () => name);
}

/* ---- what is shown ---- */

function show(result) {
    const text = bytes => new TextDecoder().decode(bytes);
    $("stdout").textContent = text(result.stdout);
    $("stderr").textContent = text(result.stderr);
    for (const { name, bytes } of result.outputs) {
        const link = document.createElement("a");
        link.textContent = name;
        link.download = name;
        link.href = URL.createObjectURL(new Blob([bytes]));
        $("outputs").append(link, " ");
        if (name.endsWith(".html")) {
            const frame = document.createElement("iframe");
            frame.sandbox = "allow-scripts";
            frame.srcdoc = text(bytes);
            $("outputs").append(frame);
        }
    }
    $("status").textContent = "exit code " + result.code;
}

function clear() {
    for (const id of ["stdout", "stderr", "outputs", "status"]) {
        $(id).textContent = "";
    }
}

async function start(line) {
    const began = performance.now();
    const clock = setInterval(() => {
        $("status").textContent =
            "running, " + Math.round((performance.now() - began) / 1000) + " s";
    }, 500);
    clear();
    $("run").disabled = true;
    $("stop").disabled = false;
    $("status").textContent = "running";
    let result = {};
    try {
        result = await run(split(line));
        clearInterval(clock);
        show(result);
        $("status").textContent +=
            ", " + ((performance.now() - began) / 1000).toFixed(1) + " s";
    } catch (error) {
        clearInterval(clock);
        $("status").textContent = "";
        $("stderr").textContent = error.message === "stopped" ? "stopped"
            : "The command ended without an answer, for want of memory " +
              "(a page has 4 GiB) or by a defect of fragsim: " + error.message;
    }
    $("run").disabled = false;
    $("stop").disabled = true;
    return result;
}

/* ---- what the user does ---- */

function take(list) {
    files = [...list];
    $("names").textContent = files.map(file => file.name).join(", ");
    write(...VERBS[1]);
}

for (const [verb, rest, title] of VERBS) {
    const button = document.createElement("button");
    button.textContent = verb;
    button.title = title;
    button.onclick = () => {
        write(verb, rest);
        if (files.length && !worker) start($("line").value);
    };
    $("verbs").append(button);
}
$("files").onchange = event => take(event.target.files);
for (const name of ["dragover", "dragleave", "drop"]) {
    addEventListener(name, event => {
        event.preventDefault();
        $("drop").className = name === "dragover" ? "over" : "";
        if (name === "drop" && event.dataTransfer.files.length) {
            take(event.dataTransfer.files);
        }
    });
}
$("form").onsubmit = event => {
    event.preventDefault();
    if (!worker) start($("line").value);
};
$("stop").onclick = () => worker?.stop?.();
write(...VERBS[1]);
