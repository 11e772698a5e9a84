"""What runs inside the container, and the contract between it and the outside.

The container is used once. Its first process, the supervisor S (`supervisor.py`), speaks
frames (see `wire.py`) over standard input and output, and nobody else in the container holds
those descriptors. The outside sends a heartbeat several times a second; S ends the container
when the stream ends, when heartbeats stop, or when its life is over.

S -> outside, once:
    {"say": "ready", "python", "facts": {...}}          what S sees of its own limits
outside -> S, one job; its last order carries the nonce that the answer has to carry:
    {"do": "probe", "nonce", "modules": [name]}         which of these can be imported?
        -> {"say": "probe", "nonce", "missing": [name]}
    {"do": "judge", "split", "watch", "files", "module", "target", "limits"}   the candidate
    {"do": "tests", "nonce", "files", "tests"}                        then what it is judged by
        -> {"say": "verdict", "nonce", "import": problem or null, "results": [result, ...]}
    {"do": "pytest", "nonce", "files", "paths", "roots", "script", "limits"}  a user's test files
        -> {"say": "verdict", "nonce", "import": null, "results": [result, ...]}

    {"do": "project", "nonce", "tree", "pack", "runner", "arguments", "roots", "tests", "first",
     "rest", "trace", "hung", "limits"}                               a whole project's tests
        -> {"say": "ran", "nonce", "passed": [name], "results": [result, ...], "functions",
            "evidence", "missing", "trouble"}

    {"do": "values", "nonce", "files", "module", "target", "source", "limits"}
        -> {"say": "values", "nonce", "text", "problem", "seconds"}

    {"do": "rust", "split", "files", "module", "edition", "limits"}   a candidate in Rust
    {"do": "tests", "nonce", "tests", "library", "names"}             then what it is judged by
        -> {"say": "verdict", "nonce", "import": problem or null, "results": [result, ...]}
    {"do": "rust-tests", "nonce", "check", "files", "module", "edition", "tests", "limits"}
        -> {"say": "built", "nonce", "library", "names", "dropped", "problem"}

`files` maps a path below the working folder to base64 text. `target` is {"name", "is_async"}.
`split` says whether any test is in split mode. `limits` is {"test_seconds", "total_seconds",
"output_bytes"}; the import has `test_seconds` too, and is part of `total_seconds`. A problem is
{"status", "message", "frames"}.

A test is {"name", "source", "entry", "fixtures", "mode", "may_fall_back", "target", "control"}:
Python source that is run in the module's namespace; where `entry` names a function or a
unittest method, that is called afterwards with the fixtures (`tmp_path`, `capsys`). `mode` is
"split" (candidate and test in two processes, plain values between them) or "in-process".
`control` marks the test that must fail.

A project's `tree` is [[path, mode as git writes it, size], ...] and `pack` the base64 text of the
zlib-compressed bytes of all its files, one after the other; of a link they are where it leads.
`runner` is pytest, unittest or script, `arguments` what it is called with, `roots` are folders on
the import path, and `tests` the files that hold tests. Tests that `first` names (a test, or a file
with all that is in it) are run before the others, and alone where `rest` is false. Tests in `hung`
have the shorter limit `hung_seconds`. With `trace`, `functions` tells [function, numbers of the
results whose tests ran it, how many passing tests did] of every function that a test among the
results ran, and `evidence` maps a failing test to the calls that led to its failure, the outermost
first: the functions that its exception passed; where that passed none, those through which the
value came that the test judged; where it did not end, those that were open at every look. A
function is "path:first line:dotted name". `missing` maps a test to the module that it did not
find; `trouble` says why the runner could not do its part, or "". The files are on disk, below
/tmp/work, and one process runs all tests until one has to be ended.

A result is {"name", "status", "mode", "seconds", "expected", "actual", "compared", "message",
"frames", "printed", "unstable"}; status is one of passed, failed, error, timeout, memory,
output, no-verdict, and for a user's tests skipped. `compared` is true when the test ended in
the comparison of two values that is shown. `unstable` is true when a second run on the same
candidate said otherwise; where the order has `watch`, a third run tells in `values` where the
call ended and with which values, in the candidate's own words, which judge nothing. `lost` is
true where a test was not run because an earlier one brought down the process that answers to
all: the outside runs it again in another container. Texts are cut (see `results.py`) so that no
verdict is too large for the outside.

"values" judges nothing: it loads a reference solution, runs `source` where its names are known,
and gives the text that this leaves in `__reflexfix_text__`, to be kept outside as opaque text.

Rust (`rust.py`, `wire.rs`). A crate is the user's file, which ends with a `mod` line, and
`reflexfix_module.rs`, which that line names; `module` is the file that the compiler is given, the
user's or the root of the crate that it comes with. A target inside of another function is copied,
with what stands beside it, into `reflexfix_copies.rs`, and the `mod` line is there. "probe" asks
for crates, which an image has where `crates.py` built them. In the candidate's crate that answers
calls of the target; in the tests' crate, whose target is a typed stub, and where one crate holds
both, it is written inside from `tests` (each {"name", "source", "mode", "control"}: the body of a
function). "rust-tests" compiles the tests in a container that no candidate enters: `library` is
base64, to be kept outside as opaque bytes and handed to the containers of all attempts; `names`
are the tests in it; `dropped` maps those that do not compile to what the compiler says; `errors`
are those that lie in no test, each [text, file, line]; with `check` only types are checked.
`limits` has "compile_seconds" too. A problem's status may be compile-error, compile-timeout or
memory, its message the first errors in the user's own lines. Where `split` is false the order
"tests" has no library: candidate and tests are compiled as one crate then. The candidate's library
is loaded in C before the order "tests" is read; that of the tests has no name in the file system,
and is loaded in T alone. A test counts as passed when the library holds as many tests as `names`
says, T has said so, and T has ended with status 0.

How the split is kept: S makes itself non-dumpable before anything else, so no other process
of the container can open its descriptors or memory; nor those of any other process that it
forks. The candidate is imported in a process C that is forked before S has read the tests and
the nonce. The user's file, with the target's body replaced by a call over a socket pair, is
loaded in a second process that is forked after that. Each test gets a fork of C and a fork T of
the second one, which keeps no other test, runs its own, and says the verdict on a pipe that C
does not have. T imports nothing from where C can write. After each test every process but S and
these two is killed, and what can be written to (/tmp, /dev/mqueue) is emptied.

Nothing that C or T says can end S: frames are bounded, and what is odd in them makes that one
test `no-verdict`. What is not held: a candidate may lower its own score for the kernel's choice
when memory runs out, so one that fills the memory with processes smaller than S can bring S
down; that is trouble for the outside, never a verdict.
"""
