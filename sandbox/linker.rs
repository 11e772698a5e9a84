//! A linker for the compiler to call: the linker itself, not a C compiler that would call it.
//!
//! Takes the command line that is meant for a C compiler and turns it into the linker's own. The
//! C compiler's part of it is to look for itself and its libraries, on each link anew; where the
//! libraries lie is known when the image is built.

use std::os::unix::process::CommandExt;

fn main() {
    let mut linker = std::process::Command::new("/usr/bin/ld.lld");
    for folder in env!("LIBRARIES").split(':') {
        linker.arg(format!("-L{folder}"));
    }
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("-Wl,") {
            Some(inner) => drop(linker.args(inner.split(','))),
            None if argument == "-nodefaultlibs" || argument.starts_with("-m") => {}
            None => drop(linker.arg(argument)),
        }
    }
    panic!("the linker cannot be run: {}", linker.exec());
}
