"""Rust programs that try to forge a verdict, use up a machine or break the compiler.

The only wrong answer to a forgery is `passed`; whatever a program does, the verdict names it,
and the next evaluation is clean.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reflexfix import assemble
from reflexfix.attempt import Limits, Suite, Verdict
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.containers.rust import RustSandbox, limits_for
from reflexfix.rust.task import RustTask, open_task

pytestmark = pytest.mark.container

STUB = """/// Give twice x.
pub fn double(x: i32) -> i32 {
    todo!()
}
"""
TESTS = """```rust
assert_eq!(double(2), 4);
assert_eq!(double(-3), -6);
```"""
LIMITS = Limits(test_seconds=2.0, total_seconds=8.0, compile_seconds=8.0)


@pytest.fixture(scope="module")
def sandbox(engine: Engine) -> Iterator[RustSandbox]:
    image = assemble.ready_image(engine, (), print, "rust")
    with RustSandbox(engine, image, limits_for(LIMITS)) as opened:
        yield opened


@pytest.fixture
def task(tmp_path: Path) -> RustTask:
    file = tmp_path / "double.rs"
    file.write_text(STUB)
    return open_task(file, None, False)


def suite_of(task: RustTask, mode: str = "split") -> Suite:
    cases, dropped = task.own_tests(TESTS, [])
    assert len(cases) == 2 and not dropped
    cases = [replace(case, mode=mode) for case in cases]
    control, value = task.control(cases)
    return Suite(cases=tuple(cases), control=control, control_value=value)


def judged(sandbox: RustSandbox, task: RustTask, file: str, mode: str = "split") -> Verdict:
    return sandbox.run(task.candidate(file.encode()), suite_of(task, mode))


def statuses(verdict: Verdict) -> list[str]:
    return [one.result.status for one in verdict.judged]


def body(code: str, above: str = "", below: str = "") -> str:
    return f"{above}\n/// Give twice x.\npub fn double(x: i32) -> i32 {{\n{code}\n}}\n{below}\n"


def test_a_right_answer_passes_and_the_control_holds(sandbox: RustSandbox, task: RustTask) -> None:
    verdict = judged(sandbox, task, body("x * 2"))
    assert statuses(verdict) == ["passed", "passed"]
    assert verdict.solved and verdict.control == "held"


FORGERIES = {
    "25 exits in the function": body("std::process::exit(0)"),
    "26 a panic hook that exits": body(
        'std::panic::set_hook(Box::new(|_| std::process::exit(0))); panic!("x")'
    ),
    "27 a thread that exits": body(
        "std::thread::spawn(|| std::process::exit(0)); "
        "std::thread::sleep(std::time::Duration::from_secs(9)); 0"
    ),
    "28 a shadowed assert_eq": body(
        "1",
        "macro_rules! assert_eq { ($($t:tt)*) => {} }\nmacro_rules! panic { ($($t:tt)*) => {} }",
    ),
    "30 a constructor that exits": body(
        "1",
        below='extern "C" fn early() { std::process::exit(0) }\n'
        '#[used] #[link_section = ".init_array"] static EARLY: extern "C" fn() = early;',
    ),
    "a constructor that exits at once": body(
        "1",
        below='unsafe extern "C" { fn _exit(code: i32) -> !; }\n'
        'extern "C" fn early() { unsafe { _exit(0) } }\n'
        '#[used] #[unsafe(link_section = ".init_array")] static EARLY: extern "C" fn() = early;',
    ),
    "31 no_main and a main of its own": "#![no_main]\n"
    + body("1", below='#[unsafe(no_mangle)] pub extern "C" fn main() -> i32 { 0 }'),
    "a tail that deletes what follows": body("1", below="#[cfg(any())]"),
    "a door of its own": body(
        "1",
        below='mod mine { #[unsafe(no_mangle)] pub extern "C" fn reflexfix_serve(_: i32) {} }',
    ),
    "a wire of its own": "mod reflexfix_wire { pub fn serve() {} }\n" + body("1"),
    "reads its own source": body("include_str!(file!()).len() as i32"),
    "a macro that swallows the module": body("1", below="macro_rules! m { () => {} }\nm! {"),
    "an open comment": body("1", below="/*"),
    "81 one brace too many": body("1", below="}"),
    "writes frames to every descriptor": body(
        """
    use std::io::Write;
    use std::os::fd::FromRawFd;
    for n in 3..64 {
        let mut f = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(n) });
        let _ = f.write_all(b"\\x00\\x00\\x00\\x12{\\"end\\":{\\"status\\":\\"passed\\"}}");
    }
    1"""
    ),
    "kills every process": body(
        """
    unsafe extern "C" { fn kill(pid: i32, signal: i32) -> i32; }
    unsafe { kill(-1, 9); kill(1, 9) }"""
    ),
    "answers a call before it comes": body(
        "1",
        below="""
extern "C" fn early() {
    use std::io::Write;
    use std::os::fd::FromRawFd;
    for n in 3..32 {
        let mut f = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(n) });
        let _ = f.write_all(&[5, 0, 0, 0, 0, 4, 0, 0, 0]);
    }
}
#[used] #[unsafe(link_section = ".init_array")] static EARLY: extern "C" fn() = early;""",
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_no_forgery_passes(what: str, sandbox: RustSandbox, task: RustTask) -> None:
    verdict = judged(sandbox, task, FORGERIES[what])
    assert "passed" not in statuses(verdict), verdict
    assert not verdict.solved


@pytest.mark.parametrize("code", ["std::process::exit(0)", "x * 3", "loop {}"])
def test_no_simple_forgery_passes_in_one_process(
    code: str, sandbox: RustSandbox, task: RustTask
) -> None:
    verdict = judged(sandbox, task, body(code), "in-process")
    assert "passed" not in statuses(verdict)
    assert [one.result.mode for one in verdict.judged] == ["in-process"] * 2


def test_an_answer_from_the_tests_source_is_caught_by_the_control_in_one_process(
    sandbox: RustSandbox, task: RustTask
) -> None:
    forging = body(
        "1", "macro_rules! early { () => {} }",
        """
mod mine {
    #[repr(C)] pub struct Report { data: *const u8, size: usize }
    unsafe extern "C" { fn _exit(code: i32) -> !; fn write(fd: i32, data: *const u8, n: usize); }
    extern "C" fn early() {
        let said = b"{\\"end\\":{\\"status\\":\\"passed\\",\\"message\\":\\"\\",\\"frames\\":[]}}";
        let size = (said.len() as u32).to_be_bytes();
        for fd in 3..32 { unsafe {
            write(fd, size.as_ptr(), 4);
            write(fd, said.as_ptr(), said.len());
        } }
        unsafe { _exit(0) }
    }
    #[used] #[unsafe(link_section = ".init_array")] static EARLY: extern "C" fn() = early;
}""",
    )  # fmt: skip
    verdict = judged(sandbox, task, forging, "in-process")
    assert verdict.control != "held"
    assert not verdict.solved or verdict.control == "forged"


# ---------------------------------------------------------------- what the other one may see


def test_the_candidate_cannot_open_the_tests_memory(sandbox: RustSandbox, task: RustTask) -> None:
    looking = body(
        """
    let mut opened = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().parse::<u32>().unwrap_or(0);
        if pid == 0 || pid == std::process::id() { continue; }
        for name in ["mem", "maps", "environ"] {
            opened += std::fs::File::open(format!("/proc/{pid}/{name}")).is_ok() as i32;
        }
        opened += std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok() as i32;
    }
    assert!(std::fs::read_dir("/proc").unwrap().count() > 4);
    x * 2 + opened"""
    )
    assert statuses(judged(sandbox, task, looking)) == ["passed", "passed"]


def test_the_candidate_is_the_one_that_the_kernel_kills_first(
    sandbox: RustSandbox, task: RustTask
) -> None:
    looking = body(
        'let score = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();\n'
        'if score.trim() == "1000" { x * 2 } else { 0 }'
    )
    assert statuses(judged(sandbox, task, looking)) == ["passed", "passed"]


def test_nothing_of_the_tests_lies_where_the_candidate_can_read(
    sandbox: RustSandbox, task: RustTask
) -> None:
    looking = body(
        'x * 2 + std::fs::read_dir("/tmp").unwrap().count() as i32 '
        '+ std::fs::read_dir("/dev/shm").map(|d| d.count() as i32).unwrap_or(0)'
    )
    assert statuses(judged(sandbox, task, looking)) == ["passed", "passed"]


def test_no_state_passes_from_one_test_to_the_next(sandbox: RustSandbox, task: RustTask) -> None:
    counting = body(
        "let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);\n"
        'std::fs::write(format!("/tmp/{x}"), "x").unwrap();\n'
        'let files = std::fs::read_dir("/tmp").unwrap().count() as i32 - 1;\n'
        "x * 2 + n + files",
        "static COUNT: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);",
    )
    assert statuses(judged(sandbox, task, counting)) == ["passed", "passed"]


# ---------------------------------------------------------------- ends of a call

ENDS = {
    "a panic": (body('panic!("no {x}")'), "error", "panicked: no 2"),
    "an overflow": (body("let y = i32::MAX - 2 + x.abs(); y + 9"), "error", "overflow"),
    "89 endless recursion": (
        body("fn f(n: u64) -> u64 { let a = [n; 99]; f(n + 1) + a[n as usize % 99] }\nf(0) as i32"),
        "error", "SIGSEGV",
    ),
    "90 a wild pointer": (body("unsafe { *(8 as *const i32) }"), "error", "SIGSEGV"),
    "an abort": (body("std::process::abort()"), "error", "SIGABRT"),
    "84 kills itself": (
        body('unsafe extern "C" { fn kill(p: i32, s: i32) -> i32; }\n'
             "unsafe { kill(std::process::id() as i32, 9) }"),
        "error", "SIGKILL",
    ),
    "34 endless loop": (body("loop { std::hint::black_box(x); }"), "timeout", "2 s"),
    "35 sleeps": (
        body("std::thread::sleep(std::time::Duration::from_secs(99)); x * 2"), "timeout", "2 s",
    ),
    "46 endless output": (body('loop { println!("{x:0900}"); }'), "output", "printed more"),
    "54 goes to the network": (
        body('std::net::TcpStream::connect("1.1.1.1:80").unwrap(); 1'), "error", "panicked",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS)
def test_each_end_of_a_call_has_its_name(what: str, sandbox: RustSandbox, task: RustTask) -> None:
    file, status, words = ENDS[what]
    verdict = judged(sandbox, task, file)
    assert verdict.judged[0].result.status == status, verdict
    assert words in verdict.judged[0].result.message
    assert judged(sandbox, task, body("x * 2")).solved


def test_using_up_the_memory_is_told_from_a_crash(engine: Engine, task: RustTask) -> None:
    small = replace(LIMITS, memory_mb=400, test_seconds=6.0, total_seconds=20.0)
    file = body("let mut all = vec![]; loop { all.push(vec![1u8; 1 << 24]); }")
    image = assemble.ready_image(engine, (), print, "rust")
    with RustSandbox(engine, image, limits_for(small)) as opened:
        assert statuses(judged(opened, task, file)) == ["memory", "memory"]


def test_a_lot_of_output_and_a_right_answer_is_passed(sandbox: RustSandbox, task: RustTask) -> None:
    file = body('println!("{}", "y".repeat(300_000)); eprintln!("\\u{1b}[31m"); x * 2')
    assert statuses(judged(sandbox, task, file)) == ["passed", "passed"]


def test_a_daemon_does_not_outlive_the_verdict(sandbox: RustSandbox, task: RustTask) -> None:
    file = body('let _ = std::process::Command::new("/usr/bin/sleep").arg("99").spawn(); x * 2')
    assert statuses(judged(sandbox, task, file)) == ["passed", "passed"]


# ---------------------------------------------------------------- the compiler's time

BOMBS = {
    "72 endless const": (
        body("const N: i32 = { let mut i = 0; while i < 10 { if i > 99 { i += 1 } } i };\nN"),
        {"compile-error", "compile-timeout"},
    ),
    "72 endless const, allowed": (
        "#![allow(long_running_const_eval)]\n"
        + body("const N: i32 = { let mut i = 0; while i < 10 { if i > 99 { i += 1 } } i };\nN"),
        {"compile-error", "compile-timeout"},
    ),
    "73 a macro that doubles": (
        '#![recursion_limit = "999999"]\n'
        + body("m!(x)", "macro_rules! m { ($($t:tt)*) => { m!($($t)* $($t)*) } }"),
        {"compile-error", "compile-timeout", "memory"},
    ),
    "74 a macro that grows": (
        '#![recursion_limit = "4294967295"]\n'
        + body("m!(x)", "macro_rules! m { ($($t:tt)*) => { m!($($t)* x) } }"),
        {"compile-error", "compile-timeout", "memory"},
    ),
    "75 nested parentheses": (
        body("(" * 60_000 + "x" + ")" * 60_000), {"compile-error"},
    ),
    "77 very many statements": (
        body("let mut y = x;\n" + "y = y.wrapping_add(1);\n" * 200_000 + "y"),
        {"compile-timeout", "memory", "compile-error"},
    ),
    "78 very many errors": (
        body("".join(f'let _a{n}: i32 = "a";\n' for n in range(20_000)) + "x"),
        {"compile-error", "compile-timeout"},
    ),
    "80 a crate from elsewhere": ("extern crate rand;\n" + body("x * 2"), {"compile-error"}),
    "80 unstable": ("#![feature(never_type)]\n" + body("x * 2"), {"compile-error"}),
}  # fmt: skip


@pytest.mark.parametrize("what", BOMBS)
def test_a_compile_bomb_ends_at_its_limit_and_leaves_nothing(
    what: str, sandbox: RustSandbox, task: RustTask, engine: Engine
) -> None:
    file, allowed = BOMBS[what]
    started = time.monotonic()
    verdict = judged(sandbox, task, file)
    assert time.monotonic() - started < LIMITS.compile_seconds + LIMITS.total_seconds + 10
    assert set(statuses(verdict)) <= allowed and verdict.problem
    assert len(verdict.problem) < 5000
    assert judged(sandbox, task, body("x * 2")).solved


def test_no_container_is_left(engine: Engine, task: RustTask) -> None:
    image = assemble.ready_image(engine, (), print, "rust")
    with RustSandbox(engine, image, limits_for(LIMITS)) as opened:
        assert judged(opened, task, body("x * 2")).solved
        pids = {containers.owner(os.getpid())}
        before = mine(engine, pids)
    assert len(mine(engine, pids)) < len(before)


def mine(engine: Engine, owners: set[str]) -> list[str]:
    listed = containers.listed(engine)
    return [one["Id"] for one in listed if one["Labels"]["reflexfix.owner"] in owners]
