"""What the hook knows of a Rust project before any container is there."""

from __future__ import annotations

import pytest

from reflexfix.containers import workspace
from reflexfix.errors import UsageProblem
from reflexfix.hook import cargo, environment, plan, rust_code
from reflexfix.hook.settings import Settings
from reflexfix.hook.tree import PLAIN, File, Tree
from reflexfix.rust import syntax

MANIFEST = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2018"\n'
CODE = """pub struct Till {
    sums: Vec<i64>,
}

impl Till {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: i64) -> i64 {
        let f = |x: i64| { x + 1 };
        fn inner(x: i64) -> i64 { x }
        self.sums.push(inner(value));
        f(value)
    }

    pub fn other(&self) -> usize { HIDDEN }
    pub fn named(&self) -> usize { 1 }
}

const HIDDEN: usize = 3;
pub const fn one() -> u8 { 1 }
fn empty() {}
pub fn attributed() -> u8 { #![allow(unused)] let x = 1; x }

#[cfg(test)]
mod tests {
    mod deep {
        #[test]
        fn it_adds() {
            assert_eq!(1, 1);
        }
    }
    #[test]
    fn it_adds() {
        assert_eq!(2, 2);
    }
}
"""


def tree(**files: str) -> Tree:
    named = {name.replace("__", "/").replace("_rs", ".rs"): text for name, text in files.items()}
    named = {"Cargo.toml": MANIFEST, **named}
    return Tree({path: File(PLAIN, text.encode()) for path, text in named.items()})


def test_a_project_with_a_manifest_and_no_python_tests_is_cargos() -> None:
    assert plan.plan(tree(src__lib_rs=CODE)).kind == "cargo"
    mixed = Tree({**tree().files, "tests/test_a.py": File(PLAIN, b"")})
    assert plan.plan(mixed).kind == "pytest"
    assert plan.plan(mixed, "cargo test").kind == "cargo"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("cargo test", ()),
        ("cargo test --workspace --features loud,fast", ("--workspace", "--features", "loud,fast")),
        ("cargo t -p shop", ("-p", "shop")),
        ("cargo test --manifest-path Cargo.toml --lib", ("--lib",)),
    ],
)
def test_cargos_options_are_taken(command: str, arguments: tuple[str, ...]) -> None:
    assert plan.plan(tree(src__lib_rs=CODE), command).arguments == arguments


@pytest.mark.parametrize(
    "command",
    ["cargo test name", "cargo test -- --nocapture", "cargo build", "cargo",
     "cargo test --manifest-path nowhere/Cargo.toml", "cargo test --manifest-path"],
)  # fmt: skip
def test_what_cargo_is_not_asked_for_is_refused(command: str) -> None:
    with pytest.raises(UsageProblem):
        plan.plan(tree(src__lib_rs=CODE), command)


def test_a_crate_below_the_top_has_to_be_named() -> None:
    below = Tree({f"rust/{path}": file for path, file in tree(src__lib_rs=CODE).files.items()})
    with pytest.raises(UsageProblem, match=r"no Cargo\.toml at the top"):
        plan.plan(below, "cargo test")
    assert plan.plan(below, "cargo test --manifest-path rust/Cargo.toml").roots == ("rust",)


def test_paths_are_tests_to_run_or_files_to_be_mended() -> None:
    some = tree(src__lib_rs=CODE, tests__api_rs="")
    how, only = plan.of_paths(some, ["tests/api.rs", "src/lib.rs"])
    assert how.arguments == ("--test", "api") and only == ("src/lib.rs",)
    how, only = plan.of_paths(some, ["tests"])
    assert how.kind == "cargo" and how.arguments == () and only == ()


def test_tests_are_told_from_code() -> None:
    named = [
        "tests/a.rs",
        "crates/x/tests/b.rs",
        "src/tests.rs",
        "benches/c.rs",
        "src/a/tests/d.rs",
    ]
    assert all(cargo.is_test(path) for path in named)
    assert not any(cargo.is_test(path) for path in ["src/lib.rs", "src/contest.rs", "tests/a.py"])


def test_the_edition_is_that_of_the_nearest_manifest() -> None:
    assert cargo.edition_of(tree(), "src/lib.rs") == "2018"
    assert cargo.edition_of(Tree({}), "src/lib.rs") == "2021"


# ---------------------------------------------------------------- which functions are run


def test_notes_stand_in_every_function_and_move_no_line() -> None:
    watched = rust_code.noting("src/lib.rs", CODE.encode()).decode()
    assert watched.count("\n") == CODE.count("\n")
    assert syntax.first_error(syntax.parse(watched.encode())) is None
    for line in (6, 15, 16, 21, 22):
        assert f'"src/lib.rs:{line}:\\n"' in watched
    assert "src/lib.rs:20:" not in watched  # a `const fn`
    assert "REFLEXFIX_RAN" not in watched.partition("#[cfg(test)]")[2]


def test_what_is_no_rust_is_not_watched() -> None:
    assert rust_code.noting("src/lib.rs", b"fn f( {") == b"fn f( {"


def test_tests_and_other_files_are_not_watched() -> None:
    before = tree(src__lib_rs=CODE, tests__api_rs="#[test]\nfn a() { shop::one(); }\n")
    after = rust_code.watched(before)
    assert after.files["tests/api.rs"] == before.files["tests/api.rs"]
    assert after.files["src/lib.rs"] != before.files["src/lib.rs"]


# ---------------------------------------------------------------- a function as a task


def test_a_model_is_shown_the_function_and_what_it_names() -> None:
    task = rust_code.open_in(tree(src__lib_rs=CODE), "src/lib.rs", 8)
    shown = task.scope(2000)
    assert task.name == "Till::add" and "pub fn add(&mut self, value: i64) -> i64" in shown
    assert "struct Till" in shown and "todo!()" in shown
    for hidden in ("HIDDEN", "fn other", "fn named", "it_adds", "fn empty", "left out"):
        assert hidden not in shown
    assert "self.sums.push(inner(value))" in task.old_body


def test_what_is_no_function_is_no_task() -> None:
    for line in (2, 30, 999):
        with pytest.raises(UsageProblem):
            rust_code.open_in(tree(src__lib_rs=CODE), "src/lib.rs", line)


def test_the_source_of_a_test_is_found_by_its_modules() -> None:
    some = tree(src__lib_rs="mod till;\n", src__till_rs=CODE)
    assert "assert_eq!(2, 2)" in rust_code.source_of(some, "src/lib.rs::till::tests::it_adds")
    assert "assert_eq!(1, 1)" in rust_code.source_of(some, "src/lib.rs::till::tests::deep::it_adds")
    assert rust_code.source_of(some, "src/lib.rs::till::tests::nothing") == ""
    assert rust_code.source_of(some, "build") == ""


# ---------------------------------------------------------------- crates from elsewhere


def test_a_layer_is_asked_for_where_crates_come_from_elsewhere() -> None:
    path = MANIFEST + '[dependencies]\ninner = { path = "inner" }\n'
    shared = MANIFEST + "[dependencies]\nserde = { workspace = true }\n"
    top = '[workspace.dependencies]\nserde = "1"\n'
    unix = MANIFEST + '[target."cfg(unix)".dev-dependencies]\nlibc = "0.2"\n'
    for text, names in ((MANIFEST, ()), (path, ()), (shared, ()), (shared + top, ("serde",)),
                        (unix, ("libc",)), (MANIFEST + '[build-dependencies]\ncc = "1"\n', ("cc",)),
                        ("this is no toml", ())):  # fmt: skip
        found = workspace.of({"Cargo.toml": text.encode(), "src/lib.rs": b"SECRET"})
        assert (found.names if found else ()) == names
        if found:
            assert b"SECRET" not in dict(found.context()).values()


def test_which_layer_it_is_depends_on_manifests_alone() -> None:
    text = MANIFEST.encode() + b'[dependencies]\nitoa = "1"\n'
    one, other = (workspace.of({"Cargo.toml": text, "src/lib.rs": data}) for data in (b"a", b"b"))
    locked = workspace.of({"Cargo.toml": text, "Cargo.lock": b"version = 4\n"})
    assert one and other and locked
    assert one.digest == other.digest != locked.digest
    early = environment.need(Tree({"Cargo.toml": File(PLAIN, text)}), Settings())
    late = environment.need(tree(**{"Cargo.toml": text.decode(), "src__lib_rs": CODE}), Settings())
    assert early == late and early.recipe.tag == late.recipe.tag
