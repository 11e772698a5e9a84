"""Crates from elsewhere: what is read of Cargo.toml, and the layer that is built of it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from endpoint import scripted, serving

from reflexfix.containers import crates, image
from reflexfix.containers.engine import Engine
from reflexfix.errors import UsageProblem


def crate(folder: Path, manifest: str, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(manifest)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


PLAIN = '[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2021"\n\n'


# ---------------------------------------------------------------- reading


def test_a_manifest_is_made_of_what_is_asked_for_alone(tmp_path: Path) -> None:
    text = (
        PLAIN + 'build = "build.rs"\n[dependencies]\nrand = "0.8"\n'
        'own = { path = "../own" }\n'
        'serde = { version = "1", optional = true, default-features = false }\n'
        '[dev-dependencies]\nquick = "1"\n'
        "[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n"
        '[features]\ndefault = ["serde", "own/fast"]\n'
        '[profile.release]\npanic = "abort"\n'
    )
    found = crates.read(crate(tmp_path / "a", text))
    assert tomllib.loads(found.manifest) == {
        "package": {"name": "mine", "version": "0.0.0", "edition": "2021", "publish": False},
        "lib": {"path": "lib.rs"},
        "workspace": {},
        "dependencies": {
            "rand": {"version": "0.8"},
            "serde": {"version": "1", "optional": True, "default-features": False},
        },
        "dev-dependencies": {"quick": {"version": "1"}},
        "target": {"cfg(unix)": {"dependencies": {"libc": {"version": "0.2"}}}},
        "features": {"default": ["serde"]},
    }
    assert found.names == ("libc", "quick", "rand", "serde")
    assert found.left_out == ("own",)


def test_what_a_workspace_says_for_all_is_written_out(tmp_path: Path) -> None:
    crate(
        tmp_path,
        '[workspace]\nmembers = ["a"]\n[workspace.package]\nedition = "2018"\n'
        '[workspace.dependencies]\nserde = { version = "1", features = ["derive"] }\n',
        **{"Cargo.lock": '[[package]]\nname = "serde"\nversion = "1.0.9"\nsource = "registry"\n'},
    )
    member = crate(
        tmp_path / "a",
        '[package]\nname = "a"\nversion.workspace = true\nedition.workspace = true\n'
        '[dependencies]\nserde = { workspace = true, features = ["rc"] }\n',
    )
    found = crates.read(member)
    made = tomllib.loads(found.manifest)
    assert made["dependencies"] == {"serde": {"version": "1", "features": ["derive", "rc"]}}
    assert made["package"]["edition"] == "2018"
    assert list(crates.locked(found.lock)) == ["serde 1.0.9"]
    assert crates.around(member / "src" / "lib.rs") == found


def test_the_layer_is_named_by_what_is_asked_for(tmp_path: Path) -> None:
    def digest(manifest: str, lock: str = "") -> str:
        more = {"Cargo.lock": lock} if lock else {}
        return crates.read(crate(tmp_path / "a", manifest, **more)).digest

    asked = PLAIN + '[dependencies]\nrand = "0.8"\n'
    first = digest(asked)
    assert digest(asked.replace("0.1.0", "0.2.0") + "[profile.dev]\ndebug = 1\n") == first
    assert digest(asked.replace("0.8", "0.9")) != first
    lock = '[[package]]\nname = "mine"\nversion = "{}"\n[[package]]\nname = "rand"\n{}'
    source = 'version = "0.8.{}"\nsource = "registry"\n'
    locked = digest(asked, lock.format("0.1.0", source.format(5)))
    assert locked != first
    assert digest(asked, lock.format("0.2.0", source.format(5))) == locked
    assert digest(asked, lock.format("0.1.0", source.format(6))) != locked


def test_cargos_configuration_says_where_crates_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    for place, text in {
        "home": '[source.crates-io]\nreplace-with = "far"\n[registries.own]\nindex = "sparse+x"\n'
        'token = "secret"\n[net]\noffline = true\n',
        "above/.cargo": '[source.crates-io]\nreplace-with = "near"\n'
        '[source.near]\ndirectory = "vendor"\n',
        "above/a/.cargo": '[build]\nrustflags = ["-Cx"]\n',
    }.items():
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "config.toml").write_text(text)
    (tmp_path / "above" / "vendor").mkdir()
    found = crates.source(tmp_path / "above" / "a")
    assert tomllib.loads(found.config) == {
        "source": {
            "crates-io": {"replace-with": "near"},
            "near": {"directory": "/crates/sources/0"},
        },
        "registries": {"own": {"index": "sparse+x"}},
    }
    assert found.folders == (tmp_path / "above" / "vendor",)


def test_a_folder_that_is_named_stands_in_for_the_registry(tmp_path: Path) -> None:
    found = crates.source(tmp_path, tmp_path)
    assert tomllib.loads(found.config)["source"]["crates-io"] == {"replace-with": "chosen"}
    assert found.folders == (tmp_path,)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no folder of crates"):
        crates.source(tmp_path, tmp_path / "x")
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo" / "config.toml").write_text('[source.a]\ndirectory = "gone"\n')
    with pytest.raises(UsageProblem, match="gone, which cargo's configuration names"):
        crates.source(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("", "has no [package]"),
        ("[package", "cannot be read"),
        ("[workspace]\nmembers = []\n", "has no [package]"),
        (PLAIN, "asks for no crates."),
        (PLAIN + '[dependencies]\nown = { path = "x" }\n', "asks for no crates but folders (own)"),
    ],
)
def test_a_manifest_that_gives_no_layer_ends_the_command(
    tmp_path: Path, command: Command, manifest: str, said: str
) -> None:
    crate(tmp_path / "a", manifest)
    ran = command("sandbox", "build", "--with-crates", "a/Cargo.toml")
    assert ran.code == 2
    assert said in ran.err


def test_options_that_need_another_are_refused(tmp_path: Path, command: Command) -> None:
    assert command("sandbox", "build", "--with-crates", tmp_path).code == 2
    ran = command("sandbox", "build", "--crate-source", tmp_path)
    assert ran.code == 2 and "--crate-source needs --with-crates." in ran.err
    ran = command("sandbox", "build", "--language", "rust", "--with", "numpy")
    assert ran.code == 2 and "--with is for Python." in ran.err


# ---------------------------------------------------------------- building


GREET = {
    "Cargo.toml": '[package]\nname = "rx-greet"\nversion = "1.2.0"\nedition = "2021"\n'
    'build = "build.rs"\n[features]\nloud = []\n',
    "build.rs": 'fn main() { println!("cargo:rustc-env=MADE=by a build script"); }\n',
    "lib.rs": "pub fn greet(name: &str) -> String {\n"
    '    let end = if cfg!(feature = "loud") { "!" } else { "" };\n'
    '    format!("{name}, {}{end}", env!("MADE"))\n}\n',
}


@pytest.fixture
def vendored(tmp_path: Path) -> Iterator[Path]:
    """A crate that asks for one that has a build script, and a folder that holds that one."""
    greet = tmp_path / "vendor" / "rx-greet"
    (greet / "src").mkdir(parents=True)
    for name, text in GREET.items():
        place = greet / ("src" if name == "lib.rs" else ".") / name
        place.write_text(text)
    (greet / ".cargo-checksum.json").write_text(json.dumps({"files": {}}))
    asked = '[dependencies]\nrx-greet = { version = "1", features = ["loud"] }\n'
    own = crate(tmp_path / "mine", PLAIN + asked)
    (own / "src").mkdir()
    (own / ".cargo").mkdir()
    config = '[source.crates-io]\nreplace-with = "near"\n[source.near]\ndirectory = "../vendor"\n'
    (own / ".cargo" / "config.toml").write_text(config)
    (own / "src" / "lib.rs").write_text(FILE)
    yield own


FILE = """use rx_greet::greet;

/// Greet somebody.
///
/// >>> hello("Ada")
/// "Ada, by a build script!"
pub fn hello(name: &str) -> String {
    todo!()
}
"""
ANSWER = (
    "```rust\nuse rx_greet::greet;\npub fn hello(name: &str) -> String {\n    greet(name)\n}\n```"
)


@pytest.mark.container
def test_crates_are_built_once_into_a_layer_that_solve_uses(
    vendored: Path, command: Command, engine: Engine
) -> None:
    recipe = image.Recipe("rust", crates=crates.named(vendored))
    if image.find(engine, recipe):
        engine.client.images.remove(recipe.tag)
    with serving(scripted(implement=[ANSWER], write_tests=["```rust\n```"])) as endpoint:
        solve = ("solve", vendored / "src" / "lib.rs", "--base-url", endpoint.url)
        before = command(*solve)
        assert before.code == 2
        assert "lib.rs uses rx_greet, which the sandbox does not have." in before.err
        assert f"reflexfix sandbox build --with-crates {vendored}" in before.err
        built = command("sandbox", "build", "--with-crates", vendored, timeout=600)
        assert built.code == 0, built.err
        assert built.out.decode().strip() == image.find(engine, recipe)
        assert "building the crates rx-greet" in built.err
        assert "building" not in command("sandbox", "build", "--with-crates", vendored).err
        after = command(*solve)
    assert after.code == 0, after.err
    assert after.out.decode() == FILE.replace("todo!()", "greet(name)")
    engine.client.images.remove(recipe.tag)


@pytest.mark.container
@pytest.mark.parametrize(
    ("registry", "said"),
    [
        ('registry = "sparse+http://127.0.0.1:9/"', "cargo cannot get the crates: "),
        ('directory = "../empty"', "cargo cannot get the crates: no matching package"),
    ],
)
def test_crates_that_cannot_be_had_end_the_command_with_one_line(
    vendored: Path, command: Command, registry: str, said: str
) -> None:
    (vendored.parent / "empty").mkdir()
    config = f'[source.crates-io]\nreplace-with = "far"\n[source.far]\n{registry}\n'
    (vendored / ".cargo" / "config.toml").write_text(config)
    ran = command("sandbox", "build", "--with-crates", vendored, timeout=600)
    assert ran.code == 4
    trouble = [line for line in ran.err.splitlines() if line.startswith("reflexfix: ")]
    assert len(trouble) == 1 and said in trouble[0]
    assert "hint: crates come from where the crate's .cargo/config.toml says" in ran.err


@pytest.mark.container
def test_a_crate_that_does_not_build_ends_the_command_with_what_the_compiler_says(
    vendored: Path, command: Command
) -> None:
    (vendored.parent / "vendor" / "rx-greet" / "src" / "lib.rs").write_text("pub fn f() -> {}\n")
    ran = command("sandbox", "build", "--with-crates", vendored, timeout=600)
    assert ran.code == 4
    assert "reflexfix: cargo cannot build the crates: expected type, found `{`" in ran.err
