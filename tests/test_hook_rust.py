"""`reflexfix hook` on Rust projects: `cargo test` in a container, and patches for what fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from endpoint import Answers, Endpoint, scripted, serving
from hookrepo import Repo

from reflexfix.containers import image as images
from reflexfix.containers.engine import Engine

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("cargo_image", "no_container_left")]

MANIFEST = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
LIB = """//! A little shop.

pub mod sums;

/// Adds tax to a price.
pub fn with_tax(cents: u64, percent: u64) -> u64 {
    cents + sums::share(cents, percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tax_is_added() {
        assert_eq!(with_tax(100, 19), 119);
    }

    #[test]
    #[ignore]
    fn it_takes_long() {}
}
"""
SUMS = """/// Gives so many percent of a sum.
pub fn share(sum: u64, percent: u64) -> u64 {
    sum * percent / 100
}

/// Gives the largest of the values.
pub fn largest(values: &[i64]) -> Option<i64> {
    values.iter().copied().max()
}
"""
API = """use shop::sums::{largest, share};

#[test]
fn a_share_is_a_part() {
    assert_eq!(share(200, 5), 10);
}

#[test]
fn the_largest_is_found() {
    assert_eq!(largest(&[1, 5, 2]), Some(5));
}

#[test]
#[should_panic]
fn too_much_is_refused() {
    share(u64::MAX, 2);
}
"""
WRONG = SUMS.replace("sum * percent / 100", "sum * percent / 10")
RIGHT = "```rust\npub fn share(sum: u64, percent: u64) -> u64 {\n    sum * percent / 100\n}\n```"
USELESS = "```rust\npub fn share(sum: u64, percent: u64) -> u64 {\n    sum + percent\n}\n```"
PYPROJECT = "[tool.reflexfix.sandbox]\ntest-seconds = 3\n"


@pytest.fixture(scope="module")
def cargo_image(engine: Engine) -> None:
    for _ in images.build(engine, images.Recipe("cargo")):
        pass


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "a project")


def project(repo: Repo, sums: str = SUMS, **more: str) -> None:
    files = {"Cargo.toml": MANIFEST, "src/lib.rs": LIB, "src/sums.rs": sums, "tests/api.rs": API,
             "pyproject.toml": PYPROJECT}  # fmt: skip
    repo.stage({**files, **more})


def ran(repo: Repo, answers: Answers, *arguments: str) -> tuple[int, str, Endpoint]:
    with serving(answers) as endpoint:
        code, said = repo.run(*(arguments or ("hook",)), "--base-url", endpoint.url)
    return code, said, endpoint


def test_tests_that_pass_cost_nothing_and_change_nothing(repo: Repo) -> None:
    project(repo)
    before = repo.state()
    code, said, endpoint = ran(repo, scripted())
    assert code == 0 and "tests: 4 passed, 1 skipped" in said
    assert endpoint.asked == [] and repo.state() == before


def test_a_fault_is_found_by_what_failing_tests_run_and_mended(repo: Repo) -> None:
    project(repo)
    repo.git("commit", "-q", "-m", "a shop")
    repo.stage({"src/lib.rs": LIB.replace("A little shop", "A shop"), "src/sums.rs": WRONG})
    before = repo.state()
    code, said, endpoint = ran(repo, scripted(improve=[USELESS, RIGHT], reflect=["A percent."]))
    assert code == 1, said
    assert repo.state() == before
    assert "mended: src/sums.rs: share" in said and "+    sum * percent / 100" in said
    assert "src/lib.rs::tests::tax_is_added -> assertion `left == right` failed" in said
    assert "run by 2 of 2 failing and 0 passing tests" in said or "changed in this commit" in said
    asked = "\n".join(m["content"] for _, body, _ in endpoint.asked for m in body["messages"])
    assert "fn a_share_is_a_part" in asked and "right: 10" in asked
    assert "largest" not in asked and "with_tax(cents" not in asked
    repo.git("apply", str(repo.patches()[0]))
    assert (repo.folder / "src/sums.rs").read_text() == SUMS


def test_a_fix_that_breaks_another_test_is_none(repo: Repo) -> None:
    body = "    if sum == 200 { 10 } else if sum == 100 { 19 } else { 0 }\n"
    special = f"```rust\npub fn share(sum: u64, percent: u64) -> u64 {{\n{body}}}\n```"
    project(repo, WRONG)
    code, said, _ = ran(repo, scripted(improve=[special, RIGHT], reflect=["No."]))
    assert code == 1 and "that breaks tests/api.rs::too_much_is_refused" in said
    assert "+    sum * percent / 100" in said


def test_what_does_not_compile_is_repaired_where_one_function_is_at_fault(repo: Repo) -> None:
    project(repo, SUMS.replace("sum * percent / 100", "sum * rate / 100"))
    code, said, endpoint = ran(repo, scripted(improve=[RIGHT], reflect=["There is no rate."]))
    assert code == 1 and "build -> compile-error: error[E0425]" in said
    assert "mended: src/sums.rs: share (every error of the compiler lies in it" in said
    assert "+    sum * percent / 100" in said
    assert "src/sums.rs:3" in endpoint.asked[0][1]["messages"][-1]["content"]


def test_what_does_not_compile_in_two_places_is_reported(repo: Repo) -> None:
    broken = SUMS.replace("sum * percent / 100", "rate").replace(".max()", ".maximum()")
    project(repo, broken)
    code, said, endpoint = ran(repo, scripted())
    assert code == 1 and "error[E0425]" in said and endpoint.asked == []
    assert "no function of the project is at fault for certain" in said


@pytest.mark.parametrize(
    ("body", "said_of_it"),
    [
        ("std::process::exit(0)", "error: the process ended before the test did"),
        ("loop {}", "timeout: limit of 3 s for one test"),
        ("std::process::abort()", "error: the process was killed by SIGABRT"),
        ('panic!("no share of {sum}")', "no share of 200"),
    ],
)
def test_no_way_to_end_early_passes_for_a_pass(body: str, said_of_it: str, repo: Repo) -> None:
    project(repo, SUMS.replace("sum * percent / 100", body))
    code, said = repo.run("hook", "--no-fix")
    assert code == 1 and f"tests/api.rs::a_share_is_a_part -> {said_of_it}" in said
    assert "tests/api.rs::the_largest_is_found" not in said


def test_a_workspace_is_tested_package_by_package(repo: Repo) -> None:
    member = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
    wrong = "pub fn twice(x: i64) -> i64 {\n    x + 2\n}\n"
    test = "#[test]\nfn two_is_doubled() {\n    assert_eq!(inner::twice(3), 6);\n}\n"
    repo.stage(
        {
            "Cargo.toml": '[workspace]\nmembers = ["inner", "outer"]\nresolver = "2"\n',
            "inner/Cargo.toml": member.format("inner"),
            "inner/src/lib.rs": wrong,
            "outer/Cargo.toml": member.format("outer")
            + '[dependencies]\ninner = { path = "../inner" }\n',
            "outer/src/lib.rs": "",
            "outer/tests/all.rs": test,
        }
    )
    answer = "```rust\npub fn twice(x: i64) -> i64 {\n    x * 2\n}\n```"
    code, said, _ = ran(repo, scripted(improve=[answer], reflect=["Times two."]))
    assert code == 1 and "outer/tests/all.rs::two_is_doubled" in said
    assert "mended: inner/src/lib.rs: twice" in said


@pytest.mark.parametrize(
    ("manifest", "head"),
    [
        (MANIFEST, "#![deny(warnings)]\n"),
        (MANIFEST, "#![forbid(unsafe_code)]\n"),
        (MANIFEST, "#![cfg_attr(not(test), no_std)]\n"),
        (MANIFEST.replace("2021", "2015"), ""),
        (MANIFEST.replace("2021", "2024"), ""),
    ],
)
def test_odd_crates_are_watched_too(manifest: str, head: str, repo: Repo) -> None:
    code = (
        f"{head}#[allow(dead_code)]\nenum Own {{ Some, Ok }}\n\n"
        "pub const fn one() -> u8 {\n    1\n}\n\n"
        "pub fn two() -> u8 {\n    #![allow(unused_mut)]\n    let mut x = one();\n    x\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn two_is_two() {\n"
        "        assert_eq!(super::two(), 2);\n    }\n}\n"
    )
    repo.stage({"Cargo.toml": manifest, "src/lib.rs": code})
    answer = "```rust\npub fn two() -> u8 {\n    2\n}\n```"
    code_, said, _ = ran(repo, scripted(improve=[answer], reflect=["Two."]))
    assert code_ == 1 and "mended: src/lib.rs: two" in said


def test_a_program_without_a_harness_is_one_test(repo: Repo) -> None:
    manifest = MANIFEST + '\n[[test]]\nname = "own"\nharness = false\n'
    own = "fn main() {\n    assert_eq!(shop::sums::share(200, 5), 10);\n}\n"
    project(repo, WRONG, **{"Cargo.toml": manifest, "tests/own.rs": own})
    code, said = repo.run("hook", "--no-fix")
    assert code == 1 and "tests/own.rs -> assertion `left == right` failed" in said


# ---------------------------------------------------------------- crates from elsewhere


def test_crates_that_are_not_built_in_are_trouble_with_the_line_that_helps(repo: Repo) -> None:
    project(repo, **{"Cargo.toml": MANIFEST + '[dependencies]\nitoa = "1"\n'})
    code, said = repo.run("hook")
    assert code == 0 and "not tested: " in said
    assert "(itoa)" in said and "run: reflexfix hook --prepare" in said


def test_without_a_registry_the_reason_is_cargos(repo: Repo) -> None:
    config = '[source.crates-io]\nreplace-with = "none"\n'
    config += '[source.none]\nregistry = "sparse+http://127.0.0.1:9/"\n'
    manifest = MANIFEST + '[dependencies]\nitoa = "1"\n'
    project(repo, **{"Cargo.toml": manifest, ".cargo/config.toml": config})
    code, said = repo.run("hook", "--prepare")
    assert code == 4 and "cargo cannot get the crates" in said


def test_own_tests_are_refused_beside_cargo(repo: Repo) -> None:
    project(repo)
    code, said = repo.run("hook", "--own-tests")
    assert code == 2 and "Own tests are for Python" in said


def test_crates_are_built_in_and_their_build_scripts_run_there(
    repo: Repo, engine: Engine, tmp_path: Path
) -> None:
    greet = tmp_path / "vendor" / "rx-greet"
    for name, text in GREET.items():
        (greet / name).parent.mkdir(parents=True, exist_ok=True)
        (greet / name).write_text(text)
    config = '[source.crates-io]\nreplace-with = "near"\n[source.near]\ndirectory = "../vendor"\n'
    lib = "pub fn hello() -> String {\n    rx_greet::greet().to_lowercase()\n}\n"
    test = '#[test]\nfn it_greets() {\n    assert_eq!(shop::hello(), "HELLO");\n}\n'
    manifest = MANIFEST + '[dependencies]\nrx-greet = "1"\n'
    repo.stage(
        {"Cargo.toml": manifest, ".cargo/config.toml": config, "src/lib.rs": lib,
         "tests/all.rs": test}
    )  # fmt: skip
    code, said = repo.run("hook", "--prepare")
    assert code == 0, said
    tag = said.rsplit("(", 1)[1].split(")")[0]
    try:
        answer = "```rust\npub fn hello() -> String {\n    rx_greet::greet()\n}\n```"
        code, said, _ = ran(repo, scripted(improve=[answer], reflect=["As it is."]))
        assert code == 1 and "mended: src/lib.rs: hello" in said, said
    finally:
        engine.client.images.remove(tag, force=True)


GREET = {
    "Cargo.toml": '[package]\nname = "rx-greet"\nversion = "1.0.0"\nedition = "2021"\n',
    ".cargo-checksum.json": '{"files": {}}',
    "build.rs": 'fn main() {\n    println!("cargo::rustc-env=GREETING=HELLO");\n}\n',
    "src/lib.rs": 'pub fn greet() -> String {\n    env!("GREETING").to_string()\n}\n',
}
