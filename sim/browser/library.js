// library.js - the functions of C that the page has, for emcc --js-library. The
// worker that starts an instance of the module gives it `child`.
mergeInto(LibraryManager.library, {
    browser_run: function (argv, output) {
        const words = [];
        for (let at = argv >>> 2; HEAPU32[at]; at++) {
            words.push(UTF8ToString(HEAPU32[at]));
        }
        return Module["child"](Module, words, output ? UTF8ToString(output) : null);
    },
});
