//! What most programs use of the standard library, for the commonest types, compiled once.
//!
//! The compiler makes every generic function anew in each crate that uses it, unless a library
//! that the crate is linked with has it already: without optimization, it links against that.
//! Nothing here is ever called. What pays was measured: it spares a candidate's compilation an
//! eighth of its time; four times as many types spared nothing more. Built like a candidate, with all checks, so that what is taken
//! from here behaves as if the candidate's own crate had made it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hint::black_box;

use crate::{Reader, Wire};

macro_rules! seen {
    ($($value:expr),* $(,)?) => {$( black_box(&$value); )*};
}

/// Send values of a type over, and take them back.
macro_rules! crossing {
    ($out:ident, $input:ident: $($t:ty),*) => {$(
        if let Ok(value) = <$t as Wire>::get($input) {
            value.put($out);
            black_box(format!("{:?} {:?}", value, &value));
            black_box(value == value);
        }
    )*};
}

macro_rules! lists {
    ($($name:ident: $t:ty),*) => {$(
        pub fn $name(a: &mut Vec<$t>, b: Vec<$t>, x: $t, n: usize, out: &mut Vec<u8>, input: &mut Reader) {
            crossing!(out, input: $t, Vec<$t>, Option<$t>);
            let mut c: Vec<$t> = Vec::new();
            c = black_box(c);
            c.push(x.clone());
            seen!(c.pop(), c.len(), c.is_empty(), c.first().cloned(), c.last().cloned());
            c.insert(n, x.clone());
            black_box(c.remove(n));
            c.extend(b.clone());
            c.extend(b.iter().cloned());
            c.extend_from_slice(&b);
            c.append(a);
            c.truncate(n);
            c.reserve(n);
            c.swap(n, n);
            c.reverse();
            seen!(c.contains(&x), c.get(n), c.iter().position(|y| *y == x), c.iter().any(|y| *y == x));
            seen!(c == b, c != b, c[..] == b[..], &c[n..], &c[..n], &c[n..n], &c[n]);
            c[n] = b[n].clone();
            for y in &c { black_box(y); }
            for y in c.iter_mut() { black_box(y); }
            for y in c.iter().rev() { black_box(y); }
            for y in b.clone() { black_box(y); }
            for (i, y) in c.iter().enumerate() { seen!(i, y); }
            for (y, z) in c.iter().zip(b.iter()) { seen!(y, z); }
            for y in c.windows(n) { black_box(y); }
            for y in c.chunks(n) { black_box(y); }
            black_box(c.iter().cloned().collect::<Vec<$t>>());
            black_box(c.iter().rev().cloned().collect::<Vec<$t>>());
            black_box(c.clone().into_iter().rev().collect::<Vec<$t>>());
            black_box(c.iter().skip(n).take(n).cloned().collect::<Vec<$t>>());
            black_box(c.to_vec());
            seen!(Vec::<$t>::with_capacity(n), vec![x.clone(); n], vec![x.clone()], vec![x.clone(), x.clone()]);
            seen!(Some(x.clone()) == None, Some(x.clone()).unwrap(), c.pop().unwrap_or(x.clone()));
            let mut queue: VecDeque<$t> = VecDeque::new();
            queue.push_back(x.clone());
            queue.push_front(x.clone());
            seen!(queue.pop_front(), queue.pop_back(), queue.len());
            c.clear();
            shown(&c);
        }
    )*};
}

fn shown<T: Debug>(value: &T) {
    black_box(format!("{value:?}"));
}

lists!(
    list_i32: i32, list_i64: i64, list_usize: usize, list_f64: f64, list_char: char,
    list_string: String, list_str: &'static str
);

macro_rules! ordered {
    ($($name:ident: $t:ty),*) => {$(
        pub fn $name(a: &mut Vec<$t>, x: $t, n: usize) {
            a.sort();
            a.sort_unstable();
            a.dedup();
            seen!(a.binary_search(&x), a.iter().max(), a.iter().min(), (*a).cmp(&vec![x.clone()]));
            seen!(a.iter().cloned().max(), a.iter().cloned().min(), a.iter().max().unwrap());
            let mut set: HashSet<$t> = HashSet::new();
            seen!(set.insert(x.clone()), set.contains(&x), set.len(), set.remove(&x));
            seen!(a.iter().cloned().collect::<HashSet<$t>>(), set.iter().next(), set == set);
            black_box(set.into_iter().collect::<Vec<$t>>());
            let mut pairs: Vec<($t, $t)> = vec![(x.clone(), x.clone()); n];
            pairs.sort();
            seen!(pairs.clone(), pairs.len());
        }
    )*};
}

ordered!(
    order_i32: i32, order_i64: i64, order_char: char, order_string: String
);

macro_rules! numbers {
    ($($name:ident: $t:ty),*) => {$(
        pub fn $name(a: Vec<$t>, x: $t, n: usize, text: &str) {
            seen!(a.iter().sum::<$t>(), a.iter().product::<$t>(), a.iter().cloned().sum::<$t>());
            seen!(a.iter().copied().sum::<$t>(), text.parse::<$t>(), text.parse::<$t>().unwrap());
            seen!(text.parse::<$t>().ok(), x.to_string(), format!("{x} {x:?} {}", &x));
            black_box(a.get(n).copied().unwrap_or_default());
        }
    )*};
}

numbers!(
    number_i32: i32, number_i64: i64, number_u64: u64, number_usize: usize, number_f64: f64
);

macro_rules! ranges {
    ($($name:ident: $t:ty),*) => {$(
        pub fn $name(x: $t, y: $t, n: usize) {
            for i in x..y { black_box(i); }
            for i in x..=y { black_box(i); }
            for i in (x..y).rev() { black_box(i); }
            for i in (x..=y).rev() { black_box(i); }
            for i in (x..y).step_by(n) { black_box(i); }
            seen!((x..y).collect::<Vec<$t>>(), (x..=y).collect::<Vec<$t>>());
            seen!((x..y).sum::<$t>(), (x..=y).sum::<$t>(), (x..=y).product::<$t>(), (x..y).contains(&y));
        }
    )*};
}

ranges!(
    range_i32: i32, range_i64: i64, range_u64: u64, range_usize: usize
);

macro_rules! maps {
    ($($name:ident: $kind:ident<$k:ty, $v:ty>),*) => {$(
        pub fn $name(key: $k, value: $v, out: &mut Vec<u8>, input: &mut Reader) {
            crossing!(out, input: $kind<$k, $v>);
            let mut map: $kind<$k, $v> = $kind::new();
            black_box(map.insert(key.clone(), value.clone()));
            seen!(map.get(&key), map.get_mut(&key).is_some(), map.contains_key(&key), map.len());
            seen!(map.is_empty(), &map[&key], map.clone() == map);
            *map.entry(key.clone()).or_insert(value.clone()) = value.clone();
            *map.entry(key.clone()).or_default() = value;
            seen!(map.remove(&key), map.keys().next(), map.values().next(), map.iter().next());
            for (k, v) in &map { seen!(k, v); }
            for (k, v) in map.clone() { seen!(k, v); }
            let mut pairs: Vec<($k, $v)> = map.into_iter().collect();
            pairs.push(pairs[0].clone());
            for (k, v) in &pairs { seen!(k, v); }
            seen!(pairs.len(), pairs.clone() == pairs);
            shown(&pairs);
            crossing!(out, input: Vec<($k, $v)>);
            black_box(pairs.into_iter().collect::<$kind<$k, $v>>());
        }
    )*};
}

maps!(
    map_char_i32: HashMap<char, i32>, map_char_usize: HashMap<char, usize>,
    map_string_i32: HashMap<String, i32>, map_string_usize: HashMap<String, usize>,
    map_i32_i32: HashMap<i32, i32>, map_i32_usize: HashMap<i32, usize>
);

pub fn text(text: &str, mut own: String, words: Vec<String>, parts: Vec<&str>, c: char, n: usize) {
    for c in text.chars() { black_box(c); }
    for c in text.chars().rev() { black_box(c); }
    for c in text.bytes() { black_box(c); }
    for (i, c) in text.chars().enumerate() { seen!(i, c); }
    for (i, c) in text.char_indices() { seen!(i, c); }
    for word in text.split_whitespace() { black_box(word); }
    for word in text.split(' ') { black_box(word); }
    for word in text.split(',') { black_box(word); }
    for line in text.lines() { black_box(line); }
    seen!(text.chars().collect::<Vec<char>>(), text.chars().rev().collect::<String>());
    seen!(text.chars().rev().collect::<Vec<char>>(), text.chars().count(), text.chars().nth(n));
    seen!(text.bytes().collect::<Vec<u8>>(), text.as_bytes().to_vec(), text.chars().next());
    seen!(text.split_whitespace().collect::<Vec<&str>>(), text.split(' ').collect::<Vec<&str>>());
    seen!(text.split(',').collect::<Vec<&str>>(), text.lines().collect::<Vec<&str>>());
    seen!(text.split(", ").collect::<Vec<&str>>(), text.split("").collect::<Vec<&str>>());
    seen!(words.join(" "), parts.join(" "), words.concat(), parts.concat(), words.join(""));
    seen!(text.contains(c), text.contains("a"), text.contains(&own), text.starts_with(c));
    seen!(text.starts_with("a"), text.ends_with("a"), text.find(c), text.find("a"), text.ends_with(c));
    seen!(text.replace(c, "a"), text.replace("a", "b"), text.to_string(), text.to_owned());
    seen!(own == text, text == own, own == *text, own.as_str() == text, own.clone() == own);
    seen!(&text[n..], &text[..n], &text[n..n], &text[n..=n], own[n..].to_string());
    seen!(String::from(text), text.to_string() + "a", c.to_string(), text.chars().skip(n).next());
    seen!(text.trim_matches(c), text.trim_start_matches(c), text.split_once(c), text.split(c).count());
    seen!(words.iter().cloned().collect::<String>(), text.chars().filter(|_| true).collect::<String>());
    seen!(vec![c].into_iter().collect::<String>(), vec![c].iter().collect::<String>());
    seen!(text.to_lowercase().chars().collect::<Vec<char>>(), text.parse::<char>().ok());
    own.extend(text.chars());
    own += text;
    own.push(c);
    seen!(own.pop(), own.remove(n), own.insert(n, c), format!("{own}{text:?}{c}{c:?}{n}"));
}
