//! Plain values as they cross between the candidate's process and the test's, and the two ends.
//!
//! Compiled once, when the image is built, and linked into both libraries. A value is written in
//! the layout of its type, which both sides know from the target's signature: numbers and chars
//! as little-endian bytes, `bool`, `Option` and `Result` behind one byte, everything that has a
//! length behind eight. A frame is four bytes of length, least significant first, and that many
//! bytes. What the other side sends is checked: too short, too long, no `bool`, no UTF-8, no
//! `char` is `Malformed`, never undefined behaviour.
//!
//! A call: the arguments. An answer: 0, the arguments behind `&mut`, the value; or 1, the text of
//! a panic and its place. A report of a test: status, expected, actual, message, place, as texts.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering as Order};

pub mod made;

const FRAME_BYTES: usize = 64 << 20;
const EMPTY_ITEMS: usize = 1 << 20;
const SHOWN: usize = 2000;

/// Bytes that no end of ours can have written.
#[derive(Debug)]
pub struct Malformed(pub &'static str);

type Got<T> = Result<T, Malformed>;

/// What is left of a frame.
pub struct Reader {
    data: Vec<u8>,
    at: usize,
}

impl Reader {
    fn take(&mut self, size: usize) -> Got<&[u8]> {
        if size > self.data.len() - self.at {
            return Err(Malformed("a frame that ends too early"));
        }
        self.at += size;
        Ok(&self.data[self.at - size..self.at])
    }

    fn length(&mut self) -> Got<usize> {
        let length = u64::get(self)? as usize;
        let left = self.data.len() - self.at;
        if length > left && length > EMPTY_ITEMS {
            return Err(Malformed("a length that no frame can hold"));
        }
        Ok(length)
    }

    fn items<T: Wire, C: FromIterator<T>>(&mut self) -> Got<C> {
        let length = self.length()?;
        (0..length).map(|_| T::get(self)).collect()
    }

    /// Hold that nothing is left over.
    pub fn end(&self) -> Got<()> {
        if self.at == self.data.len() { Ok(()) } else { Err(Malformed("a frame that goes on")) }
    }
}

/// A value that crosses.
pub trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(input: &mut Reader) -> Got<Self>;
}

macro_rules! numbers {
    ($($kind:ty as $wide:ty),*) => {$(
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(*self as $wide).to_le_bytes());
            }
            fn get(input: &mut Reader) -> Got<Self> {
                let bytes = input.take(std::mem::size_of::<$wide>())?;
                Ok(<$wide>::from_le_bytes(bytes.try_into().unwrap()) as $kind)
            }
        }
    )*};
}
numbers!(
    i8 as i8, i16 as i16, i32 as i32, i64 as i64, i128 as i128, isize as i64,
    u8 as u8, u16 as u16, u32 as u32, u64 as u64, u128 as u128, usize as u64,
    f32 as f32, f64 as f64
);

fn flag(input: &mut Reader) -> Got<bool> {
    match u8::get(input)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("a byte that is no bool")),
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        flag(input)
    }
}

impl Wire for char {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u32).put(out);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        char::from_u32(u32::get(input)?).ok_or(Malformed("a number that is no char"))
    }
}

impl Wire for std::cmp::Ordering {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as i8).put(out);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(i8::get(input)?.cmp(&0))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut Reader) -> Got<Self> {
        let length = input.length()?;
        let bytes = input.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Malformed("text that is no UTF-8"))
    }
}

impl<'a> Wire for &'a str {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(String::get(input)?.leak())
    }
}

fn put_all<'a, T: Wire + 'a>(items: impl ExactSizeIterator<Item = &'a T>, out: &mut Vec<u8>) {
    (items.len() as u64).put(out);
    items.for_each(|item| item.put(out));
}

impl<'a, T: Wire> Wire for &'a [T] {
    fn put(&self, out: &mut Vec<u8>) {
        put_all(self.iter(), out);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(Vec::leak(input.items::<T, Vec<T>>()?))
    }
}

impl<'a, T: Wire> Wire for &'a T {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(Box::leak(Box::new(T::get(input)?)))
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(Box::new(T::get(input)?))
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.put(out));
    }
    fn get(input: &mut Reader) -> Got<Self> {
        let mut items = Vec::new();
        for _ in 0..N {
            items.push(T::get(input)?);
        }
        items.try_into().map_err(|_| Malformed("an array of another length"))
    }
}

macro_rules! collections {
    ($($kind:ident <T $(: $bound:path $(, $more:path)*)?>);*) => {$(
        impl<T: Wire $(+ $bound $(+ $more)*)?> Wire for $kind<T> {
            fn put(&self, out: &mut Vec<u8>) {
                put_all(self.iter(), out);
            }
            fn get(input: &mut Reader) -> Got<Self> {
                input.items::<T, Self>()
            }
        }
    )*};
}
collections!(Vec<T>; VecDeque<T>; HashSet<T: Eq, Hash>; BTreeSet<T: Ord>);

macro_rules! maps {
    ($($kind:ident <K: $bound:path $(, $more:path)*>);*) => {$(
        impl<K: Wire + $bound $(+ $more)*, V: Wire> Wire for $kind<K, V> {
            fn put(&self, out: &mut Vec<u8>) {
                (self.len() as u64).put(out);
                self.iter().for_each(|(key, value)| {
                    key.put(out);
                    value.put(out);
                });
            }
            fn get(input: &mut Reader) -> Got<Self> {
                input.items::<(K, V), Self>()
            }
        }
    )*};
}
maps!(HashMap<K: Eq, Hash>; BTreeMap<K: Ord>);

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(if flag(input)? { Some(T::get(input)?) } else { None })
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }
    fn get(input: &mut Reader) -> Got<Self> {
        Ok(if flag(input)? { Ok(T::get(input)?) } else { Err(E::get(input)?) })
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        #[allow(non_snake_case, unused_variables)]
        impl<$($name: Wire),*> Wire for ($($name,)*) {
            fn put(&self, out: &mut Vec<u8>) {
                let ($($name,)*) = self;
                $($name.put(out);)*
            }
            fn get(input: &mut Reader) -> Got<Self> {
                Ok(($($name::get(input)?,)*))
            }
        }
    )*};
}
tuples!(() (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H));

// ---------------------------------------------------------------- frames

fn channel(descriptor: RawFd) -> ManuallyDrop<UnixStream> {
    ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(descriptor) })
}

fn send(descriptor: RawFd, frame: &[u8]) -> std::io::Result<()> {
    let mut stream = channel(descriptor);
    stream.write_all(&(frame.len() as u32).to_le_bytes())?;
    stream.write_all(frame)
}

fn receive(descriptor: RawFd) -> std::io::Result<Reader> {
    let mut stream = channel(descriptor);
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size) as usize;
    if size > FRAME_BYTES {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut data = Vec::new();
    (&*stream).take(size as u64).read_to_end(&mut data)?;
    if data.len() < size {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Reader { data, at: 0 })
}

fn flush() {
    let _ = std::io::stdout().flush();
}

// ---------------------------------------------------------------- panics

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keep where a panic happened, and print nothing.
fn note_places() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
        PLACE.with(|kept| *kept.borrow_mut() = place.unwrap_or_default());
    }));
}

fn place() -> String {
    PLACE.with(|kept| std::mem::take(&mut *kept.borrow_mut()))
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    short(text.unwrap_or("a panic without words").to_string())
}

fn short(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => text[..at].to_string() + " ...",
        None => text,
    }
}

// ---------------------------------------------------------------- the candidate's end

/// Answer calls until the test hangs up.
pub fn serve(descriptor: RawFd, call: fn(&mut Reader, &mut Vec<u8>) -> Got<()>) {
    note_places();
    while let Ok(mut input) = receive(descriptor) {
        let mut reply = vec![0];
        match catch_unwind(AssertUnwindSafe(|| call(&mut input, &mut reply))) {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(payload) => {
                reply = vec![1];
                words(&*payload).put(&mut reply);
                place().put(&mut reply);
            }
        }
        flush();
        if send(descriptor, &reply).is_err() {
            return;
        }
    }
}

/// Make the candidate's library: its one door, which answers calls with this function.
#[macro_export]
macro_rules! serve_with {
    ($call:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn reflexfix_serve(descriptor: i32) {
            $crate::serve(descriptor, $call)
        }
    };
}

// ---------------------------------------------------------------- the test's end

static TROUBLE: AtomicBool = AtomicBool::new(false);
static CALLED: AtomicBool = AtomicBool::new(false);
static CHANNEL: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);

/// A comparison that did not hold.
struct Mismatch {
    expected: String,
    actual: String,
    message: String,
}

/// A panic of the candidate, seen from the test.
struct Far {
    message: String,
    place: String,
}

/// A call that has no answer.
struct Trouble(String);

fn fail_for_good(text: &str) -> ! {
    TROUBLE.store(true, Order::Relaxed);
    resume_unwind(Box::new(Trouble(text.to_string())))
}

/// A call on its way to the candidate.
#[derive(Default)]
pub struct Call(Vec<u8>);

impl Call {
    pub fn with<T: Wire>(mut self, value: &T) -> Self {
        value.put(&mut self.0);
        self
    }

    /// Send the call; a panic over there becomes one here.
    pub fn made(self) -> Reply {
        CALLED.store(true, Order::Relaxed);
        let descriptor = CHANNEL.load(Order::Relaxed);
        let sent = send(descriptor, &self.0);
        let Ok(mut input) = sent.and_then(|()| receive(descriptor)) else {
            fail_for_good("the candidate's process ended during the call")
        };
        match flag(&mut input) {
            Ok(false) => Reply(input),
            Ok(true) => {
                let (message, place) = read((String::get(&mut input), String::get(&mut input)));
                resume_unwind(Box::new(Far { message: short(message), place: short(place) }))
            }
            Err(error) => fail_for_good(error.0),
        }
    }
}

fn read<A, B>(pair: (Got<A>, Got<B>)) -> (A, B) {
    match pair {
        (Ok(a), Ok(b)) => (a, b),
        _ => fail_for_good("the candidate's process answered nonsense"),
    }
}

/// What came back: first the arguments behind `&mut`, then the value.
pub struct Reply(Reader);

impl Reply {
    fn next<T: Wire>(&mut self) -> T {
        T::get(&mut self.0).unwrap_or_else(|error| {
            fail_for_good(&format!("the candidate's process answered nonsense: {}", error.0))
        })
    }

    pub fn changed<T: Wire>(&mut self, old: &mut T) {
        *old = self.next();
    }

    pub fn changed_items<T: Wire>(&mut self, old: &mut [T]) {
        let new: Vec<T> = self.next();
        if new.len() != old.len() {
            fail_for_good("the candidate's process answered with a slice of another length");
        }
        old.iter_mut().zip(new).for_each(|(old, new)| *old = new);
    }

    pub fn value<T: Wire>(&mut self) -> T {
        let value = self.next();
        if let Err(error) = self.0.end() {
            fail_for_good(error.0);
        }
        value
    }
}

/// What a test may end with.
pub trait Ending {
    fn check(self);
}

impl Ending for () {
    fn check(self) {}
}

impl<T, E: Debug> Ending for Result<T, E> {
    fn check(self) {
        if let Err(error) = self {
            mismatch("Ok(..)".to_string(), format!("Err({error:?})"), String::new());
        }
    }
}

/// End the test: what was expected is not what came.
pub fn mismatch(expected: String, actual: String, message: String) -> ! {
    let (expected, actual) = (short(expected), short(actual));
    resume_unwind(Box::new(Mismatch { expected, actual, message: short(message) }))
}

/// Hold that something panics, and not for want of an answer.
pub fn panics(what: impl FnOnce()) {
    let ended = catch_unwind(AssertUnwindSafe(what));
    match ended {
        Ok(()) => mismatch("a panic".into(), "no panic".into(), String::new()),
        Err(payload) if payload.is::<Trouble>() || payload.is::<Mismatch>() => {
            resume_unwind(payload)
        }
        Err(_) => {}
    }
}

/// Run a future to its end on this thread.
pub fn block_on<F: std::future::Future>(future: F) -> F::Output {
    struct Nothing;
    impl std::task::Wake for Nothing {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let waker = std::sync::Arc::new(Nothing).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[macro_export]
macro_rules! check_eq {
    ($actual:expr, $expected:expr $(, $($more:tt)*)?) => {
        match (&$actual, &$expected) {
            (actual, expected) => if !(*actual == *expected) {
                $crate::mismatch(::std::format!("{:?}", expected), ::std::format!("{:?}", actual),
                    $crate::check_words!($($($more)*)?))
            }
        }
    };
}

#[macro_export]
macro_rules! check_eq_turned {
    ($expected:expr, $actual:expr $(, $($more:tt)*)?) => {
        match (&$expected, &$actual) {
            (expected, actual) => if !(*expected == *actual) {
                $crate::mismatch(::std::format!("{:?}", expected), ::std::format!("{:?}", actual),
                    $crate::check_words!($($($more)*)?))
            }
        }
    };
}

#[macro_export]
macro_rules! check_ne {
    ($left:expr, $right:expr $(, $($more:tt)*)?) => {
        match (&$left, &$right) {
            (left, right) => if *left == *right {
                $crate::mismatch(::std::format!("a value other than {:?}", right), ::std::format!("{:?}", left),
                    $crate::check_words!($($($more)*)?))
            }
        }
    };
}

#[macro_export]
macro_rules! check_that {
    ($fact:expr $(, $($more:tt)*)?) => {
        if !$fact {
            $crate::mismatch(::std::string::String::from("true"), ::std::string::String::from("false"),
                $crate::check_words!($($($more)*)?))
        }
    };
}

/// Hold a comparison with a number, and show the number that did not fit.
#[macro_export]
macro_rules! check_order {
    ($left:expr, $sign:tt, $right:expr) => {
        match (&$left, &$right) {
            (left, right) => if !(*left $sign *right) {
                $crate::mismatch(::std::format!("{} {:?}", stringify!($sign), right),
                    ::std::format!("{:?}", left), ::std::string::String::new())
            }
        }
    };
}

/// Hold that a value shows as a private text: it must not.
#[macro_export]
macro_rules! check_control {
    ($value:expr, $private:expr) => {
        match ::std::format!("{:?}", &$value) {
            shown => if shown != $private {
                $crate::mismatch(::std::string::String::from($private), shown, ::std::string::String::new())
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! check_words {
    () => { ::std::string::String::new() };
    ($($more:tt)+) => { ::std::format!($($more)+) };
}

/// How one test ended, as bytes that stay where they are.
#[repr(C)]
pub struct Report {
    data: *const u8,
    size: usize,
}

/// Run one test and give five texts: status, expected, actual, message, place.
pub fn report(test: fn(), descriptor: RawFd) -> Report {
    note_places();
    CHANNEL.store(descriptor, Order::Relaxed);
    let ended = catch_unwind(test);
    flush();
    let texts = match ended {
        _ if TROUBLE.load(Order::Relaxed) => trouble(ended.err()),
        Ok(()) if descriptor >= 0 && !CALLED.load(Order::Relaxed) => uncalled(),
        Ok(()) => ["passed".into(), String::new(), String::new(), String::new(), String::new()],
        Err(payload) => described(payload),
    };
    let mut data = Vec::new();
    texts.iter().for_each(|text| text.put(&mut data));
    let data = data.leak();
    Report { data: data.as_ptr(), size: data.len() }
}

fn uncalled() -> [String; 5] {
    let message = "the test never called the function".to_string();
    ["no-verdict".into(), String::new(), String::new(), message, String::new()]
}

fn trouble(payload: Option<Box<dyn Any + Send>>) -> [String; 5] {
    let said = payload.as_ref().and_then(|p| p.downcast_ref::<Trouble>()).map(|t| t.0.clone());
    let message = said.unwrap_or_else(|| "a call had no answer".into());
    ["died".into(), String::new(), String::new(), message, String::new()]
}

fn described(payload: Box<dyn Any + Send>) -> [String; 5] {
    let payload = match payload.downcast::<Mismatch>() {
        Ok(found) => {
            return ["mismatch".into(), found.expected, found.actual, found.message, String::new()]
        }
        Err(other) => other,
    };
    match payload.downcast::<Far>() {
        Ok(far) => ["far".into(), String::new(), String::new(), far.message, far.place],
        Err(other) => {
            ["panic".into(), String::new(), String::new(), words(&*other), place()]
        }
    }
}

/// Make the tests' library: how many there are, and a door to each.
#[macro_export]
macro_rules! tests_are {
    ($($test:path),* $(,)?) => {
        const TESTS: &[fn()] = &[$($test),*];

        #[unsafe(no_mangle)]
        pub extern "C" fn reflexfix_count() -> usize {
            TESTS.len()
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn reflexfix_test(number: usize, descriptor: i32) -> $crate::Report {
            $crate::report(TESTS[number], descriptor)
        }
    };
}
